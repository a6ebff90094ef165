"""`Authorization: Bearer aip_…` for the REST API."""

from __future__ import annotations

from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from accounts.models import ApiToken, User
from accounts.services import tokens
from accounts.sign_in import lockout

SAFE = {"GET", "HEAD", "OPTIONS"}


class TokenAuthentication(BaseAuthentication):
    """Authenticates a request by its API token; a read token may only read."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _space, value = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = tokens.find(value.strip())
        if token is None:
            lockout.count_token_guess(request._request)
            raise AuthenticationFailed(_("This token is unknown, expired or revoked. Create a new one in Settings."))
        if token.user.must_change_password:
            raise PermissionDenied(_("Change your initial password in the browser."))
        if token.scope == ApiToken.Scope.READ and request.method not in SAFE:
            raise PermissionDenied(_("This token is read-only."))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
