from training.environments.views import EnvironmentPages

app_name = "environments"
urlpatterns = EnvironmentPages.urls()
