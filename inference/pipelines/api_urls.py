from django.urls import path
from rest_framework.routers import SimpleRouter

from inference.pipelines.api import PipelineViewSet
from inference.pipelines.run_api import PipelineRunViewSet, StepApprovalViewSet
from inference.pipelines.text_api import PipelineTextViewSet
from inference.pipelines.trigger_api import HookView, TriggerViewSet

router = SimpleRouter()
router.register("pipelines", PipelineViewSet, basename="api-pipeline")
router.register("pipeline-runs", PipelineRunViewSet, basename="api-pipeline-run")
router.register("pipeline-approvals", StepApprovalViewSet, basename="api-pipeline-approval")
router.register("pipeline-texts", PipelineTextViewSet, basename="api-pipeline-text")
router.register("pipeline-triggers", TriggerViewSet, basename="api-pipeline-trigger")
urlpatterns = [path("pipeline-hooks/<int:pk>/", HookView.as_view(), name="api-pipeline-hook"), *router.urls]
