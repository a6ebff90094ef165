"""Tables of people: accounts, rights, keys, notifications, the audit trail."""

from accounts.models.audit import AuditEntry
from accounts.models.credentials import Identity, RecoveryCode, RegistrationPolicy, SecondFactor, SshKey, UserSession
from accounts.models.imports import PeopleImport
from accounts.models.notices import Delivery, NoticeChoices, Notification
from accounts.models.people import (
    ApiToken,
    IdempotencyRecord,
    NoRights,
    OneTimeLink,
    PeopleManager,
    Role,
    User,
    UserGroup,
)
from accounts.models.secrets import NamedSecret

__all__ = [
    "ApiToken",
    "AuditEntry",
    "Delivery",
    "IdempotencyRecord",
    "Identity",
    "NamedSecret",
    "NoRights",
    "NoticeChoices",
    "Notification",
    "OneTimeLink",
    "PeopleImport",
    "PeopleManager",
    "RecoveryCode",
    "RegistrationPolicy",
    "Role",
    "SecondFactor",
    "SshKey",
    "User",
    "UserGroup",
    "UserSession",
]
