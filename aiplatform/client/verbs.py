"""Verbs: the declaration of a command, the request that it sends and what it prints."""

from __future__ import annotations

import argparse
import string
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiplatform.client import output
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import Option, Options, fields
from aiplatform.client.output import Column

Run = Callable[[argparse.Namespace], int | None]


@dataclass(frozen=True)
class Verb:
    """A command, declared by its request or by a function.

    One of `get`, `post`, `patch`, `put`, `delete` names the route of the request. Options whose name is in the route
    fill it; all others become the query of GET and DELETE, and the fields of the body of other methods.

    Attributes:
        run: function in place of a request; it returns the exit code.
        send: further fields of the request, or a function of the arguments that returns them.
        once: send an Idempotency-Key, so that a POST that is sent twice creates one row.
        confirm: question before the request, as a template like `done`; needs the option YES.
        table: columns of the list that is printed.
        rows: key of the list in the response.
        record: fields of the one row that is printed.
        empty: message for an empty list.
        prints: key of the response that is printed to stdout.
        done: message with the result: a template in which `args` are the arguments and `row` is the response, or a
            function of both.
        exit_code: computes the exit code of the response.
    """

    name: str
    help: str
    options: Options = ()
    run: Run | None = None
    get: str = ""
    post: str = ""
    patch: str = ""
    put: str = ""
    delete: str = ""
    send: Mapping[str, Any] | Callable[[argparse.Namespace], Mapping[str, Any]] | None = None
    once: bool = False
    confirm: str = ""
    table: Sequence[Column] | None = None
    rows: str = ""
    record: Sequence[Column] | None = None
    empty: str = "Nothing here yet."
    prints: str = ""
    done: str | Callable[[argparse.Namespace, Any], str] = ""
    exit_code: Callable[[Any], int] | None = None

    @property
    def request(self) -> tuple[str, str]:
        """Method and route."""
        return next((name.upper(), route) for name in METHODS if (route := getattr(self, name)))

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        for item in self.options:
            item.add_to(parser)
        parser.set_defaults(run=self.run or self.call, declared=self)

    def call(self, args: argparse.Namespace) -> int | None:
        """Send the request and print the response."""
        method, route = self.request
        in_route = {name for _, name, _, _ in string.Formatter().parse(route) if name}
        route = route.format(**fields(args, [item for item in self._flat() if item.field in in_route]))
        sent = fields(args, [item for item in self._flat() if item.field not in in_route])
        sent |= dict(self.send(args) if callable(self.send) else self.send or {})
        if self.confirm:
            confirm(args, message(self.confirm, args, None))
        if method == "GET" and self.table is not None and not self.rows:
            show_list(
                args, args.client.pages(route, limit=getattr(args, "limit", None), **sent), self.table, self.empty
            )
            return None
        if method == "POST":
            row = args.client.post(route, sent, once=self.once)
        elif method in ("GET", "DELETE"):
            row = args.client.call(method, route, query=sent)
        else:
            row = args.client.call(method, route, body=sent)
        return self.report(args, row)

    def report(self, args: argparse.Namespace, row: Any) -> int | None:
        """Print a response; returns the exit code."""
        if self.table is not None:
            show_list(args, row[self.rows] if self.rows else row, self.table, self.empty)
        elif self.record is not None:
            show_one(args, row, self.record)
        else:
            if self.prints and not args.json:
                print(row[self.prints])
            done(args, row, self.done(args, row) if callable(self.done) else message(self.done, args, row))
        return self.exit_code(row) if self.exit_code else None

    def _flat(self) -> list[Option]:
        return [item for group in self.options for item in group.items]


METHODS = ("get", "post", "patch", "put", "delete")


@dataclass(frozen=True)
class Group:
    """Verbs below a noun, as `aip evaluate sets list`."""

    name: str
    help: str
    verbs: Sequence[Verb]


class _Cleaned(string.Formatter):
    """Formats texts without their control characters."""

    def format_field(self, value: Any, spec: str) -> str:
        return str(format(output.clean(value) if isinstance(value, str) else value, spec))


def message(template: str, args: argparse.Namespace, row: Any) -> str:
    """Fill a message with the arguments and the response: `Device {args.id} is {row[state]}.`"""
    return _Cleaned().format(template, args=args, row=row)


def show_list(
    args: argparse.Namespace, rows: Iterable[Any], columns: Sequence[Column], empty: str = "Nothing here yet."
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
    """Report the result: the response as JSON, or the message."""
    if args.json:
        output.as_json(row if row is not None else {})
    else:
        output.say(sentence)


def confirm(args: argparse.Namespace, question: str) -> None:
    """Ask before something is lost; `--yes` answers, which scripts must give."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise ClientError("Nothing was removed. Add --yes to do it without asking.", USAGE)
    print(f"{output.clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ClientError("Nothing was removed.")
