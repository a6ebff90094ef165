from rest_framework.routers import SimpleRouter

from training.experiments.visualisation.api import VisualisationViewSet

router = SimpleRouter()
router.register("visualisation", VisualisationViewSet, basename="visualisation")
urlpatterns = router.urls
