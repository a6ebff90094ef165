"""Errors a caller can act on. Anything else is a bug and becomes a 500."""

from typing import ClassVar

from aiplatform.lib.wording import Message


class DomainError(Exception):
    """A refusal by a rule of the platform; API and pages show `message`."""

    code: ClassVar[str] = "refused"  # stable: scripts match on it
    status: ClassVar[int] = 409  # HTTP status of the API answer
    field: ClassVar[str | None] = None  # form field to blame, if one is to blame

    def __init__(self, message: object, /, *, field: str | None = None, **facts: object) -> None:
        self.worded = message if isinstance(message, Message) else None  # for rows, which others read
        self.message = str(message)
        super().__init__(self.message)
        self.blamed = field or self.field
        self.facts = facts  # numbers and ids that let a script decide what to do


class NotAllowed(DomainError):
    code = "not_allowed"
    status = 403


class Invalid(DomainError):
    """The request itself is wrong: a value out of range, a name with odd characters."""

    code = "invalid"
    status = 400


class NameTaken(DomainError):
    """Another thing has this name already."""

    code = "name_taken"
    field = "name"


class NotFound(DomainError):
    code = "not_found"
    status = 404


class StillInUse(DomainError):
    code = "still_in_use"
