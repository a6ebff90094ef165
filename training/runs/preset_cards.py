"""Cards of the presets in the form of a new training: those that fit the chosen dataset version, and the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accounts.models import User
from datasets.models import DatasetVersion
from training.catalog.preset_fit import Offer, PresetFit, offer_for
from training.catalog.task_kinds import preset_for
from training.presets.catalog import PRESETS
from training.runs import measured
from training.runs.forms import OWN
from training.runs.measured import Reached


@dataclass(frozen=True)
class PresetCard:
    """A preset in the form, with the best result that it reached on the dataset."""

    fit: PresetFit
    reached: Reached | None = None


def context(user: User, version: DatasetVersion | None, chosen: str, *, is_pinned: bool = False) -> dict[str, Any]:
    """Return what `training/_preset_cards.html` needs.

    Args:
        chosen: name of the preset that is checked, or OWN.
        is_pinned: whether `chosen` stays checked though it does not fit: the form started from its parameters.
    """
    offer = offer_for(version)
    reached = measured.best_on(user, version) if version else {}
    chosen = _choose(offer, version, chosen, is_pinned=is_pinned)
    shown = [fit for fit in offer.others if fit.preset.name == chosen]
    others = [fit for fit in offer.others if fit.preset.name != chosen]
    return {
        "cards": [PresetCard(fit, reached.get(fit.preset.name)) for fit in (*offer.fitting, *shown)],
        "others": [PresetCard(fit) for fit in others],
        "chosen": chosen,
        "own": OWN,
    }


def _choose(offer: Offer, version: DatasetVersion | None, chosen: str, *, is_pinned: bool) -> str:
    """Return `chosen` if it can be used, else the preset recommended for the version, else custom code."""
    if chosen == OWN or offer.fits(chosen) or (is_pinned and chosen in PRESETS):
        return chosen
    names = [fit.preset.name for fit in offer.fitting]
    recommended = preset_for(version) if version else ""
    return recommended if recommended in names else next(iter(names), OWN)
