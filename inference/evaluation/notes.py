"""What the evaluator noted, in the reader's language: it writes English, as scripts read it, and knows no gettext."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

#: Notes as the evaluator writes them, followed by the wording of earlier versions in stored results.
PATTERNS = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"The class “(?P<name>.+)” of the model is not in the dataset; its predictions are ignored\."
         r"|The model's class “(?P<earlier>.+)” is not in the dataset; its answers are left out\.",
         gettext_noop("The class “%(name)s” of the model is not in the dataset; its predictions are ignored.")),
        (r"The model does not (?:have|know) the class “(?P<name>.+)”\.",
         gettext_noop("The model does not have the class “%(name)s”.")),
        (r"(?P<name>.+) cannot be read and was (?:skipped|left out)\.",
         gettext_noop("%(name)s cannot be read and was skipped.")),
    )
)  # fmt: skip


def translate(note: str) -> str:
    """Translate a note of the evaluator; others are returned unchanged."""
    for pattern, text in PATTERNS:
        if match := pattern.fullmatch(note):
            facts = match.groupdict()
            return _(text) % {"name": facts["name"] or facts.get("earlier")}
    return note
