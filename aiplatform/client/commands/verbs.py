"""Helpers of all nouns: verbs, lists, pairs, confirmation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aiplatform.client import output
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.output import Column
from aiplatform.lib.typed import typed

Run = Callable[[argparse.Namespace], int | None]
Parent = argparse.ArgumentParser
Nouns = Any  # argparse keeps the type of its subparsers private


class Noun:
    """The verbs of `aip NAME …`; `also` are other names of it."""

    def __init__(self, nouns: Nouns, parent: Parent, name: str, help_text: str, also: Sequence[str] = ()) -> None:
        self.parent = parent
        self.name = name
        group = nouns.add_parser(name, help=help_text, description=help_text, aliases=also)
        self.verbs = group.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(self, name: str, run: Run, help_text: str) -> argparse.ArgumentParser:
        """Add `aip NOUN name`; the returned parser takes the verb's own arguments."""
        return command(self.verbs, self.parent, name, run, help_text)


def command(group: Nouns, parent: Parent, name: str, run: Run, help_text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = group.add_parser(name, help=help_text, description=help_text, parents=[parent])
    made.set_defaults(run=run)
    return made


def paging(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("-n", "--limit", type=int, default=50, help="at most this many rows (50)")


def show_list(
    args: argparse.Namespace,
    rows: Iterable[Any],
    columns: Sequence[Column],
    *,
    empty: str = "Nothing here yet.",
) -> None:
    if args.json:
        output.as_json(list(rows))
    else:
        output.table(rows, columns, empty=empty)


def show_one(args: argparse.Namespace, row: Any, fields: Sequence[Column]) -> None:
    if args.json:
        output.as_json(row)
    else:
        output.record(row, fields)


def done(args: argparse.Namespace, row: Any, sentence: str) -> None:
    """Report the result: the answer as JSON, or the message."""
    if args.json:
        output.as_json(row if row is not None else {})
    else:
        output.say(sentence)


def pairs(given: Sequence[str] | None, *, what: str = "--param") -> dict[str, object]:
    """Parse `["lr=0.1", "epochs=3", "flip=true"]` to typed values: number, true/false, text (also quoted)."""
    values: dict[str, object] = {}
    for item in given or ():
        name, equals, raw = item.partition("=")
        if not equals or not name:
            raise ClientError(f"{what} {item}: write it as name=value.", USAGE)
        values[name] = typed(raw)
    return values


def limit(raw: str) -> float | int | None:
    """A number of zero or more, or "none": for limits that may be absent.

    Raises:
        ArgumentTypeError: it is neither.
    """
    if raw == "none":
        return None
    value = typed(raw)
    if isinstance(value, bool | str) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{raw} is neither a number nor none")
    return value


def confirm(args: argparse.Namespace, question: str) -> None:
    """Ask before something is lost; `--yes` answers, which scripts must give."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise ClientError("Nothing was removed. Add --yes to do it without asking.", USAGE)
    print(f"{output.clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ClientError("Nothing was removed.")
