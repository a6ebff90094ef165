"""The text of a report, read: its panels, and everything that is wrong with them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import markdown
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from training.experiments.reports import panels
from training.experiments.reports.panels import Panel

LONGEST_BYTES, MOST_LINES, MOST_PANELS = 200_000, 5000, 20


@dataclass(frozen=True)
class Broken:
    """A panel that cannot be read, and why."""

    line: int
    sentences: list[str]


def parts(text: str) -> list[Panel | Broken]:
    """The panels of a text in their order, those that cannot be read among them."""
    found: list[Panel | Broken] = []
    for fence in markdown.fences(text, longest=LONGEST_BYTES):
        if fence.word not in panels.KINDS:
            continue
        try:
            found.append(panels.read(fence))
        except DomainError as exc:
            found.append(Broken(fence.line, [one.message for one in exc.every]))
    return found


def check(text: str, user: User) -> Sequence[Panel]:
    """The panels of a text that may be saved.

    Raises:
        Invalid: it is too long, has too many panels, or some of them cannot be read; all of it at once.
    """
    found = Refusals()
    with found:
        if len(text.encode()) > LONGEST_BYTES:
            said = _("A report has at most %(most)s kB. Split it in two.") % {"most": LONGEST_BYTES // 1000}
            raise Invalid(said, field="text")
    with found:
        if text.count("\n") >= MOST_LINES:
            said = _("A report has at most %(most)s lines. Split it in two.") % {"most": MOST_LINES}
            raise Invalid(said, field="text")
    found.end()
    good: list[Panel] = []
    there = parts(text)
    for one in there:
        if isinstance(one, Broken):
            for sentence in one.sentences:
                with found:
                    raise Invalid(sentence, field="text")
            continue
        with found:
            panels.check(one, user)
            good.append(one)
    with found:
        if len(there) > MOST_PANELS:
            said = _("A report has at most %(most)s panels; this one has %(there)s.")
            raise Invalid(said % {"most": MOST_PANELS, "there": len(there)}, field="text")
    found.end()
    return good
