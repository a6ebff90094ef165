"""API routes of this room, mounted at /api/v1/."""

from rest_framework.routers import SimpleRouter

from inference.batch.api import PredictionViewSet
from inference.conversion.api import ConversionViewSet
from inference.evaluation.api import EvaluationViewSet
from inference.evaluation.model_api import ModelWithRulesViewSet
from inference.evaluation.parameter_sets.api import EvaluationSetViewSet
from inference.registry.api import ModelTaskViewSet, ModelVersionViewSet
from inference.serving.api import ServiceViewSet
from inference.video.api import VideoFileViewSet, VideoViewSet

router = SimpleRouter()
router.register("models", ModelWithRulesViewSet, "api-model")
router.register("model-versions", ModelVersionViewSet, "api-model-version")
router.register("model-tasks", ModelTaskViewSet, "api-model-task")
router.register("evaluations", EvaluationViewSet, "api-evaluation")
router.register("evaluation-sets", EvaluationSetViewSet, "api-evaluation-set")
router.register("conversions", ConversionViewSet, "api-conversion")
router.register("predictions", PredictionViewSet, "api-prediction")
router.register("videos", VideoViewSet, "api-video")
router.register("video-files", VideoFileViewSet, "api-video-file")
router.register("services", ServiceViewSet, "api-service")
urlpatterns = router.urls
