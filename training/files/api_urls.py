from rest_framework.routers import SimpleRouter

from training.files.api import FilesViewSet

router = SimpleRouter()
router.register("files", FilesViewSet, basename="api-files")
urlpatterns = router.urls
