from rest_framework.routers import SimpleRouter

from training.experiments.reports.api import ReportViewSet

router = SimpleRouter()
router.register("reports", ReportViewSet, basename="api-reports")
urlpatterns = router.urls
