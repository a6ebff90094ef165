from rest_framework.routers import SimpleRouter

from training.job_templates.api import TemplateViewSet

router = SimpleRouter()
router.register("templates", TemplateViewSet, basename="api-templates")
urlpatterns = router.urls
