"""The interface of all kinds of destinations: their description, what is sent to them, and their failures.

A protocol is plain Python without rows: it gets a `Destination` and a `Parcel`, which exist only in memory, and runs in
a separate thread. To add one, write a class with the attributes and methods of `PushProtocol` and list it in
`protocols.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError

#: Called with the number of bytes of each piece that was sent; raises an error where the push must end.
OnSent = Callable[[int], None]


class PushFailed(DomainError, code="push_failed"):
    """A destination did not accept what was sent; the message states the reason and the next step.

    Attributes:
        again: whether the same may go well a little later.
    """

    def __init__(self, message: wording.Message, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


def failed(code: str, /, *, again: bool = False, **facts: Any) -> PushFailed:
    """Return a failure by the code of its text in the labels."""
    return PushFailed(wording.message(f"push.{code}", **facts), again=again)


@dataclass(frozen=True)
class Option:
    """An option of a kind of destination; stored unencrypted.

    Attributes:
        name: in `options` of a row and of the API; English, lower case.
        label: shown to users.
        yes_no: a tick instead of a text.
    """

    name: str
    label: Any
    help_text: Any = ""
    required: bool = False
    default: str | bool = ""
    yes_no: bool = False


@dataclass(frozen=True)
class Destination:
    """Where a push goes; only ever in memory.

    Attributes:
        secret: in the open; never logged, and hidden where the object is printed.
        ca: certificates in PEM that are believed besides the machine's own.
        host_key: the key that a machine by SSH must show; "" where none is known yet.
        allowed: hosts and networks of the house that an operator allowed.
    """

    address: str
    options: Mapping[str, Any]
    secret: str = field(default="", repr=False)
    ca: str = ""
    host_key: str = ""
    allowed: Sequence[str] = ()

    def option(self, name: str) -> str:
        """An option as text; "" where it was left out."""
        return str(self.options.get(name) or "")


@dataclass(frozen=True)
class Parcel:
    """What is pushed: bytes that are the same each time they are read.

    Attributes:
        name: of the file, without folders.
        size: bytes.
        sha256: of all of them, in hex.
        model: name of the model.
        number: of its version.
        opened: gives the bytes from the begin, piece by piece.
    """

    name: str
    size: int
    sha256: str
    model: str
    number: int
    opened: Callable[[], Iterator[bytes]]
    media_type: ClassVar[str] = "application/zip"

    def pieces(self, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Its bytes from `begin` up to `end` (None: to the last), piece by piece."""
        at, end = 0, self.size if end is None else end
        for piece in self.opened():
            if at + len(piece) > begin:
                yield piece[max(begin - at, 0) : end - at]
            at += len(piece)
            if at >= end:
                return


@dataclass(frozen=True)
class Tested:
    """The result of a test: the host key that the destination showed, where it has one."""

    host_key: str = ""


class PushProtocol(Protocol):
    """A kind of destination."""

    code: ClassVar[str]  # in rows
    label: ClassVar[Any]  # for people
    ports: ClassVar[Mapping[str, int]]  # schemes of its addresses, each with the usual port
    address_help: ClassVar[Any]
    options: ClassVar[tuple[Option, ...]]
    secret_label: ClassVar[Any]
    secret_required: ClassVar[bool]
    has_ca: ClassVar[bool]

    def check(self, destination: Destination) -> None:
        """Refuse what can never work, without a connection. Optional beyond what `options` declare.

        Raises:
            Invalid.
        """

    def test(self, destination: Destination) -> Tested:
        """Check that the destination responds and accepts the credentials; nothing is left there.

        Raises:
            PushFailed.
        """

    def send(self, destination: Destination, parcel: Parcel, on_sent: OnSent) -> str:
        """Push the parcel, verify what arrived and return its location as the destination names it.

        Raises:
            PushFailed.
        """
