"""What every kind of place has in common: how it is described, what is sent there, and how a failure is said.

A way is plain Python without rows: it gets a `Place` and a `Parcel`, both of them in memory alone, and runs in a thread
of its own. To add one, write a class with the attributes and methods of `Way` and name it in `ways.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError

#: Called with the bytes of each piece that left; raises where the push must end.
Came = Callable[[int], None]


class PushFailed(DomainError, code="push_failed"):
    """A place did not take what was sent; the message says why and what to do.

    Attributes:
        again: whether the same may go well a little later.
    """

    def __init__(self, message: wording.Message, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


def failed(code: str, /, *, again: bool = False, **facts: Any) -> PushFailed:
    """A failure by the code of its text in words.py."""
    return PushFailed(wording.message(f"push.{code}", **facts), again=again)


@dataclass(frozen=True)
class Option:
    """Something a kind of place asks for, in the open.

    Attributes:
        name: in `options` of a row and of the API; English, lower case.
        words: for people.
        yes_no: a tick instead of a text.
    """

    name: str
    words: Any
    help_text: Any = ""
    required: bool = False
    default: str | bool = ""
    yes_no: bool = False


@dataclass(frozen=True)
class Place:
    """Where something is pushed to; only ever in memory.

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
    """What a test of a place found: the host key that it showed, where it has one."""

    host_key: str = ""


class Way(Protocol):
    """A kind of place."""

    code: ClassVar[str]  # in rows
    words: ClassVar[Any]  # for people
    ports: ClassVar[Mapping[str, int]]  # schemes of its addresses, each with the usual port
    address_help: ClassVar[Any]
    options: ClassVar[tuple[Option, ...]]
    secret_words: ClassVar[Any]
    secret_required: ClassVar[bool]
    has_ca: ClassVar[bool]

    def check(self, place: Place) -> None:
        """Refuse what can never work, without asking the place. Optional beyond what `options` say.

        Raises:
            Invalid.
        """

    def test(self, place: Place) -> Tested:
        """See that the place answers and takes the credentials; nothing stays there.

        Raises:
            PushFailed.
        """

    def send(self, place: Place, parcel: Parcel, came: Came) -> str:
        """Push, check what arrived, and say where it lies now, as the place calls it.

        Raises:
            PushFailed.
        """
