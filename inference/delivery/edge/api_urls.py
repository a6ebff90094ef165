"""API routes of devices and of those who run them, mounted at /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from inference.delivery.edge.api import EdgeDeviceViewSet, EdgeGroupViewSet
from inference.delivery.edge.device_api import EnrolView, PackageView, ReportView, SampleView, WordView

router = SimpleRouter()
router.register("edge-groups", EdgeGroupViewSet, "api-edge-group")
router.register("edge-devices", EdgeDeviceViewSet, "api-edge-device")
urlpatterns = [
    path("edge/enrol", EnrolView.as_view(), name="edge-enrol"),
    path("edge/word", WordView.as_view(), name="edge-word"),
    path("edge/packages/<slug:sha256>", PackageView.as_view(), name="edge-package"),
    path("edge/report", ReportView.as_view(), name="edge-report"),
    path("edge/samples", SampleView.as_view(), name="edge-samples-sent"),
    *router.urls,
]
