from rest_framework.routers import SimpleRouter

from inference.pipelines.api import ApprovalViewSet, PipelineRunViewSet, PipelineViewSet
from inference.pipelines.text_api import PipelineTextViewSet

router = SimpleRouter()
router.register("pipelines", PipelineViewSet, basename="api-pipeline")
router.register("pipeline-runs", PipelineRunViewSet, basename="api-pipeline-run")
router.register("pipeline-approvals", ApprovalViewSet, basename="api-pipeline-approval")
router.register("pipeline-texts", PipelineTextViewSet, basename="api-pipeline-text")
urlpatterns = router.urls
