"""The card of a model: what it is for, what it learned from, where it fails, whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib.errors import Invalid, Refusals
from inference.registry import history
from inference.registry.models import Model


@dataclass(frozen=True)
class Field:
    """One part of a card."""

    name: str
    label: Any
    help: Any
    longest: int = 20_000
    markdown: bool = True


FIELDS = (
    Field(
        "purpose",
        gettext_lazy("Intended use"),
        gettext_lazy("Intended users and uses, and uses to avoid."),
    ),
    Field(
        "data",
        gettext_lazy("Data"),
        gettext_lazy("Training data: its source, and what is rare in it."),
    ),
    Field("limits", gettext_lazy("Limits"), gettext_lazy("Known errors, and conditions without evaluation.")),
    Field(
        "licence", gettext_lazy("License"), gettext_lazy("Such as MIT, CC BY 4.0, or internal."), 200, markdown=False
    ),
    Field("contact", gettext_lazy("Contact"), gettext_lazy("Contact for questions."), 200, markdown=False),
)
NAMES = tuple(field.name for field in FIELDS)


def read(model: Model) -> dict[str, str]:
    """Return all sections of a card by name; "" for a section without text."""
    return {name: str(model.card.get(name, "")) for name in NAMES}


def parts(card: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return label, text and format of the sections that have a text, in their order."""
    return [
        {"label": field.label, "markdown": field.markdown, "text": card[field.name]}
        for field in FIELDS
        if card.get(field.name)
    ]


def check(card: Mapping[str, Any]) -> dict[str, str]:
    """Return the given sections without leading and trailing blanks.

    Raises:
        Invalid: an unknown part, no text, or too long; all of it at once.
    """
    refusals, checked = Refusals(), {}
    fields_by_name = {field.name: field for field in FIELDS}
    for name, text in card.items():
        with refusals:
            if name not in fields_by_name:
                message = _("The model card has no section “%(name)s”. Available sections: %(known)s.")
                raise Invalid(message % {"name": str(name)[:50], "known": ", ".join(NAMES)}, field="card")
            if not isinstance(text, str) or "\x00" in text:
                raise Invalid(_("Must be a text."), field=name)
            if len(text) > fields_by_name[name].longest:
                message = _("Enter at most %(most)s characters.")
                raise Invalid(message % {"most": f"{fields_by_name[name].longest:,}"}, field=name)
            checked[name] = text.replace("\r\n", "\n").strip()
    refusals.end()
    return checked


@transaction.atomic
def write(*, model: Model, by: User, card: Mapping[str, Any]) -> Model:
    """Change the given sections; the others are unchanged.

    Raises:
        Invalid: see `check`.
    """
    sections = check(card)
    fresh: Model = Model.objects.select_for_update().get(pk=model.pk)
    before = read(fresh)
    changed = sorted(name for name, text in sections.items() if before[name] != text)
    if changed:
        fresh.card = {**before, **sections}
        fresh.save(update_fields=["card", "updated_at"])
        history.add(fresh, by, "model_card_changed", fields=changed)
    return fresh
