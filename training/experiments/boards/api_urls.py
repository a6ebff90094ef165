from rest_framework.routers import SimpleRouter

from training.experiments.boards.api import BoardViewSet

router = SimpleRouter()
router.register("jobs", BoardViewSet, basename="api-job-board")
urlpatterns = router.urls
