"""The nouns of `aip` and the modules that declare their verbs; a module is imported when its noun is used."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from aiplatform.client import errors, output
from aiplatform.client.verbs import Group, Verb


@dataclass(frozen=True)
class Noun:
    """A word after `aip`: a command, or a noun with verbs.

    Attributes:
        module: module in `commands`; its `NOUNS` has the verb or the verbs under the name.
        also: other names.
    """

    name: str
    module: str
    help: str
    also: tuple[str, ...] = ()

    def declaration(self) -> Verb | Sequence[Verb | Group]:
        module = importlib.import_module(f"{__package__}.commands.{self.module}")
        verbs: Verb | Sequence[Verb | Group] = module.NOUNS[self.name]
        return verbs


NOUNS = (
    Noun("edge", "edge", "Groups of devices outside of the cluster."),
    Noun("approvals", "approvals", "Jobs that wait for somebody in charge of their cluster."),
)


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors and exit code 2."""

    def error(self, message: str) -> NoReturn:
        output.say(f"{self.prog}: {message}. See: {self.prog} --help")
        raise SystemExit(errors.USAGE)


class NounParser(Parser):
    """Parser of a noun; its verbs are added when it parses or prints its help."""

    noun: Noun | None = None

    def load(self) -> None:
        if self.noun is not None:
            noun, self.noun = self.noun, None
            _add(self, noun.declaration())

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        self.load()
        return super().parse_known_args(*args, **kwargs)

    def format_help(self) -> str:
        self.load()
        return super().format_help()


def add(nouns: Any) -> None:
    """Add all nouns to the parser of `aip`."""
    for noun in NOUNS:
        parser = nouns.add_parser(noun.name, help=noun.help, description=noun.help, aliases=noun.also)
        parser.noun = noun


def _add(parser: argparse.ArgumentParser, declaration: Verb | Sequence[Verb | Group]) -> None:
    if isinstance(declaration, Verb):
        _add_shared(parser)
        declaration.add_to(parser)
        return
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for verb in declaration:
        below = verbs.add_parser(verb.name, help=verb.help, description=verb.help)
        _add(below, verb if isinstance(verb, Verb) else verb.verbs)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    """Add the options that every verb takes."""
    group = parser.add_argument_group("options of every command")
    group.add_argument("--url", default=None, metavar="URL", help="address of the platform")
    group.add_argument("-o", "--output", choices=["table", "json"], default=argparse.SUPPRESS, help="what to print")
    group.add_argument("--json", dest="output", action="store_const", const="json", default=argparse.SUPPRESS)
