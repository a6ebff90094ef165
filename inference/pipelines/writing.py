"""Pipelines are made, drafted, saved as versions, changed and deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals, StillInUse
from aiplatform.lib.titles import TITLE
from inference.pipelines import graph
from inference.pipelines.models import Pipeline, PipelineDraft, PipelineRun, PipelineVersion
from workers.core.clock import now

EMPTY: Mapping[str, Any] = {"format": graph.FORMAT, "steps": {}}
MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NOTE_LENGTH = 80, 500, 200


class DraftChanged(DomainError, code="draft_changed", status=412):
    """Another window, or another machine, has saved this draft since."""


@transaction.atomic
def create(
    *,
    user: User,
    name: str,
    description: str = "",
    visibility: str = Pipeline.Visibility.PRIVATE,
    spec: Mapping[str, Any] | None = None,
    layout: Mapping[str, Any] | None = None,
) -> Pipeline:
    """Create a pipeline; with `spec` also its first version.

    Raises:
        Invalid: the name or the specification is wrong.
        NameTaken: the person has a pipeline of this name.
    """
    refusals = Refusals()
    with refusals:
        check_about(name=name, description=description)
    with refusals:
        if Pipeline.objects.filter(owner=user, name=name).exists():
            raise _taken(name)
    parsed = graph.Spec({})
    with refusals:
        parsed = graph.parse(spec or EMPTY)
    refusals.end()
    try:
        with transaction.atomic():
            pipeline = Pipeline.objects.create(
                owner=user, name=name, description=description.strip(), visibility=visibility,
                layout=graph.layout_of(layout or {}, parsed),
            )  # fmt: skip
    except IntegrityError:
        raise _taken(name) from None
    if parsed.steps:
        save_version(pipeline, user=user, spec=graph.canonical(parsed))
    return pipeline


def check_about(*, name: str | None = None, description: str | None = None) -> None:
    """Refuse a name with invalid characters, and texts that are too long.

    Raises:
        Invalid.
    """
    refusals = Refusals()
    with refusals:
        if name is not None and (not re.fullmatch(TITLE.regex, name) or len(name) > MAX_NAME_LENGTH):
            raise Invalid(TITLE.message, field="name")
    with refusals:
        if description is not None and len(description) > MAX_DESCRIPTION_LENGTH:
            message = _("A description can have at most %(most)s characters.")
            raise Invalid(message % {"most": MAX_DESCRIPTION_LENGTH}, field="description")
    refusals.end()


def _taken(name: str) -> NameTaken:
    return NameTaken(_("You already have a pipeline named %(name)s.") % {"name": name})


@transaction.atomic
def change(pipeline: Pipeline, **fields: str) -> Pipeline:
    """Change name, description or visibility.

    Raises:
        Invalid, NameTaken.
    """
    check_about(**{name: value for name, value in fields.items() if name != "visibility"})
    current = Pipeline.objects.select_for_update().get(pk=pipeline.pk)
    for name, value in fields.items():
        setattr(current, name, value.strip())
    try:
        with transaction.atomic():
            current.save(update_fields=[*fields, "updated_at"])
    except IntegrityError:
        raise _taken(current.name) from None
    return current


@transaction.atomic
def delete(pipeline: Pipeline) -> None:
    """Delete a pipeline with its versions and the records of its runs; jobs, models and data stay.

    Raises:
        StillInUse: one of its runs is active.
    """
    fresh = Pipeline.objects.select_for_update().get(pk=pipeline.pk)
    if fresh.runs.filter(state=PipelineRun.State.RUNNING).exists():
        raise StillInUse(_("A run of this pipeline is active. Cancel it, and wait until it has ended."))
    fresh.delete()


# Versions ----------------------------------------------------------------------------------------------------------


@transaction.atomic
def save_version(
    pipeline: Pipeline,
    *,
    user: User,
    spec: Mapping[str, Any] | None = None,
    layout: Mapping[str, Any] | None = None,
    note: str = "",
) -> PipelineVersion:
    """Save a version; the same meaning as the newest one gives that one back, that of an earlier one brings it back.

    Triggers that this person set up go on with it. Those of other people run as them, so they are asked first.

    Args:
        spec: None takes the person's draft.

    Raises:
        Invalid: it is wrong, has no steps, or there is no draft.
    """
    draft = pipeline.drafts.filter(person=user).first()
    if spec is None:
        if draft is None:
            raise Invalid(_("No draft to save. Change something first."), field="spec")
        spec, layout = draft.spec, draft.layout if layout is None else layout
    parsed = graph.parse(spec)
    if not parsed.steps:
        raise Invalid(_("No steps yet. Add one from the palette."), field="spec")
    if len(note) > MAX_NOTE_LENGTH:
        raise Invalid(_("At most %(most)s characters.") % {"most": MAX_NOTE_LENGTH}, field="note")
    fresh = Pipeline.objects.select_for_update().get(pk=pipeline.pk)
    if layout is not None:
        fresh.layout = graph.layout_of(layout, parsed)
    fresh.save(update_fields=["layout", "updated_at"])
    digest = graph.digest(parsed)
    version = newest(fresh)
    if version is None or version.sha256 != digest:
        version = PipelineVersion.objects.create(
            pipeline=fresh, number=version.number + 1 if version else 1, spec=graph.canonical(parsed), sha256=digest,
            note=note.strip(), created_by=user,
        )  # fmt: skip
        _ask_owners(fresh, version, user)
    fresh.triggers.filter(owner=user).update(agreed=version.number)
    if draft is not None:
        draft.delete()
    return version


def _ask_owners(pipeline: Pipeline, version: PipelineVersion, by: User) -> None:
    """Notify the owners of triggers that remain on their agreed version that another user saved a new one."""
    others = pipeline.triggers.exclude(owner=by).select_related("owner")
    for person in {trigger.owner for trigger in others}:
        title = wording.message(
            "pipeline.version_waits", name=pipeline.name, version=version.number, person=by.get_full_name()
        )
        notify(person, "approval", title=title, url=f"/pipelines/{pipeline.pk}/", key=f"pipeline-version-{version.pk}")


def newest(pipeline: Pipeline) -> PipelineVersion | None:
    """Return the newest version; None while there is none."""
    version: PipelineVersion | None = pipeline.versions.order_by("-number").first()
    return version


def newest_or_refused(pipeline: Pipeline) -> PipelineVersion:
    """The newest version.

    Raises:
        Invalid: there is none.
    """
    version = newest(pipeline)
    if version is None:
        raise Invalid(_("This pipeline has no version yet. Add steps and save a version."), field="version")
    return version


# Drafts ------------------------------------------------------------------------------------------------------------


def draft_of(pipeline: Pipeline, user: User) -> PipelineDraft:
    """Return the user's draft, or an unsaved one of the newest version (revision 0)."""
    draft = pipeline.drafts.filter(person=user).first()
    if draft is not None:
        return draft
    version = newest(pipeline)
    return PipelineDraft(
        pipeline=pipeline, person=user, revision=0, base=version.number if version else 0,
        spec=version.spec if version else dict(EMPTY), layout=pipeline.layout,
    )  # fmt: skip


def is_changed(draft: PipelineDraft) -> bool:
    """Whether a draft holds something that no version does, so that it would be lost with it."""
    if not draft.revision or not draft.spec.get("steps"):
        return False
    versions = PipelineVersion.objects.filter(pipeline=draft.pipeline_id)
    return not versions.filter(sha256=graph.digest(graph.parse(draft.spec))).exists()


@transaction.atomic
def keep_draft(
    pipeline: Pipeline, user: User, *, spec: Mapping[str, Any], layout: Mapping[str, Any], revision: int
) -> PipelineDraft:
    """Store a user's draft; it may be incomplete.

    Args:
        revision: that the writer began from; 0 where there was no draft.

    Raises:
        Invalid: its shape is wrong.
        DraftChanged: the draft has another revision by now.
    """
    parsed = graph.parse(spec)
    places = graph.layout_of(layout, parsed)
    Pipeline.objects.select_for_update().get(pk=pipeline.pk)
    draft = pipeline.drafts.filter(person=user).first()
    if revision != (draft.revision if draft else 0):
        raise DraftChanged(_("This draft was changed in another window since you opened it."))
    columns: dict[str, Any] = {"spec": graph.canonical(parsed), "layout": places, "changed_at": now()}
    if draft is None:
        version = newest(pipeline)
        return PipelineDraft.objects.create(
            pipeline=pipeline, person=user, base=version.number if version else 0, **columns
        )
    for name, value in columns.items():
        setattr(draft, name, value)
    draft.revision += 1
    draft.save()
    return draft


def drop_draft(pipeline: Pipeline, user: User) -> None:
    """Forget what the person drew since the newest version."""
    pipeline.drafts.filter(person=user).delete()
