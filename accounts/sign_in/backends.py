"""Authentication backends for passwords that are not the platform's own."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from accounts.models import User
from accounts.services import directory
from accounts.services.identities import NotLetIn


class DirectoryBackend(ModelBackend):
    """Asks the directory (LDAP) where the platform's own password did not fit.

    What the directory says about itself, or this house about somebody the directory knows, is left on the request
    (`provider_message`) for the form to show.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **more: Any
    ) -> User | None:
        try:
            return directory.sign_in(username or "", password or "")
        except (directory.DirectoryAway, NotLetIn) as exc:
            if request is not None:
                request.provider_message = exc.message  # type: ignore[attr-defined]  # travels with the request
            return None
