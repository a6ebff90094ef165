from rest_framework.routers import SimpleRouter

from training.environments.api import EnvironmentViewSet

router = SimpleRouter()
router.register("environments", EnvironmentViewSet, basename="environment")
urlpatterns = router.urls
