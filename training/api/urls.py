from rest_framework.routers import SimpleRouter

from training.api.catalog import ParameterSetViewSet, PresetViewSet
from training.api.jobs import TrainingViewSet
from training.api.outputs import OutputDatasetViewSet
from training.api.planned import PlannedViewSet

router = SimpleRouter()
router.register("training/jobs", TrainingViewSet, basename="training-job")
router.register("training/planned", PlannedViewSet, basename="training-planned")
router.register("training/outputs", OutputDatasetViewSet, basename="training-output")
router.register("training/presets", PresetViewSet, basename="training-preset")
router.register("training/params", ParameterSetViewSet, basename="training-params")
urlpatterns = router.urls
