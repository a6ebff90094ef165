"""What the evaluator noted, in the reader's language: it writes English, as scripts read it, and knows no gettext."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

PATTERNS = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"The model's class “(?P<name>.+)” is not in the dataset; its answers are left out\.",
         gettext_noop("The model's class “%(name)s” is not in the dataset; its answers are left out.")),
        (r"The model does not know the class “(?P<name>.+)”\.",
         gettext_noop("The model does not know the class “%(name)s”.")),
        (r"(?P<name>.+) cannot be read and was left out\.", gettext_noop("%(name)s cannot be read and was left out.")),
    )
)  # fmt: skip


def translate(note: str) -> str:
    """Translate a note of the evaluator; others are returned unchanged."""
    for pattern, text in PATTERNS:
        if match := pattern.fullmatch(note):
            return _(text) % match.groupdict()
    return note
