from rest_framework.routers import SimpleRouter

from inference.pipelines.api import ApprovalViewSet, PipelineRunViewSet, PipelineViewSet

router = SimpleRouter()
router.register("pipelines", PipelineViewSet, basename="api-pipeline")
router.register("pipeline-runs", PipelineRunViewSet, basename="api-pipeline-run")
router.register("pipeline-approvals", ApprovalViewSet, basename="api-pipeline-approval")
urlpatterns = router.urls
