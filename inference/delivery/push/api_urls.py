"""API routes of pushed models, mounted at /api/v1/."""

from rest_framework.routers import SimpleRouter

from inference.delivery.push.api import PushTargetViewSet, PushViewSet

router = SimpleRouter()
router.register("push-targets", PushTargetViewSet, "api-push-target")
router.register("pushes", PushViewSet, "api-push")
urlpatterns = router.urls
