from rest_framework.routers import SimpleRouter

from training.studies.api import StudyViewSet
from training.studies.run_importance_api import RunImportanceViewSet

router = SimpleRouter()
router.register("studies", StudyViewSet, basename="api-studies")
router.register("run-importance", RunImportanceViewSet, basename="run-importance")
urlpatterns = router.urls
