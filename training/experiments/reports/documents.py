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

LONGEST_BYTES, MAX_LINES, MAX_PANELS = 200_000, 5000, 20


@dataclass(frozen=True)
class Broken:
    """A panel that cannot be read, and why."""

    line: int
    sentences: list[str]


def parts(text: str) -> list[Panel | Broken]:
    """Return the panels of a text in their order, including those that cannot be read."""
    blocks: list[Panel | Broken] = []
    for fence in markdown.fences(text, longest=LONGEST_BYTES):
        if fence.word not in panels.KINDS:
            continue
        try:
            blocks.append(panels.read(fence))
        except DomainError as exc:
            blocks.append(Broken(fence.line, [error.message for error in exc.every]))
    return blocks


def check(text: str, user: User) -> Sequence[Panel]:
    """Return the panels of a text that may be saved.

    Raises:
        Invalid: it is too long, has too many panels, or some of them cannot be read; all of it at once.
    """
    refusals = Refusals()
    with refusals:
        if len(text.encode()) > LONGEST_BYTES:
            message = _("A report can have at most %(most)s kB. Split it in two.") % {"most": LONGEST_BYTES // 1000}
            raise Invalid(message, field="text")
    with refusals:
        if text.count("\n") >= MAX_LINES:
            message = _("A report can have at most %(most)s lines. Split it in two.") % {"most": MAX_LINES}
            raise Invalid(message, field="text")
    refusals.end()
    good: list[Panel] = []
    blocks = parts(text)
    for block in blocks:
        if isinstance(block, Broken):
            for sentence in block.sentences:
                with refusals:
                    raise Invalid(sentence, field="text")
            continue
        with refusals:
            panels.check(block, user)
            good.append(block)
    with refusals:
        if len(blocks) > MAX_PANELS:
            message = _("A report can have at most %(most)s panels; this one has %(there)s.")
            raise Invalid(message % {"most": MAX_PANELS, "there": len(blocks)}, field="text")
    refusals.end()
    return good
