"""Parsers that see foreign bytes, with the inputs that are worst for each.

A new parser is added by `register` in a module of this package whose name begins with `parsers_`. Its `modules` are
then known to `test_every_parser_is_registered`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tests.growth

Input = Callable[[int], Any]  # makes an input of about so many bytes


@dataclass(frozen=True)
class Parser:
    """A function that reads foreign bytes.

    Attributes:
        name: unique, a noun: "pipeline YAML".
        parse: takes one input; what it raises is ignored.
        inputs: by what repeats in them.
        limit: bytes or characters that the product lets through; larger inputs are refused before any work.
        modules: modules of the product that this entry covers.
        example: an input that is accepted, which shows that the parser is called as it should be.
        runs_in: WEB where a web process calls it, else JOB: a job, a worker or a process of its own.
    """

    name: str
    parse: Callable[[Any], object]
    inputs: Mapping[str, Input]
    limit: int
    modules: tuple[str, ...]
    example: Any
    runs_in: str = "web"


WEB, JOB = "web", "job"
PARSERS: dict[str, Parser] = {}


def register(parser: Parser) -> None:
    assert parser.name not in PARSERS, parser.name
    PARSERS[parser.name] = parser


def repeated(part: str, before: str = "", after: str = "") -> Input:
    """Inputs that repeat a part."""
    return lambda size: before + part * max(1, (size - len(before) - len(after)) // len(part)) + after


def numbered(template: str, before: str = "", after: str = "") -> Input:
    """Inputs that repeat a part with a number in it, so that no two are alike."""

    def make(size: int) -> str:
        count = max(1, (size - len(before) - len(after)) // len(template.format(100000)))
        return before + "".join(template.format(number) for number in range(count)) + after

    return make


def encoded(inputs: Mapping[str, Input]) -> dict[str, Input]:
    """The same inputs as bytes."""
    return {name: (lambda size, make=make: make(size).encode()) for name, make in inputs.items()}


def load() -> dict[str, Parser]:
    """Return all parsers."""
    for module in pkgutil.iter_modules(tests.growth.__path__):
        if module.name.startswith("parsers_"):
            importlib.import_module(f"tests.growth.{module.name}")
    return PARSERS
