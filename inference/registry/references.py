"""Versions as users write them: NAME@ALIAS, NAME:2, NAME v2, or NAME for the newest; each may be prefixed by OWNER/."""

from __future__ import annotations

import re

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound
from inference.registry.models import ModelVersion

WRITTEN = re.compile(
    r"(?:(?P<owner>[^/@]{1,50})/)?(?P<name>[^/@:]{1,100}?)(?:@(?P<alias>[^/@:]{1,50})|(?::| v)(?P<number>\d{1,9}))?"
)


def find(user: User, text: str, *, to_use: bool = False, field: str = "model_version") -> ModelVersion:
    """Return the version that a text names; the user's own if several users have a model of the name.

    Args:
        to_use: it must be one they may work with, not only look at.

    Raises:
        Invalid: it cannot be read, or matches models of several users.
        NotFound: there is no such version visible to the user.
    """
    parts = WRITTEN.fullmatch(text.strip())
    if parts is None:
        raise Invalid(_("Write a version as NAME@ALIAS, NAME:2 or OWNER/NAME:2."), field=field)
    rows: QuerySet[ModelVersion] = (
        ModelVersion.objects.usable_by(user) if to_use else ModelVersion.objects.visible_to(user)
    )
    rows = rows.filter(model__name=parts["name"]).select_related("model__owner")
    if parts["owner"]:
        rows = rows.filter(model__owner__username=parts["owner"])
    elif rows.filter(model__owner=user).exists():
        rows = rows.filter(model__owner=user)
    if parts["alias"]:
        rows = rows.filter(aliases__name=parts["alias"])
    elif parts["number"]:
        rows = rows.filter(number=int(parts["number"]))
    versions: dict[int, ModelVersion] = {}
    for version in rows.order_by("number"):
        versions[version.model_id] = version  # the newest of each model
    if not versions:
        raise NotFound(_("Model %(words)s not found.") % {"words": text.strip()[:150]}, field=field)
    if len(versions) > 1:
        names = ", ".join(f"{match.model.owner.username}/{match.model.name}" for match in list(versions.values())[:3])
        message = _("Several models have this name: %(both)s. Add the owner.")
        raise Invalid(message % {"both": names}, field=field)
    return next(iter(versions.values()))
