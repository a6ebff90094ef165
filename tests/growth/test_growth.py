"""CPU time of every parser and pattern that sees foreign bytes grows with the size of its input, not with a power."""

from __future__ import annotations

import math
import re

import pytest

from tests.growth import registry
from tests.growth.measuring import MAX_EXPONENT, measure
from tests.growth.patterns import Use, attacks, uses

GUARDS = (22, 60, 300)  # characters that take no time unless a pattern is exponential or cubic
FIRST, LAST = 1500, 6000  # characters; the time of the last over that of the first gives the exponent
SUSPICIOUS_S = 0.0012  # of FIRST characters: a quadratic pattern takes 5 ms

#: Patterns that may be quadratic, and why that does no harm.
HARMLESS = {
    "aiplatform.lib.bundles:_CSS_COMMENT": "reads the product's own style sheets, when it is installed",
    "aiplatform.lib.bundles:_IMPORT": "reads the product's own scripts, when it is installed",
    "aiplatform.pages.help.hooks:INLINE_SCRIPT": "reads pages of the own documentation, when they are built",
}
#: Patterns that only the running code knows, and why they are safe.
UNKNOWN = {
    "training.presets.groups:match": "of a user, applied in a process of its own with a limit of CPU time",
    "training.runs.folds": "of a user, compiled to be checked, never applied here; at most 200 characters",
    "inference.evaluation.notes": "two literal sentences with one gap",
    "training.programs.request_text": "a random word and digits",
    "training.experiments.tracking.calls": "literal addresses with segments",
    "workers.jobs.output.causes": "measured by the parser “causes in a log”",
    "workers.supervisor.secrecy": "an alternation of literal words, measured by the parser “masked log”",
}


@pytest.mark.parametrize("name", sorted(registry.load()))
def test_time_of_a_parser_grows_linearly(name):
    parser = registry.load()[name]
    parser.parse(parser.example)  # is accepted

    steep = [growth for kind in parser.inputs if (growth := measure(parser, kind)).exponent > MAX_EXPONENT]

    assert steep == []


def test_quadratic_parser_is_found():
    def parse(text):
        return sum(first == second for first in text for second in text)

    parser = registry.Parser("quadratic", parse, {"letters": registry.repeated("a")}, 1_000, (), "a")

    assert measure(parser, "letters").exponent > MAX_EXPONENT


def exponent(use: Use, attack: tuple[str, str, str]) -> float:
    """Return the exponent of a suspicious attack, 0 of others, infinity where a short text takes long."""
    for size in GUARDS:
        if use.cpu_s(attack, size) > SUSPICIOUS_S and use.cpu_s(attack, size) > SUSPICIOUS_S:
            return math.inf
    if use.cpu_s(attack, FIRST) < SUSPICIOUS_S:
        return 0.0
    first, last = (min(use.cpu_s(attack, size) for _run in range(4)) for size in (FIRST, LAST))
    return math.log(last / first) / math.log(LAST / FIRST) if first > SUSPICIOUS_S else 0.0


def steepest(use: Use) -> tuple[float, tuple[str, str, str] | None]:
    """Return the first attack that takes more than linear time."""
    for attack in attacks(use.pattern):
        steep = exponent(use, attack)
        if steep > MAX_EXPONENT:
            return steep, attack
    return 0.0, None


def test_time_of_every_pattern_grows_linearly():
    known = [use for use in uses() if use.pattern is not None and use.name not in HARMLESS]

    steep = {use.name: found for use in known if (found := steepest(use))[1] is not None}

    assert len(known) > 150
    assert steep == {}


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [(r"(a+)+b", False), (r"\w+=", True), (r"[0-9][0-9_]*_[0-9_.]*", False), (r"\s*\d*\s*\Z", True), (r"a*a*b", False)],
)
def test_pattern_that_is_known_to_be_slow_is_found(pattern, is_searched):
    assert steepest(Use("known", re.compile(pattern), is_searched))[1] is not None


def test_patterns_that_cannot_be_read_from_the_source_are_explained():
    unread = {use.name for use in uses() if use.pattern is None}
    explained = {name for name in unread if name in UNKNOWN or name.rpartition(":")[0] in UNKNOWN}

    assert unread - explained == set()
    assert {
        name for name in UNKNOWN if not any(use == name or use.rpartition(":")[0] == name for use in unread)
    } == set()
    assert HARMLESS.keys() <= {use.name for use in uses()}
