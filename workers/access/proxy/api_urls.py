from rest_framework.routers import SimpleRouter

from workers.access.proxy.api import JobPortViewSet, PortViewSet

router = SimpleRouter()
router.register("jobs", JobPortViewSet, basename="api-job-ports")  # adds jobs/<id>/ports/… to the API of jobs
router.register("ports", PortViewSet, basename="api-ports")
urlpatterns = router.urls
