from rest_framework.routers import SimpleRouter

from datasets.files.api import FilesViewSet

router = SimpleRouter()
router.register("files", FilesViewSet, basename="api-files")
urlpatterns = router.urls
