from rest_framework.routers import SimpleRouter

from workers.images.api import ImageViewSet

router = SimpleRouter()
router.register("images", ImageViewSet, basename="image")
urlpatterns = router.urls
