from rest_framework.routers import SimpleRouter

from training.experiments.api import RunViewSet, RunViewViewSet
from training.experiments.comparison_api import ComparisonViewSet

router = SimpleRouter()
router.register("training/comparison", ComparisonViewSet, basename="training-comparison")
router.register("runs", RunViewSet, basename="run")
router.register("run-views", RunViewViewSet, basename="run-view")
urlpatterns = router.urls
