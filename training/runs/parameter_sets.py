"""Parameter sets: parameters of a preset under a name, in versions, for their owner and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NameTaken, NotFound, Refusals
from training.catalog import param_labels
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.runs import drafts, parameters
from training.runs.models import ParameterSet, ParameterSetUse, ParameterSetVersion, TrainingJob


@dataclass(frozen=True)
class Difference:
    """A parameter that is not as its preset has it."""

    name: str
    label: str
    usual: Any
    value: Any


def differences(preset: Preset | None, params: Mapping[str, Any]) -> list[Difference]:
    """What of `params` differs from the preset's defaults, in the preset's order."""
    if preset is None:  # of an older program; what it meant nobody knows any more
        return [Difference(name, name, None, value) for name, value in params.items()]
    changed = parameters.changed(preset, params)
    return [
        Difference(param.name, str(param_labels.label(param.name)), param.default, changed[param.name])
        for param in preset.parameters
        if param.name in changed
    ]


def all_values(preset: Preset | None, params: Mapping[str, Any]) -> list[Difference]:
    """Return every parameter of the preset with its default and its value in `params`, in the preset's order."""
    return [
        Difference(
            param.name, str(param_labels.label(param.name)), param.default, params.get(param.name, param.default)
        )
        for param in (preset.parameters if preset else ())
    ]


def save(
    *,
    user: User,
    name: str,
    preset: str,
    params: Mapping[str, Any],
    description: str = "",
    visibility: str | None = None,
    existing: ParameterSet | None = None,
) -> ParameterSet:
    """Save parameters under a name, or change an existing set; different parameters become a new version.

    Args:
        params: overrides of the preset's defaults; values equal to a default are not kept.
        visibility: None leaves that of an existing set, and keeps a new one private.

    Raises:
        UnknownPreset, BadParameter: see `parameters.read`.
        NameTaken: another set of its owner has this name.
        Invalid: another preset than it was made for, or no such visibility.
    """
    row = existing or ParameterSet(owner=user)
    refusals = Refusals()
    with refusals:
        chosen = parameters.preset_named(preset)
        changed = parameters.changed(chosen, parameters.read(chosen, params))
    with refusals:
        check_name(user, name, existing=existing)
    with refusals:
        if existing and existing.preset != preset:
            message = _("This parameter set belongs to the preset %(preset)s. Save a new set for another preset.")
            raise Invalid(message % {"preset": existing.preset}, field="preset")
    with refusals:
        if visibility is not None and visibility not in ParameterSet.Visibility.values:
            raise Invalid(_("Choose one of the available values."), field="visibility")
    refusals.end()
    try:
        with transaction.atomic():
            return _write(row, user, name, description, visibility, preset, changed)
    except IntegrityError:
        raise _taken() from None


def _write(
    row: ParameterSet, user: User, name: str, description: str, visibility: str | None, preset: str, params: Any
) -> ParameterSet:
    is_new = row.pk is None
    if not is_new:  # two who save at once make two versions, one after the other
        row = ParameterSet.objects.select_for_update().get(pk=row.pk)
    says_more = is_new or row.params != params
    row.number += 1 if says_more and not is_new else 0
    row.name, row.description, row.preset, row.params = name, description, preset, params
    row.visibility = row.visibility if visibility is None else visibility
    row.save()
    if says_more:
        ParameterSetVersion.objects.create(parameter_set=row, number=row.number, params=params, made_by=user)
    return row


def version_of(row: ParameterSet, number: int | None = None) -> ParameterSetVersion:
    """Return a version of a set, the newest if no number is given.

    Raises:
        NotFound: it never had so many.
    """
    version: ParameterSetVersion | None = row.versions.filter(number=number or row.number).first()
    if version is None:
        raise NotFound(_("%(name)s has no version %(number)s.") % {"name": row.name, "number": number})
    return version


def versions_for(user: User) -> QuerySet[ParameterSetVersion]:
    """Versions of the sets that this person may use."""
    return ParameterSetVersion.objects.filter(parameter_set__in=ParameterSet.objects.usable_by(user))


def record_use(training: TrainingJob, version: ParameterSetVersion | None) -> None:
    """Record which version a training was started from, independent of the set's later deletion."""
    if version is not None:
        ParameterSetUse.objects.create(
            training=training, version=version, name=str(version)[:70], params=version.params
        )


def is_changed(training: TrainingJob, use: ParameterSetUse) -> bool:
    """Whether the parameters were changed after the set was chosen; what switches and folds set does not count."""
    preset = PRESETS.get(training.preset)
    if preset is None:
        return False
    switched = {name for switch, name in drafts.SWITCHES.items() if switch in training.extra}
    if use.params.get("folds") and not use.params.get("fold"):
        switched.add("fold")  # which one it is was said by the platform
    now, then = (
        {name: value for name, value in params.items() if name not in switched}
        for params in (parameters.changed(preset, training.params), use.params)
    )
    return now != then


def check_name(user: User, name: str = "", *, existing: ParameterSet | None = None) -> None:
    """Refuse a name that another parameter set of the person has, or of the set's owner."""
    others = ParameterSet.objects.filter(owner=existing.owner if existing else user, name=name)
    if (others.exclude(pk=existing.pk) if existing else others).exists():
        raise _taken()


def _taken() -> NameTaken:
    return NameTaken(_("You already have a parameter set with this name. Choose another name."))
