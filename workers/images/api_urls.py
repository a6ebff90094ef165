from rest_framework.routers import SimpleRouter

from workers.images.api import ImageViewSet
from workers.images.containers.api import RegistryLoginViewSet

router = SimpleRouter()
router.register("images", ImageViewSet, basename="image")
router.register("registry-logins", RegistryLoginViewSet, basename="registry-login")
urlpatterns = router.urls
