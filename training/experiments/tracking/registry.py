"""The registry of scripts: names of models, their versions, aliases and stages.

The platform's own registry, whose models are evaluated and served, is another one (`inference`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from aiplatform.lib import ids
from aiplatform.lib.errors import Invalid, NotAllowed
from training.experiments.models import Run
from training.experiments.tracking import artifacts, refusals, shapes
from training.experiments.tracking.callers import Caller
from training.experiments.tracking.models import LoggedModel, TrackedModel, TrackedVersion

LONGEST_NAME, MAX_FACTS, MAX_VERSIONS = 250, 100, 10_000
STAGES = {"none": "None", "staging": "Staging", "production": "Production", "archived": "Archived"}
_SOURCE = re.compile(r"(runs|models|mlflow-artifacts):/(?!.*(?:\.\.|[\\%?#]))[\w./@ -]+\Z", re.ASCII)
_ALIAS = re.compile(r"(?!latest\Z)(?!v\d+\Z)[A-Za-z0-9_-]{1,250}\Z")


def find(caller: Caller, name: str) -> TrackedModel:
    """Return an own registered model.

    Raises:
        Missing: there is none.
    """
    model = TrackedModel.objects.filter(owner=caller.user, name=name).select_related("owner").first()
    if model is None:
        raise refusals.no_model(name)
    return model


def create(caller: Caller, name: str, *, description: str, tags: Mapping[str, str]) -> TrackedModel:
    """Register a name.

    Raises:
        There: it is taken.
        Invalid: no name, or one with what stands in addresses.
    """
    _check_name(name)
    model, made = TrackedModel.objects.get_or_create(
        owner=caller.user, name=name, defaults={"description": description, "tags": dict(tags)}
    )
    if not made:
        raise refusals.There(_("A model named %(name)s already exists.") % {"name": name[:250]})
    return model


def rename(model: TrackedModel, name: str) -> None:
    """Give a model another name.

    Raises:
        There, Invalid: see `create`.
    """
    _check_name(name)
    if TrackedModel.objects.filter(owner=model.owner, name=name).exclude(pk=model.pk).exists():
        raise refusals.There(_("A model named %(name)s already exists.") % {"name": name[:250]})
    model.name = name
    model.save(update_fields=["name", "updated_at"])


def delete(caller: Caller, row: TrackedModel | TrackedVersion) -> None:
    """Delete a model with its versions, or a version; the files stay with their run.

    Raises:
        NotAllowed: the program of a job asks.
    """
    if caller.token:
        raise NotAllowed(_("The token of a job cannot delete models."))
    if isinstance(row, TrackedVersion):
        model = row.model
        model.aliases = {alias: number for alias, number in model.aliases.items() if number != row.number}
        model.save(update_fields=["aliases"])
    row.delete()


def add_version(
    caller: Caller, model: TrackedModel, *, source: str, run_uid: str, logged_uid: str, description: str,
    tags: Mapping[str, str],
) -> TrackedVersion:  # fmt: skip
    """Register the next version of a model, whose files a run or a logged model of the caller has.

    Raises:
        Invalid: a source elsewhere, such as a path of this machine.
        Missing: a run or a model that is not there for the caller.
    """
    if not _SOURCE.match(source):
        raise Invalid(
            _("A version must be created from files that a run uploaded: runs:/… or models:/…"), field="source"
        )
    run = caller.run(run_uid) if run_uid else None
    logged = _logged(caller, source, logged_uid)
    for _again in range(5):
        newest = TrackedVersion.objects.filter(model=model).aggregate(newest=Max("number"))["newest"] or 0
        if newest >= MAX_VERSIONS:
            raise Invalid(_("A model can have at most %(most)s versions.") % {"most": MAX_VERSIONS}, field="name")
        try:
            with transaction.atomic():
                return TrackedVersion.objects.create(
                    model=model, number=newest + 1, source=source, run=run or (logged.run if logged else None),
                    logged=logged, description=description, tags=dict(tags),
                )  # fmt: skip
        except IntegrityError:  # somebody else was faster
            continue
    raise Invalid(_("Many versions are being registered. Try again in a moment."), field="name")


def _logged(caller: Caller, source: str, uid: str) -> LoggedModel | None:
    uid = uid or (match[1] if (match := re.match(r"models:/+(m-[0-9a-f]{32})\Z", source)) else "")
    if not uid:
        return None
    row = artifacts.of_model(caller, uid).row
    assert isinstance(row, LoggedModel)
    return row


def version(caller: Caller, name: str, number: str) -> TrackedVersion:
    """Return a version of an own model.

    Raises:
        Missing: there is none.
    """
    model = find(caller, name)
    rows = TrackedVersion.objects.filter(model=model).select_related("run", "logged")
    row = rows.filter(number=ids.number(number) or 0).first()
    if row is None:
        raise refusals.no_model(f"{name} {number}")
    row.model = model
    return row


def download_uri(row: TrackedVersion) -> str:
    """Where a client fetches the files of a version."""
    if row.logged is not None:
        return shapes.place_of_model(row.logged.uid)
    kind, _colon, path = row.source.partition(":")
    uid, _slash, below = path.strip("/").partition("/")
    run = Run.objects.filter(uid=uid).first() if kind == "runs" else None
    if run is None:
        return row.source
    return f"{shapes.place_of_run(uid)}/{below}" if below else shapes.place_of_run(uid)


def set_alias(model: TrackedModel, alias: str, number: int) -> None:
    """Let an alias stand for a version.

    Raises:
        Invalid: an alias that means something already.
        Missing: no such version.
    """
    if not _ALIAS.match(alias):
        raise Invalid(
            _("An alias can contain letters, digits, - and _, and must not be latest or v followed by a number."),
            field="alias",
        )
    if not TrackedVersion.objects.filter(model=model, number=number).exists():
        raise refusals.no_model(f"{model.name} {number}")
    model.aliases = _bounded({**model.aliases, alias: number})
    model.save(update_fields=["aliases", "updated_at"])


def by_alias(caller: Caller, name: str, alias: str) -> TrackedVersion:
    """Return the version of an alias.

    Raises:
        Missing: it stands for none.
    """
    number = find(caller, name).aliases.get(alias)
    if number is None:
        raise refusals.no_model(f"{name}@{alias}")
    return version(caller, name, str(number))


def delete_alias(model: TrackedModel, alias: str) -> None:
    """Let an alias stand for nothing."""
    model.aliases = {name: number for name, number in model.aliases.items() if name != alias}
    model.save(update_fields=["aliases", "updated_at"])


def move(row: TrackedVersion, stage: str, *, archive_others: bool) -> None:
    """Move a version to a stage.

    Raises:
        Invalid: a stage that is none.
    """
    if stage.lower() not in STAGES:
        message = _("%(name)s must be one of %(words)s.")
        raise Invalid(message % {"name": "stage", "words": ", ".join(STAGES.values())}, field="stage")
    name = STAGES[stage.lower()]
    with transaction.atomic():
        if archive_others:
            others = TrackedVersion.objects.filter(model=row.model, stage=name).exclude(pk=row.pk)
            others.update(stage=STAGES["archived"])
        row.stage = name
        row.save(update_fields=["stage", "updated_at"])


def describe(row: TrackedModel | TrackedVersion, text: str) -> None:
    """Keep what a person says of a model or a version."""
    row.description = text
    row.save(update_fields=["description", "updated_at"])


def set_tag(row: TrackedModel | TrackedVersion, key: str, value: str) -> None:
    """Add a tag, or change it."""
    row.tags = _bounded({**row.tags, key: value})
    row.save(update_fields=["tags", "updated_at"])


def delete_tag(row: TrackedModel | TrackedVersion, key: str) -> None:
    """Remove a tag; a missing one is ignored."""
    row.tags = {name: value for name, value in row.tags.items() if name != key}
    row.save(update_fields=["tags", "updated_at"])


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > LONGEST_NAME or "/" in name or ":" in name:
        message = _("The name of a model must have 1 to %(most)s characters, without slashes or colons.")
        raise Invalid(message % {"most": LONGEST_NAME}, field="name")


def _bounded(facts: dict[str, str | int]) -> dict[str, str | int]:
    if len(facts) > MAX_FACTS:
        raise Invalid(_("A model can have at most %(most)s of these.") % {"most": MAX_FACTS})
    return facts
