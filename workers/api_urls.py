from django.urls import path
from rest_framework.routers import SimpleRouter

from workers.jobs.api.actions import SteeredJobViewSet
from workers.jobs.api.approvals import ApprovalViewSet
from workers.jobs.api.arrays import ArrayViewSet
from workers.jobs.api.more_time import TimeRequestViewSet
from workers.jobs.api.priorities import ClusterPriorityViewSet
from workers.jobs.output.api.files import JobFilesViewSet
from workers.jobs.output.api.jobs import JobOutputViewSet
from workers.jobs.output.api.media import JobMediaViewSet
from workers.resources.clusters.api.clusters import ClusterViewSet
from workers.resources.clusters.api.resource_groups import ResourceGroupViewSet
from workers.resources.monitoring.api.alarms import AlarmAddressViewSet, AlarmRuleViewSet, AlarmViewSet
from workers.resources.monitoring.api.history import HistoryView
from workers.resources.monitoring.api.usage import UsageView
from workers.resources.nodes.api.devices import DeviceViewSet
from workers.resources.nodes.api.nodes import JoinView, NodeViewSet, ProbeView, TokenViewSet
from workers.scheduling.api.decision import DecisionView

router = SimpleRouter()
router.register("jobs", SteeredJobViewSet, basename="api-jobs")
router.register("jobs", JobOutputViewSet, basename="api-job-output")
router.register("jobs", JobFilesViewSet, basename="api-job-files")
router.register("jobs", JobMediaViewSet, basename="api-job-media")
router.register("clusters", ClusterViewSet, basename="api-clusters")
router.register("clusters", ClusterPriorityViewSet, basename="api-cluster-priorities")
router.register("nodes/tokens", TokenViewSet, basename="api-node-tokens")
router.register("nodes", NodeViewSet, basename="api-nodes")
router.register("alarms", AlarmViewSet, basename="api-alarms")
router.register("alarm-rules", AlarmRuleViewSet, basename="api-alarm-rules")
router.register("alarm-addresses", AlarmAddressViewSet, basename="api-alarm-addresses")
router.register("resource-groups", ResourceGroupViewSet, basename="api-resource-groups")
router.register("arrays", ArrayViewSet, basename="api-arrays")
router.register("approvals", ApprovalViewSet, basename="api-approvals")
router.register("time-requests", TimeRequestViewSet, basename="api-time-requests")
router.register("devices", DeviceViewSet, basename="api-devices")

urlpatterns = [
    path("usage/", UsageView.as_view(), name="api-usage"),
    path("history/", HistoryView.as_view(), name="api-history"),
    path("nodes/join/", JoinView.as_view(), name="node-join"),
    path("nodes/probe/", ProbeView.as_view(), name="node-probe"),
    path("cluster/decision/", DecisionView.as_view(), name="api-cluster-decision"),
    *router.urls,
]
