"""Shares of single rows with people and groups. Only this module uses django-guardian.

Levels of one thing lie on a ladder, each holding those below. A share is one row of guardian's tables; groups of ours
stand there as groups of Django's, made when something is first shared with them.

    sharing.register(sharing.Shareable("dataset", _("Dataset"), Dataset, ("view", "use", "manage"), …))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models
from django.db.models import BigIntegerField, Q
from django.db.models.functions import Cast
from django.db.models.signals import post_delete
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.registry import Registry

if TYPE_CHECKING:
    from accounts.models import User, UserGroup

VIEW, ANNOTATE, REVIEW, USE, MANAGE = "view", "annotate", "review", "use", "manage"
LEVEL_LABELS = {
    VIEW: _("View"),
    ANNOTATE: _("Annotate"),
    REVIEW: _("Review"),
    USE: _("Use"),
    MANAGE: _("Manage"),
}
#: What every ladder holds, from little to much. A kind offers some of them.
LADDER = (VIEW, ANNOTATE, REVIEW, USE, MANAGE)


@dataclass(frozen=True)
class Shareable:
    """A kind of thing that can be shared."""

    kind: str  # in addresses
    label: Any
    model: type[models.Model]
    levels: tuple[str, ...]
    needs: str  # Action of who may share
    url: Callable[[Any], str]
    help_text: Any = ""  # what its levels give, where the usual sentences do not say it
    check: Callable[[Any], None] = lambda _thing: None  # raises DomainError for one that must not be shared


KINDS: Registry[Shareable] = Registry("kind of thing to share", name=lambda shareable: shareable.kind)


def register(*kinds: Shareable) -> None:
    """Called from the owning app's AppConfig.ready()."""
    KINDS.register(*kinds)
    for kind in kinds:
        post_delete.connect(_deleted, sender=kind.model, dispatch_uid=f"forget shares of {kind.kind}")


def _deleted(sender: type[models.Model], instance: models.Model, **more: Any) -> None:
    forget(sender._meta.label_lower, [instance.pk])


def at_least(level: str) -> tuple[str, ...]:
    """The levels that hold `level`."""
    return LADDER[LADDER.index(level) :]


def _codename(level: str, model: str) -> str:
    return f"share_{level}_{model}"


def _rows(table: str, label: str, level: str) -> models.QuerySet[Any]:
    """Return guardian's rows about a model ("datasets.dataset") that give at least `level`."""
    app, model = label.split(".")
    names = [_codename(level_, model) for level_ in at_least(level)]
    return apps.get_model("guardian", table)._default_manager.filter(
        permission__content_type__app_label=app, permission__content_type__model=model, permission__codename__in=names
    )


def _ids(rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
    return rows.annotate(number=Cast("object_pk", BigIntegerField())).values("number")


def shared_with(user: User, label: str, path: str, level: str = VIEW) -> Q:
    """A filter: `path` leads to a row of model `label` that is shared with this person, directly or by a group.

    It adds two subqueries and no query of its own.
    """
    own = _ids(_rows("UserObjectPermission", label, level).filter(user=user))
    by_group = _ids(_rows("GroupObjectPermission", label, level).filter(group__people_group__users=user))
    return Q(**{f"{path}__in": own}) | Q(**{f"{path}__in": by_group})


def shares_of(thing: models.Model) -> list[tuple[str, User | UserGroup]]:
    """Who has which level on one thing: people first, then groups, each with the highest level they were given."""
    label, pk = thing._meta.label_lower, str(thing.pk)
    people = _rows("UserObjectPermission", label, VIEW).filter(object_pk=pk, user__deleted_at=None)
    groups = _rows("GroupObjectPermission", label, VIEW).filter(object_pk=pk, group__people_group__isnull=False)
    people = people.select_related("user", "permission").order_by("user__username")
    groups = groups.select_related("group__people_group", "permission").order_by("group__people_group__name")
    return [
        *((_level(row), row.user) for row in people),
        *((_level(row), row.group.people_group) for row in groups),
    ]


def _level(row: Any) -> str:
    """share_manage_dataset → manage."""
    level: str = row.permission.codename.split("_")[1]
    return level


def _permission(thing: models.Model, level: str) -> models.Model:
    content_type = apps.get_model("contenttypes", "ContentType")._default_manager.get_for_model(type(thing))
    model = thing._meta.model_name or ""
    permission, _made = apps.get_model("auth", "Permission")._default_manager.get_or_create(
        codename=_codename(level, model), content_type=content_type, defaults={"name": f"Shared: {level} {model}"}
    )
    return permission


def _django_group(group: UserGroup) -> models.Model:
    """Return the group of Django that represents ours in guardian's tables."""
    if group.django_group is None:
        name = f"people-group-{group.pk}"
        group.django_group = apps.get_model("auth", "Group")._default_manager.get_or_create(name=name)[0]
        group.save(update_fields=["django_group"])
    return group.django_group


def _whose(whom: User | UserGroup) -> tuple[str, dict[str, Any]]:
    if whom._meta.model_name == "user":
        return "UserObjectPermission", {"user": whom}
    return "GroupObjectPermission", {"group": _django_group(whom)}  # type: ignore[arg-type]  # the branch before took the people


def set_level(thing: models.Model, whom: User | UserGroup, level: str | None) -> None:
    """Set exactly `level` on one thing; None removes every level. The caller holds the transaction."""
    table, who = _whose(whom)
    of_thing = _rows(table, thing._meta.label_lower, VIEW).filter(object_pk=str(thing.pk), **who)
    of_thing.delete()
    if level is not None:
        permission = _permission(thing, level)
        apps.get_model("guardian", table)._default_manager.create(
            permission=permission,
            content_type=permission.content_type,  # type: ignore[attr-defined]  # a row of Django's, found above
            object_pk=str(thing.pk),
            **who,
        )


def forget(label: str, numbers: Iterable[int]) -> None:
    """Drop the shares of rows that were deleted, so that no later row inherits them."""
    keys = [str(number) for number in numbers]
    for table in ("UserObjectPermission", "GroupObjectPermission"):
        _rows(table, label, VIEW).filter(object_pk__in=keys).delete()
