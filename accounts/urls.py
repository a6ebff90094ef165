from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

app_name = "accounts"
urlpatterns = [
    path("login/", login_not_required(LoginView.as_view(template_name="accounts/login.html")), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
]
