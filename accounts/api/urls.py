from django.urls import path
from rest_framework.routers import SimpleRouter

from accounts.api import audit as views_audit
from accounts.api import devices, notifications, secrets, shares, ssh_keys, views

router = SimpleRouter()
router.register("users", views.PersonViewSet, basename="user")
router.register("groups", views.GroupViewSet, basename="group")
router.register("audit", views_audit.AuditViewSet, basename="audit")
router.register("roles", views.RoleViewSet, basename="role")
router.register("notifications", notifications.NotificationViewSet, basename="notification")
router.register("secrets", secrets.SecretViewSet, basename="secret")
router.register("ssh-keys", ssh_keys.SshKeyViewSet, basename="ssh-key")
urlpatterns = [
    path("auth/token/", views.TokenView.as_view(), name="auth-token"),
    path("auth/device/", devices.DeviceView.as_view(), name="auth-device"),
    path("auth/device/token/", devices.DeviceTokenView.as_view(), name="auth-device-token"),
    path("shares/<slug:kind>/<int:pk>/", shares.SharesView.as_view(), name="shares"),
    path("me/", views.MeView.as_view(), name="me"),
    path("me/notifications/", notifications.NoticeChoicesView.as_view(), name="notice-choices"),
    *router.urls,
]
