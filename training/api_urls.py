from rest_framework.routers import SimpleRouter

from training.runs.api import TrainingViewSet
from training.runs.catalog_api import ParameterSetViewSet, PresetViewSet
from training.runs.output_api import OutputDatasetViewSet
from training.runs.planned_api import PlannedViewSet

router = SimpleRouter()
router.register("training/jobs", TrainingViewSet, basename="training-job")
router.register("training/planned", PlannedViewSet, basename="training-planned")
router.register("training/outputs", OutputDatasetViewSet, basename="training-output")
router.register("training/presets", PresetViewSet, basename="training-preset")
router.register("training/params", ParameterSetViewSet, basename="training-params")
urlpatterns = router.urls
