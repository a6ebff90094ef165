from rest_framework.routers import SimpleRouter

from workers.access.ssh.api import JobSshViewSet

router = SimpleRouter()
router.register("jobs", JobSshViewSet, basename="api-job-ssh")
urlpatterns = router.urls
