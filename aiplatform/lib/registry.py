"""Entries that lower rooms use and upper rooms add: job kinds, shape kinds, search sources, sweeps.

    kinds: Registry[JobKind] = Registry("job kind")
    kinds.register(TrainingKind())          # in AppConfig.ready()
    kinds.get("training").prepare(…)
    for kind in kinds: …                    # in the order of registration

A `Slot` holds the one entry that exactly one upper room provides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Generic, TypeVar

Entry = TypeVar("Entry")


class UnknownName(KeyError):
    """Nothing is registered under this name; the message says what is."""

    def __str__(self) -> str:
        return str(self.args[0])


def dotted_name(entry: Callable[..., Any]) -> str:
    """Name of a registered function: "inference.evaluation.evaluations.using"."""
    return f"{entry.__module__}.{entry.__qualname__}"


class Registry(Generic[Entry]):
    """Named entries of one sort. Iteration yields the entries, `in` and `get` take names."""

    def __init__(
        self,
        what: str,
        *,
        name: Callable[[Entry], str] = attrgetter("name"),
        order: Callable[[Entry], Any] | None = None,
    ) -> None:
        """Make an empty registry.

        Args:
            what: the sort of entry in messages: "job kind".
            name: the name of an entry; its attribute `name` where nothing else is said.
            order: sort key of iteration and `names`; None keeps the order of registration.
        """
        self.what = what
        self._name = name
        self._order = order
        self._entries: dict[str, Entry] = {}

    def register(self, *entries: Entry) -> None:
        """Add entries; usually called from the owning app's AppConfig.ready().

        Raises:
            ValueError: an entry of this name is registered already. Nothing is added then.
        """
        added: dict[str, Entry] = {}
        for entry in entries:
            name = self._name(entry)
            if name in self._entries or name in added:
                raise ValueError(f"The {self.what} {name!r} is registered twice.")
            added[name] = entry
        self._entries |= added

    def get(self, name: str) -> Entry:
        """Return the entry of this name.

        Raises:
            UnknownName: a KeyError whose message lists the names there are.
        """
        if name not in self._entries:
            names = ", ".join(self.names()) or "none"
            raise UnknownName(f"There is no {self.what} {name!r}. Registered: {names}.")
        return self._entries[name]

    def find(self, name: str) -> Entry | None:
        """Return the entry of this name, None where there is none."""
        return self._entries.get(name)

    def names(self) -> list[str]:
        """Return the names in the order of iteration."""
        return [self._name(entry) for entry in self]

    def __iter__(self) -> Iterator[Entry]:
        entries = list(self._entries.values())
        return iter(entries if self._order is None else sorted(entries, key=self._order))

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    @contextmanager
    def temporarily(self, *entries: Entry, alone: bool = False) -> Iterator[None]:
        """Register entries for the block only; for tests.

        Args:
            entries: may take the place of a registered entry of the same name.
            alone: nothing but `entries` is registered during the block.
        """
        before = dict(self._entries)
        try:
            self._entries = ({} if alone else dict(before)) | {self._name(entry): entry for entry in entries}
            yield
        finally:
            self._entries = before


class Slot(Generic[Entry]):
    """A place for the one entry that an upper room provides."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._entry: Entry | None = None

    def register(self, entry: Entry) -> None:
        """Provide the entry.

        Raises:
            ValueError: it was provided already.
        """
        if self._entry is not None:
            raise ValueError(f"The {self.what} is registered twice.")
        self._entry = entry

    def get(self) -> Entry | None:
        """Return the entry, None if it is not registered."""
        return self._entry

    @contextmanager
    def temporarily(self, entry: Entry | None) -> Iterator[None]:
        """Let `entry` stand here for the block only; None empties the slot. For tests."""
        before = self._entry
        try:
            self._entry = entry
            yield
        finally:
            self._entry = before
