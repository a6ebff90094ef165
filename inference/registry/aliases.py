"""Aliases of versions: a name in a model that points at one version, and moves atomically."""

from __future__ import annotations

import re

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound
from inference.registry import history, stages
from inference.registry.models import Model, ModelAlias, ModelVersion

NAME = re.compile(r"[a-z][a-z0-9._-]{0,49}")
MAX_ALIASES = 50  # in one model
TAKEN = frozenset({"latest", "newest"})  # they would say something else than they do


class NoAlias(NotFound, code="no_alias", field="alias"): ...


def check_name(name: str, *, field: str = "alias") -> None:
    """Raise an error unless `name` is a valid name of an alias.

    Raises:
        Invalid.
    """
    if not NAME.fullmatch(name) or re.fullmatch(r"v\d+", name):
        message = _(
            "An alias has lowercase letters, digits and . _ - and starts with a letter, such as champion; v2 "
            "is a version."
        )
        raise Invalid(message, field=field)
    if name in TAKEN:
        raise Invalid(
            _("%(name)s is not an alias: without an alias the newest version is used.") % {"name": name}, field=field
        )


@transaction.atomic
def assign(*, version: ModelVersion, name: str, by: User, **facts: object) -> ModelAlias:
    """Point an alias at a version; an alias that points at it already is returned unchanged.

    Raises:
        Invalid: no name for an alias, or too many of them.
        Archived: the version must not be used for anything new.
    """
    check_name(name)
    model = Model.objects.select_for_update().get(pk=version.model_id)
    locked_version: ModelVersion = ModelVersion.objects.get(pk=version.pk)
    stages.check_in_use(locked_version, field="version")
    alias = ModelAlias.objects.filter(model=model, name=name).select_related("version").first()
    if alias is not None and alias.version_id == locked_version.pk:
        return alias
    if alias is None and model.aliases.count() >= MAX_ALIASES:
        raise Invalid(
            _("A model can have at most %(most)s aliases. Remove one first.") % {"most": MAX_ALIASES}, field="alias"
        )
    before = f"v{alias.version.number}" if alias else ""
    alias = alias or ModelAlias(model=model, name=name)
    alias.version, alias.moved_by, alias.moved_at = locked_version, by, now()
    alias.save()
    history.add(model, by, "model_alias_moved", locked_version, alias=name, **{"from": before}, **facts)
    return alias


@transaction.atomic
def remove(*, model: Model, name: str, by: User) -> None:
    """Take an alias away; its version stays.

    Raises:
        NoAlias.
    """
    Model.objects.select_for_update().get(pk=model.pk)
    alias = ModelAlias.objects.filter(model=model, name=name).select_related("version").first()
    if alias is None:
        raise NoAlias(_("%(model)s has no alias %(name)s.") % {"model": model, "name": name[:50]})
    version = alias.version
    alias.delete()
    history.add(model, by, "model_alias_removed", version, alias=name)
