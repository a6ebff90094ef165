from django.contrib.auth.views import LogoutView
from django.urls import path

from accounts.views import audit, door, notifications, own, people, rights

app_name = "accounts"
urlpatterns = [
    path("login/", door.SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("register/", door.register, name="register"),
    path("welcome/<str:secret>/", door.welcome, name="welcome"),
    path("set-password/<str:secret>/", door.set_password, name="set-password"),
    path("account/", own.settings_page, name="settings"),
    path("account/password/", own.password_page, name="password"),
    path("account/tokens/", own.tokens_page, name="tokens"),
    path("account/tokens/<int:pk>/revoke/", own.token_revoke, name="token-revoke"),
    path("account/notifications/", notifications.notification_choices, name="notification-choices"),
    path("account/notifications/test/", notifications.notification_test, name="notification-test"),
    path("notifications/", notifications.notification_list, name="notifications"),
    path("notifications/bell/", notifications.notification_bell, name="notification-bell"),
    path("notifications/read/", notifications.notification_read, name="notifications-read"),
    path("notifications/<int:pk>/", notifications.notification_open, name="notification"),
    path("people/", people.person_list, name="people"),
    path("people/new/", people.person_new, name="person-new"),
    path("people/<int:pk>/", people.person_detail, name="person"),
    path("people/<int:pk>/facts/", people.person_facts, name="person-facts"),
    path("people/<int:pk>/rights/", people.person_rights, name="person-rights"),
    path("people/<int:pk>/active/", people.person_active, name="person-active"),
    path("people/<int:pk>/password-link/", people.person_password_link, name="person-password-link"),
    path("people/roles/", rights.role_list, name="roles"),
    path("people/roles/new/", rights.role_new, name="role-new"),
    path("people/roles/<int:pk>/", rights.role_detail, name="role"),
    path("people/roles/<int:pk>/delete/", rights.role_delete, name="role-delete"),
    path("people/groups/", rights.group_list, name="groups"),
    path("people/groups/new/", rights.group_new, name="group-new"),
    path("people/groups/<int:pk>/", rights.group_detail, name="group"),
    path("people/groups/<int:pk>/delete/", rights.group_delete, name="group-delete"),
    path("people/audit/", audit.trail, name="audit"),
    path("people/audit/export/", audit.export, name="audit-export"),
]
