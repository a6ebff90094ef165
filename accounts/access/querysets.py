"""Base querysets of all apps: which rows a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from django.db.models import Prefetch, Q, QuerySet

from accounts.access import sharing
from accounts.access.permissions import Action
from aiplatform.lib import search

if TYPE_CHECKING:
    from accounts.models import User


class OwnedQuerySet(QuerySet[Any]):
    """Rows with an `owner`. A `visibility` of "public" opens them to everybody, "group" to the owner's groups.

    Subclasses name the columns when they differ (`owner_path = "job__owner"`), and where the thing is that can be
    shared with single people and groups (`shared = ("datasets.dataset", "version__dataset")`).
    """

    owner_path = "owner"
    visibility_path: str | None = None
    shared: tuple[str, str] | None = None  # model that is shared, and the way to it ("pk": the row itself)

    def visible_to(self, user: User) -> Self:
        """Rows this person may see: own, public, their groups', shared ones, and for operators all of them."""
        return self._open_to(user, sharing.VIEW)

    def usable_by(self, user: User) -> Self:
        """Rows this person may work with; those shared for viewing only are left out."""
        return self._open_to(user, sharing.USE)

    def editable_by(self, user: User) -> Self:
        """Rows this person may change: own, those shared for managing, and for operators all of them."""
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        return self.filter(Q(**{self.owner_path: user}) | self._shared_with(user, sharing.MANAGE))

    def for_list(self) -> Self:
        """With what the list shows."""
        return self

    def _open_to(self, user: User, level: str) -> Self:
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        mine = Q(**{self.owner_path: user}) | self._shared_with(user, level)
        if self.visibility_path:
            mine |= Q(**{self.visibility_path: "public"})
            mates = self.model._meta.apps.get_model("accounts", "User")._default_manager.filter(user_groups__users=user)
            mine |= Q(**{self.visibility_path: "group", f"{self.owner_path}__in": mates.values("pk")})
        return self.filter(mine)

    def _shared_with(self, user: User, level: str) -> Q:
        return sharing.shared_with(user, *self.shared, level) if self.shared else Q()


class UnownedQuerySet(QuerySet[Any]):
    """Rows without an owner: users who see them may change them, where they have the permission to."""

    def visible_to(self, user: User) -> Self:
        raise NotImplementedError("Subclasses of UnownedQuerySet define visible_to().")

    def editable_by(self, user: User) -> Self:
        return self.visible_to(user)

    def for_list(self) -> Self:
        """With what the list shows."""
        return self


class PeopleQuerySet(UnownedQuerySet):
    """Accounts: administrators see all, everyone else sees themselves."""

    def visible_to(self, user: User) -> Self:
        """Accounts this person may see; deleted ones are never among them."""
        if not user.is_authenticated:
            return self.none()
        if user.can(Action.PEOPLE_MANAGE):
            return self.filter(deleted_at=None)
        return self.filter(pk=user.pk, deleted_at=None)

    def with_rights(self) -> Self:
        """With the lists `own_roles` and `own_groups`; managers of the relations would cost more than the rows."""
        return self.prefetch_related(
            Prefetch("roles", to_attr="own_roles"),
            Prefetch("user_groups", to_attr="own_groups"),
            Prefetch("own_groups__roles", to_attr="own_roles"),
        )

    def administrators(self) -> Self:
        """Active people who may administer people, by an own or a group's role."""
        roles = self.model._meta.get_field("roles").related_model._default_manager.all()
        granting = [role.pk for role in roles if Action.PEOPLE_MANAGE.value in role.actions]
        by_role = Q(roles__in=granting) | Q(user_groups__roles__in=granting)
        return self.filter(by_role, is_active=True).distinct()

    def without_rights(self) -> Self:
        """Accounts without any role."""
        return self.filter(roles=None, is_superuser=False).exclude(user_groups__roles__isnull=False)

    def having_role(self, role: int) -> Self:
        """Accounts with this role, their own or a group's."""
        return self.filter(Q(roles=role) | Q(user_groups__roles=role)).distinct()

    def called(self, text: str) -> Self:
        """Return accounts whose username or nickname contains each word of `text`."""
        return search.filter_by_text(self, text, "username", "nickname")

    def named(self, text: str) -> Self:
        """Return accounts whose username, nickname, phone or e-mail contains each word of `text`."""
        return search.filter_by_text(self, text, "username", "nickname", "phone", "email")


class AdministeredQuerySet(UnownedQuerySet):
    """Rows that only administrators see, such as roles and groups."""

    def visible_to(self, user: User) -> Self:
        return self if user.is_authenticated and user.can(Action.PEOPLE_MANAGE) else self.none()


class OwnRowsQuerySet(UnownedQuerySet):
    """Rows of one person, such as API tokens and secrets: everybody sees only their own."""

    def visible_to(self, user: User) -> Self:
        return self.filter(user=user) if user.is_authenticated else self.none()


class AuditQuerySet(UnownedQuerySet):
    """Audit entries, for those who may read the trail. Rows are only ever added."""

    def visible_to(self, user: User) -> Self:
        return self if user.is_authenticated and user.can(Action.AUDIT_VIEW) else self.none()

    def containing(self, text: str) -> Self:
        """Return entries whose user, target, action or address contains each word of `text`."""
        return search.filter_by_text(self, text, "actor", "behind", "target", "verb", "address")

    def update(self, **values: Any) -> NoReturn:
        raise RuntimeError("The audit trail is only ever added to.")

    def delete(self) -> NoReturn:
        raise RuntimeError("The audit trail is only ever added to.")
