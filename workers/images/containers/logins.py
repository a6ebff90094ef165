"""Credentials of registries: kept sealed, tested on request, never shown again."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib import sealed, wording
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals, StillInUse
from workers.images.containers import registry_client
from workers.images.containers.reference import check_host
from workers.images.containers.registry import Login, Registry, RegistryRefused
from workers.images.models import RegistryLogin, State, Visibility

MAX_CA_LENGTH = 100_000


def add(
    *, user: User, host: str, username: str = "", password: str = "", ca: str = "",
    visibility: str = Visibility.PRIVATE,
) -> RegistryLogin:  # fmt: skip
    """Keep credentials of a registry.

    Raises:
        Invalid: see `check`.
        NameTaken: this person has some of the same name there.
    """
    check(host=host, username=username, password=password, ca=ca, visibility=visibility)
    try:
        with transaction.atomic():
            login = RegistryLogin.objects.create(
                owner=user, host=check_host(host), username=username, ca=ca.strip(), visibility=visibility,
                secret=sealed.seal({"password": password} if password else {}),
            )  # fmt: skip
            audit.record(user, "registry_login_added", login)
    except IntegrityError:
        raise NameTaken(
            _("You already have credentials with this name for that registry. Edit those."), field="username"
        ) from None
    return login


def check(
    *, host: str = "docker.io", username: str = "", password: str = "", ca: str = "",
    visibility: str = Visibility.PRIVATE,
) -> None:  # fmt: skip
    """Refuse at once what `add` refuses.

    Raises:
        Invalid: no such host, a name without a password, an authority that is none, everybody as the users.
    """
    refusals = Refusals()
    with refusals:
        check_host(host)
    with refusals:
        if bool(username) != bool(password):
            raise Invalid(_("Enter both a username and a password or token, or neither."), field="password")
    with refusals:
        if ":" in username or not (username + password).isprintable():
            raise Invalid(_("A username must not contain colons or invisible characters."), field="username")
    with refusals:
        _check_ca(ca)
    with refusals:
        if visibility not in (Visibility.PRIVATE, Visibility.GROUP):
            raise Invalid(_("Credentials must be private or shared with your groups."), field="visibility")
    refusals.end()


def _check_ca(ca: str) -> None:
    if len(ca) > MAX_CA_LENGTH:
        raise Invalid(_("At most %(most)s characters.") % {"most": MAX_CA_LENGTH}, field="ca")
    try:
        Registry("registry.invalid", Login(ca=ca.strip()), allowed=[])
    except RegistryRefused:
        raise Invalid(
            _("This is not a PEM certificate. Paste all of it, including the first and last line."), field="ca"
        ) from None


def change(*, login: RegistryLogin, by: User, password: str = "", ca: str, visibility: str) -> RegistryLogin:
    """Change credentials; an empty password leaves the one that is there.

    Raises:
        Invalid: see `check`.
    """
    check(username=login.username if password else "", password=password, ca=ca, visibility=visibility)
    login.ca, login.visibility = ca.strip(), visibility
    if password and login.username:
        login.secret = sealed.seal({"password": password})
    login.tested_at, login.message = None, wording.Message()
    login.save(update_fields=["ca", "visibility", "secret", "tested_at", "message"])
    audit.record(by, "registry_login_changed", login)
    return login


def test(login: RegistryLogin) -> bool:
    """Sign in at the registry, and save the outcome; return whether it accepted the credentials."""
    message = wording.Message()
    try:
        registry_client.registry(login.host, login).check()
    except DomainError as exc:
        message = wording.of_error(exc)
    RegistryLogin.objects.filter(pk=login.pk).update(tested_at=timezone.now(), message=message)
    login.refresh_from_db()
    return not message


def delete(*, login: RegistryLogin, by: User) -> None:
    """Delete credentials at once, even if in use; images that are fetched with them fail with a reason.

    Raises:
        StillInUse: an image was added with them this very moment.
    """
    message = wording.message("image.registry_deleted", host=login.host)
    try:
        with transaction.atomic():
            count = login.images.update(login=None, state=State.FAILED, message=message, holder="")
            audit.record(by, "registry_login_deleted", login, images=count)
            login.delete()
    except ProtectedError:
        raise StillInUse(_("An image was just added with these credentials.")) from None
