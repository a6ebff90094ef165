from rest_framework.routers import SimpleRouter

from training.studies.api import StudyViewSet

router = SimpleRouter()
router.register("studies", StudyViewSet, basename="api-studies")
urlpatterns = router.urls
