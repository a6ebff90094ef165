"""Who: people, their rights and keys, and what they did."""

from accounts.models.audit import AuditEntry
from accounts.models.doors import DoorRules, Identity, RecoveryCode, SecondFactor, SshKey, UserSession
from accounts.models.imports import PeopleImport
from accounts.models.notices import Delivery, NoticeChoices, Notification
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
    "Delivery",
    "DoorRules",
    "Identity",
    "KeptAnswer",
    "NoRights",
    "NoticeChoices",
    "Notification",
    "OneTimeLink",
    "PeopleImport",
    "PeopleManager",
    "RecoveryCode",
    "Role",
    "SecondFactor",
    "SshKey",
    "User",
    "UserGroup",
    "UserSession",
]
