"""Verbs: the declaration of a command, the request that it sends and what it prints."""

from __future__ import annotations

import argparse
import string
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional
from urllib.parse import quote

from aiplatform.client import download, output, waiting
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import Option, Options, fields
from aiplatform.client.output import Column

Run = Callable[[argparse.Namespace], Optional[int]]


@dataclass(frozen=True)
class Verb:
    """A command, declared by its request or by a function.

    One of `get`, `post`, `patch`, `put`, `delete` names the route of the request. Options whose name is in the route
    fill it; all others become the query of GET and DELETE, and the fields of the body of other methods. Where `find` of
    an option in the route returns a row, its id fills the route, and the messages of a DELETE can use the row.

    Attributes:
        epilog: text below the help.
        example: a correct command line, named where the options are refused.
        run: function in place of a request; it returns the exit code.
        send: further fields of the request, or a function of the arguments that returns them; it finds the route of
            the request in `args.route`.
        unchanged: refusal of a request without fields.
        once: send an Idempotency-Key, so that a POST that is sent twice creates one row.
        confirm: question before the request, as a template like `done`; needs the option YES.
        table: columns of the list that is printed.
        rows: key of the list in the response.
        record: fields of the one row that is printed.
        empty: message for an empty list.
        show: prints the response where neither a table nor a record will do.
        file: name of the file that the response is saved as unless the option TO names another, as a template like
            `done`, or a function of the arguments.
        prints: key of the response that is printed to stdout.
        done: message with the result: a template in which `args` are the arguments and `row` is the response, or a
            function of both.
        exit_code: computes the exit code of the response.
        wait_for: template of the route that the option WAIT polls until its job has ended; the exit code is then that
            of the job.
        result: prints the job that was waited for.
        finish: function of the arguments and the response in place of all printing; it returns the exit code.
    """

    name: str
    help: str
    options: Options = ()
    epilog: str = ""
    example: str = ""
    run: Run | None = None
    get: str = ""
    post: str = ""
    patch: str = ""
    put: str = ""
    delete: str = ""
    send: Mapping[str, Any] | Callable[[argparse.Namespace], Mapping[str, Any]] | None = None
    unchanged: str = ""
    once: bool = False
    confirm: str = ""
    table: Sequence[Column] | None = None
    rows: str = ""
    record: Sequence[Column] | None = None
    empty: str = "Nothing here yet."
    show: Callable[[argparse.Namespace, Any], object] | None = None
    file: str | Callable[[argparse.Namespace], str] = ""
    prints: str = ""
    done: str | Callable[[argparse.Namespace, Any], str] = ""
    exit_code: Callable[[Any], int] | None = None
    wait_for: str = ""
    result: Callable[[argparse.Namespace, Any], object] | None = None
    finish: Callable[[argparse.Namespace, Any], int | None] | None = None

    @property
    def request(self) -> tuple[str, str]:
        """Method and route; both are empty where a function runs."""
        return next(((name.upper(), route) for name in METHODS if (route := getattr(self, name))), ("", ""))

    @property
    def parameters(self) -> set[str]:
        """Fields that fill the route."""
        return {name for _, name, _, _ in string.Formatter().parse(self.request[1]) if name}

    @property
    def arguments(self) -> list[Option]:
        """All options, also those that exclude each other."""
        return [item for group in self.options for item in group.items]

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        for item in self.options:
            item.add_to(parser)
        if self.epilog:
            parser.epilog, parser.formatter_class = self.epilog, argparse.RawDescriptionHelpFormatter
        parser.set_defaults(run=self.run or self.call, declared=self)

    def call(self, args: argparse.Namespace) -> int | None:
        """Send the request and print the response."""
        method, route = self.request
        values = fields(args, [item for item in self.arguments if item.field in self.parameters])
        target = next((value for value in values.values() if isinstance(value, dict)), None)
        ids = {name: value["id"] if isinstance(value, dict) else value for name, value in values.items()}
        args.route = route = route.format(**{name: quote(str(value), safe="") for name, value in ids.items()})
        sent = dict(self.send(args) if callable(self.send) else self.send or {})
        sent |= fields(args, [item for item in self.arguments if item.field not in self.parameters])
        if self.unchanged and not sent:
            raise ClientError(self.unchanged, USAGE)
        if self.confirm:
            confirm(args, message(self.confirm, args, target))
        if self.file:
            self.download(args, route, sent)
            return None
        if method == "GET" and self.table is not None and not self.rows:
            show_list(
                args, args.client.pages(route, limit=getattr(args, "limit", None), **sent), self.table, self.empty
            )
            return None
        if method == "POST":
            row = args.client.post(route, sent, once=self.once)
        elif method == "DELETE":
            args.client.call(method, route, query=sent)
            done(args, {"id": target["id"]} if target else {}, message(str(self.done), args, target))
            return None
        elif method == "GET":
            row = args.client.call(method, route, query=sent)
        else:
            row = args.client.call(method, route, body=sent)
        return self.report(args, row)

    def download(self, args: argparse.Namespace, route: str, query: Mapping[str, Any]) -> None:
        """Save the response; an interrupted download is resumed."""
        name = self.file(args) if callable(self.file) else message(self.file, args, None)
        target = args.to or Path(name.replace(":", "-v"))
        download.fetch(args.client, route, target, query=query, quiet=args.json)
        done(args, {"file": str(target)}, f"Written to {target}.")

    def report(self, args: argparse.Namespace, row: Any) -> int | None:
        """Print a response; returns the exit code."""
        if self.finish is not None:
            return self.finish(args, row)
        if self.wait_for and self.result and args.wait:
            row = waiting.until_over(args.client, message(self.wait_for, args, row))
            self.result(args, row)
            return waiting.exit_code(row)
        if self.table is not None and isinstance(row, dict) and not self.rows:
            output.as_json(row) if args.json else output.table([row], self.table)
        elif self.table is not None:
            show_list(args, row[self.rows] if self.rows else row, self.table, self.empty)
        elif self.record is not None:
            show_one(args, row, self.record)
        elif self.show is not None:
            output.as_json(row) if args.json else self.show(args, row)
        else:
            if self.prints and not args.json and row[self.prints] not in ("", None):
                print(row[self.prints])
            sentence = output.clean(self.done(args, row)) if callable(self.done) else message(self.done, args, row)
            done(args, row, sentence)
        return self.exit_code(row) if self.exit_code else None


METHODS = ("get", "post", "patch", "put", "delete")


@dataclass(frozen=True)
class Group:
    """Verbs below a noun, as `aip evaluate sets list`."""

    name: str
    help: str
    verbs: Sequence[Verb]


class _Cleaned(string.Formatter):
    """Formats texts without their control characters, and fields that an older platform does not report as nothing."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        try:
            return super().get_field(field_name, args, kwargs)
        except KeyError:
            return "", field_name

    def format_field(self, value: Any, spec: str) -> str:
        return output.clean(value) if isinstance(value, str) else str(format(value, spec))


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
    elif sentence:
        output.say(sentence)


def confirm(args: argparse.Namespace, question: str) -> None:
    """Ask before something is lost; `--yes` answers, which scripts must give."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise ClientError("Nothing was deleted. Add --yes to skip the confirmation.", USAGE)
    print(f"{output.clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ClientError("Nothing was deleted.")
