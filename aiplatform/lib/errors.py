"""Errors a caller can act on. Anything else is a bug and becomes a 500."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar

from aiplatform.lib.wording import Message


class DomainError(Exception):
    """A refusal by a rule of the platform; API and pages show `message`.

    A subclass declares what differs: `class QuotaExceeded(DomainError, code="quota_exceeded", field="gpus"): ...`
    """

    code: ClassVar[str] = "refused"  # stable: scripts match on it
    status: ClassVar[int] = 409  # HTTP status of the API response
    field: ClassVar[str | None] = None  # form field that shows the error

    def __init_subclass__(cls, *, code: str = "", status: int = 0, field: str = "") -> None:
        super().__init_subclass__()
        cls.code, cls.status, cls.field = code or cls.code, status or cls.status, field or cls.field

    def __init__(self, message: object, /, *, field: str | None = None, **facts: object) -> None:
        self.worded = message if isinstance(message, Message) else None  # for rows, which others read
        self.message = str(message)
        super().__init__(self.message)
        self.blamed = field or self.field
        self.facts = facts  # numbers and ids that let a script decide what to do
        self.others: tuple[DomainError, ...] = ()  # what else is wrong with the same request, see Refusals

    @property
    def every(self) -> tuple[DomainError, ...]:
        """This refusal, then all others of the same request."""
        return (self, *self.others)

    @property
    def sentences(self) -> str:
        """What all of them say, one after the other."""
        return " ".join(dict.fromkeys(refusal.message for refusal in self.every))


MAX_REFUSALS = 200  # that one request reports; further ones are left out


class Refusals:
    """Collects refusals of checks that do not depend on each other, so that users see all of them at once.

    Each check is in a `with refusals:` of its own, and its error is collected; `refusals.end()` raises the first with
    all others attached. NotAllowed is raised at once: a user without the right has nothing to correct.
    """

    def __init__(self) -> None:
        self.all: list[DomainError] = []
        self._known: set[tuple[str | None, str]] = set()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(exc, DomainError) or isinstance(exc, NotAllowed):
            return False
        for refusal in exc.every:
            key = (refusal.blamed, refusal.message)
            if key not in self._known and len(self.all) < MAX_REFUSALS:
                self._known.add(key)
                self.all.append(refusal)
        return True

    def __bool__(self) -> bool:
        return bool(self.all)

    def end(self) -> None:
        """Raise the collected errors, if any."""
        if self.all:
            first, *others = self.all
            first.others = tuple(others)
            raise first


class NotAllowed(DomainError, code="not_allowed", status=403): ...


class Invalid(DomainError, code="invalid", status=400):
    """The request itself is wrong: a value out of range, a name with odd characters."""


class NameTaken(DomainError, code="name_taken", field="name"):
    """Another thing has this name already."""


class NotFound(DomainError, code="not_found", status=404): ...


class StillInUse(DomainError, code="still_in_use"): ...
