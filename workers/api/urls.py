from django.urls import path
from rest_framework.routers import SimpleRouter

from workers.api.alarms import AlarmAddressViewSet, AlarmRuleViewSet, AlarmViewSet
from workers.api.clusters import ClusterViewSet
from workers.api.decision import DecisionView
from workers.api.history import HistoryView
from workers.api.machines import DeviceViewSet
from workers.api.more_time import TimeRequestViewSet
from workers.api.nodes import JoinView, NodeViewSet, ProbeView, TokenViewSet
from workers.api.resource_groups import ResourceGroupViewSet
from workers.api.usage import UsageView
from workers.api.wishes import SteeredJobViewSet

router = SimpleRouter()
router.register("jobs", SteeredJobViewSet, basename="api-jobs")
router.register("clusters", ClusterViewSet, basename="api-clusters")
router.register("nodes/tokens", TokenViewSet, basename="api-node-tokens")
router.register("nodes", NodeViewSet, basename="api-nodes")
router.register("alarms", AlarmViewSet, basename="api-alarms")
router.register("alarm-rules", AlarmRuleViewSet, basename="api-alarm-rules")
router.register("alarm-addresses", AlarmAddressViewSet, basename="api-alarm-addresses")
router.register("resource-groups", ResourceGroupViewSet, basename="api-resource-groups")
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
