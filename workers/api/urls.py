from rest_framework.routers import SimpleRouter

from workers.api.machines import ClusterViewSet, DeviceViewSet, NodeViewSet
from workers.api.wishes import SteeredJobViewSet

router = SimpleRouter()
router.register("jobs", SteeredJobViewSet, basename="api-jobs")
router.register("clusters", ClusterViewSet, basename="api-clusters")
router.register("nodes", NodeViewSet, basename="api-nodes")
router.register("devices", DeviceViewSet, basename="api-devices")

urlpatterns = router.urls
