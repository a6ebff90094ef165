from rest_framework.routers import SimpleRouter

from workers.ssh.api import JobSshViewSet

router = SimpleRouter()
router.register("jobs", JobSshViewSet, basename="api-job-ssh")
urlpatterns = router.urls
