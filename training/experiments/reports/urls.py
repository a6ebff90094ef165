from training.experiments.reports import views

app_name = "reports"
urlpatterns = views.ReportPages.urls()
