"""Who: people, their rights and keys, and what they did."""

from accounts.models.audit import AuditEntry
from accounts.models.people import (
    ApiToken,
    KeptAnswer,
    NoRights,
    OneTimeLink,
    PeopleManager,
    Role,
    User,
    UserGroup,
)

__all__ = [
    "ApiToken",
    "AuditEntry",
    "KeptAnswer",
    "NoRights",
    "OneTimeLink",
    "PeopleManager",
    "Role",
    "User",
    "UserGroup",
]
