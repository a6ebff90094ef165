"""Options of verbs: how the command line parses them, and which fields of a request they become."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.http import Client
from aiplatform.lib.typed import typed

Find = Callable[[Client, Any], Any]


@dataclass(frozen=True)
class Option:
    """An option of a verb, or a positional argument.

    Attributes:
        flags: option strings, or the name of a positional argument.
        field: field of the request; empty: the option is not sent.
        settings: arguments of `ArgumentParser.add_argument`.
        find: looks up the value of the field, usually an id, for what the user typed; of a list, for each item.
        convert: computes the value of the field; may return a mapping of several fields where `field` is "*".
    """

    flags: tuple[str, ...]
    field: str
    settings: Mapping[str, Any]
    find: Find | None = None
    convert: Callable[[Any], Any] | None = None

    @property
    def name(self) -> str:
        """Name of the value in the parsed arguments."""
        return str(self.settings.get("dest") or _name(self.flags))

    @property
    def items(self) -> tuple[Option, ...]:
        return (self,)

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        parser.add_argument(*self.flags, **self.settings)

    def fields(self, args: argparse.Namespace) -> dict[str, Any]:
        """Fields of a request for the value of the option; without a value, none."""
        value: Any = getattr(args, self.name, None)
        absent = value is None and self.settings.get("default") is not argparse.SUPPRESS
        if not self.field or absent or not hasattr(args, self.name):
            return {}
        if self.find is not None:
            find = self.find
            value = [find(args.client, item) for item in value] if isinstance(value, list) else find(args.client, value)
        if self.convert is not None:
            value = self.convert(value)
        return dict(value) if self.field == "*" else {self.field: value}


@dataclass(frozen=True)
class Either:
    """Options that exclude each other."""

    items: tuple[Option, ...]
    required: bool = False

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group(required=self.required)
        for item in self.items:
            item.add_to(group)


Options = Sequence[Union[Option, Either]]


def _name(flags: Sequence[str]) -> str:
    flag = next((flag for flag in flags if flag.startswith("--")), flags[0])
    return flag.lstrip("-").replace("-", "_")


def option(
    *flags: str,
    type: Any = None,
    help: str | None = None,
    field: str | None = None,
    find: Find | None = None,
    convert: Callable[[Any], Any] | None = None,
    **settings: Any,
) -> Option:
    """Declare an option; its field has the name of the option unless `field` says otherwise."""
    if type is not None:
        settings["type"] = type
    if help is not None:
        settings["help"] = help
    sent = field if field is not None else str(settings.get("dest") or _name(flags))
    return Option(flags, sent, settings, find, convert)


def flag(*flags: str, help: str | None = None, field: str | None = None, **settings: Any) -> Option:
    """Declare an option without a value; it is sent as true or false, with `default=None` only as true."""
    return option(*flags, action="store_true", help=help, field=field, **settings)


def repeated(*flags: str, metavar: str | None = None, help: str | None = None, **settings: Any) -> Option:
    """Declare an option that may be repeated; its value is a list."""
    return option(*flags, action="append", metavar=metavar, help=help, **settings)


def either(*items: Option, required: bool = False) -> Either:
    return Either(items, required)


def fields(args: argparse.Namespace, options: Options, *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Fields of a request for the options, but for those of the names in `without`."""
    sent: dict[str, Any] = {}
    for group in options:
        for item in group.items:
            if item.name not in without:
                sent |= item.fields(args)
    return sent


def pairs(items: Sequence[str] | None, *, option: str = "--param") -> dict[str, object]:
    """Parse `["lr=0.1", "epochs=3", "flip=true"]` to typed values: number, true/false, text (also quoted)."""
    values: dict[str, object] = {}
    for item in items or ():
        name, equals, raw = item.partition("=")
        if not equals or not name:
            raise ClientError(f"{option} {item}: write it as name=value.", USAGE)
        values[name] = typed(raw)
    return values


def read_text(path: str | Path) -> str:
    """Read a text file in UTF-8; `-` is standard input.

    Raises:
        ClientError: the file cannot be read.
    """
    try:
        return sys.stdin.read() if str(path) == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{path} cannot be read: {exc}", USAGE) from exc


def limit(raw: str) -> float | int | None:
    """Parse a number of zero or more, or "none": for limits that may be absent.

    Raises:
        ArgumentTypeError: it is neither.
    """
    if raw == "none":
        return None
    value = typed(raw)
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{raw} is neither a number nor none")
    return value


ID = option("id")
LIMIT = option("-n", "--limit", type=int, default=50, help="maximum number of rows (50)", field="")
YES = flag("-y", "--yes", help="do not ask for confirmation", field="")
TO = option("--to", type=Path, help="file to write; an incomplete one is resumed", field="")
WAIT = flag("--wait", help="wait for the end; exit code 6 on failure", field="")
