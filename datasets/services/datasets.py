"""Create, change and delete datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed, Refusals, StillInUse
from aiplatform.lib.files import remove_tree
from datasets.models import Asset, AssetClass, Dataset, DatasetVersion, Import
from datasets.services import imports, removal, server_paths, uploads, usage
from datasets.storage import dataset_paths

NAME_MAX, INTRO_MAX = 25, 50
Visibility, Source = Dataset.Visibility, Dataset.Source


class NameTaken(DomainError, code="dataset_exists", field="name"): ...


class NotOwner(NotAllowed, code="not_owner"):
    """The dataset is public, but only its owner may change it."""


class VisibilityLocked(DomainError, code="visibility_locked", field="visibility"): ...


@transaction.atomic
def create(
    *,
    owner: User,
    name: str,
    intro: str,
    annotated: bool | None = None,
    visibility: str = Visibility.PRIVATE,
    source: str = Source.UPLOAD,
    upload_id: str = "",
    server_path: str = "",
    split: Mapping[str, Any] | None = None,
) -> Dataset:
    """Make a dataset, and start its import where its data is given already.

    An own dataset of the same name whose imports all failed or were cancelled is replaced.

    Args:
        annotated: True insists on annotations in the data, False takes the images only; None takes what is there.
        upload_id: a complete upload (source "upload"); may follow later.
        server_path: folder on the server (source "server"); required there.
        split: as `imports.start` takes it.

    Raises:
        NameTaken: among the owner's and the public datasets.
        Invalid, NotFound, PathRefused, PathMissing: a value cannot be used.
    """
    check(
        owner=owner, name=name, intro=intro, visibility=visibility, source=source,
        server_path=server_path, upload_id=upload_id,
    )  # fmt: skip
    for leftover in removal.discarded(owner).filter(name__iexact=_named(name)):
        removal.hide(leftover)
    try:
        with transaction.atomic():
            dataset = Dataset.objects.create(
                owner=owner,
                name=_named(name),
                intro=_introduced(intro),
                visibility=visibility,
                source=source,
                server_path=server_path if source == Source.SERVER else "",
            )
    except IntegrityError:
        raise NameTaken(_("A dataset named %(name)s already exists.") % {"name": name}) from None
    if source == Source.SERVER or upload_id:
        path = server_path if source == Source.SERVER else ""
        imports.start(
            dataset=dataset, by=owner, annotated=annotated, upload_id="" if path else upload_id, server_path=path,
            split=split, creates_dataset=True,
        )  # fmt: skip
    return dataset


def check(
    *,
    owner: User,
    name: str | None = None,
    intro: str | None = None,
    visibility: str = Visibility.PRIVATE,
    source: str = "",
    server_path: str = "",
    upload_id: str = "",
) -> None:
    """Raise all errors that `create` would raise for these values, and write nothing."""
    refusals = Refusals()
    if name is not None:
        with refusals:
            _check_free(owner, _named(name))
    if intro is not None:
        with refusals:
            _introduced(intro)
    with refusals:
        if visibility not in Visibility.values or (source and source not in Source.values):
            raise Invalid(_("Choose one of the available values."))
    with refusals:
        if source == Source.SERVER and not server_path:
            raise Invalid(_("Enter the path of the data on the server."), field="server_path")
        if source == Source.SERVER or (server_path and not source):
            server_paths.require(server_path, by=owner)
        elif upload_id:
            uploads.require(owner, upload_id)
    refusals.end()


def _check_free(owner: User, name: str) -> None:
    taken = Dataset.objects.filter(Q(owner=owner) | Q(visibility=Visibility.PUBLIC), name__iexact=name)
    if taken.exclude(pk__in=removal.discarded(owner).values("pk")).exists():
        raise NameTaken(_("A dataset named %(name)s already exists.") % {"name": name})


def edit(dataset: Dataset, *, intro: str | None = None, visibility: str | None = None) -> Dataset:
    """Change the introduction, and, until data has come in, who may see the dataset. Names stay.

    Raises:
        VisibilityLocked: data has come in.
    """
    refusals = Refusals()
    with refusals:
        if intro is not None:
            dataset.intro = _introduced(intro)
    with refusals:
        if visibility is not None and visibility != dataset.visibility:
            if visibility not in Visibility.values:
                raise Invalid(_("Choose one of the available values."), field="visibility")
            if dataset.is_locked:
                raise VisibilityLocked(_("The visibility of a dataset cannot be changed after data was uploaded."))
            dataset.visibility = visibility
    refusals.end()
    dataset.save(update_fields=["intro", "visibility", "updated_at"])
    return dataset


def delete(dataset: Dataset) -> None:
    """Hide a dataset at once and remove its files soon. Data left in place on the server is not touched.

    Raises:
        StillInUse: naming who uses it.
    """
    users = [phrase for version in dataset.versions.all() for phrase in usage.users_of(version)]
    if users:
        users = sorted(set(users))
        raise StillInUse(
            _("%(name)s is still used by %(users)s.") % {"name": dataset.name, "users": ", ".join(users[:10])},
            users=users,
        )
    if dataset.imports.filter(state=Import.State.COMMITTING).exists():
        raise StillInUse(_("A version is being written. Try again in a moment."))
    removal.hide(dataset)


def purge(dataset_id: int) -> None:
    """Remove a deleted dataset's files, then its rows. Safe to run again."""
    dataset = Dataset.objects.filter(pk=dataset_id, deleting=True).first()
    if dataset is None:
        return
    for row in dataset.imports.select_related("upload", "version", "dataset"):
        imports.clean(row)
    for version in dataset.versions.all():
        remove_tree(dataset_paths.thumbnail_folder(version))
    remove_tree(dataset_paths.dataset_folder(dataset.pk))
    for version in dataset.versions.order_by("-number"):
        _forget(version.pk)
    dataset.delete()


def _forget(version_id: int) -> None:
    """Delete a version's rows in portions: a hundred thousand in one go would hold the database for seconds."""
    while batch := list(Asset.objects.filter(version_id=version_id).values_list("pk", flat=True)[:2000]):
        with transaction.atomic():
            AssetClass.objects.filter(asset_id__in=batch)._raw_delete(AssetClass.objects.db)
            Asset.objects.filter(pk__in=batch)._raw_delete(Asset.objects.db)
    DatasetVersion.objects.filter(pk=version_id).delete()


def sweep_deleted() -> int:
    """Finish removals that a dead worker left; returns how many."""
    waiting = list(Dataset.objects.filter(deleting=True).values_list("pk", flat=True)[:20])
    for dataset_id in waiting:
        purge(dataset_id)
    return len(waiting)


def _named(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable() or name.startswith("~"):
        raise Invalid(_("The name must have 1 to %(max)d printable characters.") % {"max": NAME_MAX}, field="name")
    return name


def _introduced(intro: str) -> str:
    intro = intro.strip()
    if len(intro) > INTRO_MAX or not intro.isprintable():
        raise Invalid(
            _("The description can have at most %(max)d printable characters.") % {"max": INTRO_MAX}, field="intro"
        )
    return intro
