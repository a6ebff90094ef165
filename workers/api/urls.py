from rest_framework.routers import SimpleRouter

from workers.api.jobs import JobViewSet
from workers.api.machines import ClusterViewSet, DeviceViewSet, NodeViewSet

router = SimpleRouter()
router.register("jobs", JobViewSet, basename="api-jobs")
router.register("clusters", ClusterViewSet, basename="api-clusters")
router.register("nodes", NodeViewSet, basename="api-nodes")
router.register("devices", DeviceViewSet, basename="api-devices")

urlpatterns = router.urls
