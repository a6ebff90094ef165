"""Environment variables of a job: in the open, and as secrets that are kept encrypted."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import named_secrets
from aiplatform.lib import sealed, secret_names, wording
from aiplatform.lib.errors import Invalid, Refusals
from training.programs import script
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.execution import handing_over

MAX_VARIABLES = 200
MAX_LENGTH = 32_768  # characters of a value; a kernel takes 128 KiB
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(variables: Mapping[str, str], *, field: str) -> None:
    """Refuse invalid names, names reserved by the platform, and invalid values.

    Raises:
        Invalid: naming each of them.
    """
    refusals = Refusals()
    with refusals:
        if len(variables) > MAX_VARIABLES:
            raise Invalid(_("At most %(most)s variables.") % {"most": MAX_VARIABLES}, field=field)
    for name, value in variables.items():
        with refusals:
            _check_one(name, value, field)
    refusals.end()


def check_secrets(secrets: Mapping[str, str], variables: Mapping[str, str]) -> None:
    """Refuse secrets that are also given as plain variables, or are too short to be masked in a log.

    One without a value is what the person keeps under that name, see `with_stored`.

    Raises:
        Invalid: naming each of them.
    """
    refusals = Refusals()
    for name, value in secrets.items():
        with refusals:
            if name in variables:
                raise Invalid(_("Duplicate parameter %(name)s.") % {"name": name[:60]}, field="secrets")
            if value and len(value) < secret_names.MIN_LENGTH:
                raise Invalid(
                    _(
                        "%(name)s: a secret must have at least %(least)s characters; shorter ones cannot be "
                        "hidden in logs."
                    )
                    % {"name": name[:60], "least": secret_names.MIN_LENGTH},
                    field="secrets",
                )
    refusals.end()


def check_stored(user: User, secrets: Mapping[str, str]) -> None:
    """Refuse secrets without a value that this person keeps none under.

    Raises:
        MissingSecret: naming each of them.
    """
    named_secrets.check(user, [name for name, value in secrets.items() if not value])


def with_stored(user: User, secrets: Mapping[str, str]) -> dict[str, str]:
    """The secrets of a request; those without a value get what this person keeps under the name.

    Raises:
        MissingSecret: see `check_stored`.
    """
    return dict(secrets) | named_secrets.values(user, [name for name, value in secrets.items() if not value])


def unsealed(secrets: str) -> dict[str, str]:
    """The secrets of a row, in the open.

    Raises:
        Invalid: they were kept under another secret key of the platform.
    """
    try:
        return sealed.unseal(secrets)
    except sealed.Unsealable:
        raise Invalid(wording.message("command.secrets_unreadable"), field="secrets") from None


def opened(job: Job, run: RunDir) -> handing_over.Opened:
    """What is sealed in the rows of a job, in the open, where it starts.

    Raises:
        NotYet: the server has not handed it over to this machine so far.
        Invalid: see `unsealed`.
    """
    try:
        return handing_over.opened(job, run)
    except sealed.Unsealable:
        raise Invalid(wording.message("command.secrets_unreadable"), field="secrets") from None


def _check_one(name: str, value: str, field: str) -> None:
    if not _NAME.fullmatch(name):
        raise Invalid(
            _("“%(name)s” is not a valid variable name: use letters, digits and _, not starting with a digit.")
            % {"name": name[:60]},
            field=field,
        )
    if name.startswith("AIP_"):
        raise Invalid(_("%(name)s: names starting with AIP_ are reserved.") % {"name": name[:60]}, field=field)
    if "\0" in value or len(value) > MAX_LENGTH:
        raise Invalid(
            _("%(name)s can have at most %(most)s characters and no NUL.") % {"name": name[:60], "most": MAX_LENGTH},
            field=field,
        )
    script.check_whole(value, field=field)
