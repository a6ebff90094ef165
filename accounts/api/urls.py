from django.urls import path
from rest_framework.routers import SimpleRouter

from accounts.api import audit as views_audit
from accounts.api import views

router = SimpleRouter()
router.register("users", views.PersonViewSet, basename="user")
router.register("groups", views.GroupViewSet, basename="group")
router.register("audit", views_audit.AuditViewSet, basename="audit")
router.register("roles", views.RoleViewSet, basename="role")
urlpatterns = [
    path("auth/token/", views.TokenView.as_view(), name="auth-token"),
    path("me/", views.MeView.as_view(), name="me"),
    *router.urls,
]
