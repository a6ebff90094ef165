from rest_framework.routers import SimpleRouter

from training.experiments.api import ComparisonViewSet

router = SimpleRouter()
router.register("training/comparison", ComparisonViewSet, basename="training-comparison")
urlpatterns = router.urls
