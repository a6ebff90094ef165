from rest_framework.routers import SimpleRouter

from training.commands.api import CommandViewSet

router = SimpleRouter()
router.register("commands", CommandViewSet, basename="command")
urlpatterns = router.urls
