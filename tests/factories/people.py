"""People for tests."""

from __future__ import annotations

from accounts.access.permissions import PRESET_ROLES, USER
from accounts.models import Role, User
from workers.core.models import Membership, VirtualCluster


def user(username: str, *, role: str | None = USER, cluster: VirtualCluster | None = None) -> User:
    """A person with one role, in one cluster; password "correct horse"."""
    made = User.objects.create_user(username=username, password="correct horse", nickname=username.title())
    if role:
        actions = sorted(action.value for action in PRESET_ROLES.get(role, ()))
        made.roles.add(Role.objects.get_or_create(name=role, defaults={"preset": True, "actions": actions})[0])
    if cluster:
        Membership.objects.create(user=made, cluster=cluster, is_current=True)
    return made
