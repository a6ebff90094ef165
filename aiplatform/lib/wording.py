"""Messages as a code and facts: rows keep these, the text is made when it is read, in the reader's language.

    register("job", {
        "placed": ngettext_lazy("Placed on %(count)s node.", "Placed on %(count)s nodes.", "count"),
        "idle": Wording(_("The GPUs were idle for %(hours)s h."), hours=hours("idle_s")),
    })
    row.message = message("job.idle", idle_s=10800.0)
    str(row.message)                                       # "The GPUs were idle for 3 h."

Facts are plain JSON in raw units: seconds, MiB, names of states, and messages themselves. Words of others (a driver's,
an exception's, a person's) are facts too and shown as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.utils import translation
from django.utils.dateparse import parse_datetime
from django.utils.timezone import localtime

from aiplatform.lib import units
from aiplatform.lib.registry import Registry

MAX_FACT_LENGTH = 500
VERBATIM = "text"
_UNFILLED = units.Unknown()  # "–", which a plural takes for many


@dataclass(frozen=True, slots=True)
class Message:
    """A registered code and the facts that fill its text. The empty one says nothing and is false."""

    code: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.code)

    def __str__(self) -> str:
        """Return the text in the language that is active now; the code itself where a newer version wrote it."""
        if not self.code:
            return ""
        wording = WORDINGS.find(self.code)
        return wording.format(self.facts) if wording else self.code

    def as_json(self) -> dict[str, Any]:
        """What a row, a record or a fact keeps of it."""
        return {"code": self.code, "facts": dict(self.facts)} if self.code else {}

    @classmethod
    def from_json(cls, data: Any) -> Message:
        """Return the message that `as_json` wrote, a plain string as verbatim message, any other value as empty one."""
        if isinstance(data, Message):
            return data
        if isinstance(data, str):
            return verbatim(data)
        if not isinstance(data, Mapping) or not isinstance(data.get("code"), str):
            return cls()
        facts = data.get("facts")
        return cls(data["code"], dict(facts) if isinstance(facts, Mapping) else {})


def message(code: str, /, **facts: Any) -> Message:
    """A message of a registered code. Enums become their values, times ISO 8601, messages their JSON."""
    return Message(code, {name: _plain(value) for name, value in facts.items()})


def verbatim(text: object) -> Message:
    """Return a message with a text of another program or user, the same in every language; empty for an empty text."""
    plain = _plain(str(text))
    return Message(VERBATIM, {"text": plain}) if plain else Message()


def of_error(error: Exception) -> Message:
    """What an error tells people: the message it was raised with, else its own words."""
    worded = getattr(error, "worded", None)
    return worded if isinstance(worded, Message) else verbatim(getattr(error, "message", error))


class Worded(ValueError):
    """What cannot be read and why, as a message: reports keep it."""

    def __init__(self, worded: Message) -> None:
        super().__init__(worded)
        self.worded = worded


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    # neither database keeps a NUL or half a character in JSON
    return str(value).replace("\x00", "").encode(errors="replace").decode()[:MAX_FACT_LENGTH]


@dataclass(frozen=True, slots=True)
class Show:
    """How one place of a text is filled: `text` makes words of the fact named `fact`."""

    fact: str
    text: Callable[[Any], object]


class Wording:
    """The text of one code, with places for facts.

    Args:
        text: a lazy text, `ngettext_lazy(one, many, "count")` where a number decides, or a plain text without words.
        shows: formatters of placeholders whose fact is not shown unchanged, by the placeholder's name: `thousands` for
            the fact of that name, `hours("idle_s")` for another one.
    """

    def __init__(self, text: Any, /, **shows: Show | Callable[[str], Show]) -> None:
        self.text = text
        self.shows = {name: show if isinstance(show, Show) else show(name) for name, show in shows.items()}

    @property
    def facts(self) -> frozenset[str]:
        """Return the names of the facts that the text needs."""
        probe = _PlaceholderProbe()
        with translation.override("en"):
            self.text % probe
        return frozenset(self.shows[name].fact if name in self.shows else name for name in probe.places)

    def format(self, facts: Mapping[str, Any]) -> str:
        """Return the text with `facts` inserted; missing facts and those of another version show as “–”."""
        try:
            return str(self.text % _Filled(facts, self.shows)).strip()
        except (KeyError, TypeError, ValueError):
            return str(self.text % _PlaceholderProbe()).strip()


class _PlaceholderProbe(dict[str, Any]):
    """Notes which places a text asks for, and fills all of them with “–”."""

    def __init__(self) -> None:
        self.places: set[str] = set()

    def __missing__(self, name: str) -> object:
        self.places.add(name)
        return _UNFILLED


class _Filled(dict[str, Any]):
    """Facts as the places of a text show them."""

    def __init__(self, facts: Mapping[str, Any], shows: Mapping[str, Show]) -> None:
        self.kept, self.shows = facts, shows

    def __missing__(self, name: str) -> object:
        show = self.shows.get(name)
        fact = self.kept.get(show.fact if show else name)
        if fact is None:
            return _UNFILLED
        if show is None:
            return fact
        try:
            return show.text(fact)
        except (AttributeError, KeyError, TypeError, ValueError):  # a fact of another version of the platform
            return _UNFILLED


def hours(fact: str, digits: int = 2) -> Show:
    """Seconds as hours without needless zeros: 5400 → "1.5"."""
    return Show(fact, lambda seconds: units.number(round(seconds / 3600, digits)))


def memory(fact: str) -> Show:
    """MiB as "400 MiB" or "80 GiB"."""
    return Show(fact, lambda mib: units.memory(round(mib)))


def size(fact: str) -> Show:
    """Bytes as "400 MiB" or "1.5 GiB"."""
    return Show(fact, lambda amount: units.size(round(amount)))


def number(fact: str) -> Show:
    """A number without needless zeros: 2.0 → "2"."""
    return Show(fact, units.number)


def thousands(fact: str) -> Show:
    """How many there are as "12,345", in every language."""
    return Show(fact, lambda count: str(units.Count(count)))


def moment(fact: str) -> Show:
    """An ISO 8601 time in the active time zone, to the minute."""
    return Show(fact, _moment)


def _moment(text: str) -> str:
    at = parse_datetime(text)
    return localtime(at).strftime("%Y-%m-%d %H:%M %Z") if at else text


def listed(fact: str) -> Show:
    """Names with commas between them."""
    return Show(fact, ", ".join)


def counted(fact: str) -> Show:
    """How many there are, for a plural."""
    return Show(fact, len)


def labelled(fact: str, labels: Callable[[str], object]) -> Show:
    """A code by its label, which `labels` gives."""
    return Show(fact, lambda code: str(labels(code)))


def nested(fact: str) -> Show:
    """Show a message inside the message."""
    return Show(fact, lambda data: str(Message.from_json(data)))


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    wording: Wording


class Wordings:
    """All texts by code. Apps add theirs in AppConfig.ready()."""

    def __init__(self) -> None:
        self._entries: Registry[_Entry] = Registry("message")

    def register(self, prefix: str, texts: Mapping[str, Any]) -> None:
        """Add texts; their codes become "prefix.name".

        Args:
            texts: lazy texts that show their facts unchanged, and `Wording`s with formatters, by name.

        Raises:
            ValueError: a code is registered already. Nothing is added then.
        """
        entries = ((name, text if isinstance(text, Wording) else Wording(text)) for name, text in texts.items())
        self._entries.register(*(_Entry(f"{prefix}.{name}", wording) for name, wording in entries))

    def find(self, code: str) -> Wording | None:
        """Return the text of a code, None if it is not registered."""
        if code == VERBATIM:
            return _VERBATIM
        entry = self._entries.find(code)
        return entry.wording if entry else None

    def codes(self) -> list[str]:
        """Every registered code."""
        return self._entries.names()


_VERBATIM = Wording("%(text)s")
WORDINGS = Wordings()
register = WORDINGS.register
