"""Upload and train in one act: the data is imported, and the training submitted by itself once it is.

The row says what is wanted. Whoever looks at it, or the sweep, goes on with it: a process that dies between upload and
start costs some seconds, never the training.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles, wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid, NotFound, Refusals
from datasets.models import Dataset, DatasetVersion, Import
from datasets.services import datasets, imports, uploads
from training.runs import drafts, jobs
from training.runs.drafts import TrainingRequest
from training.runs.models import ParameterSetVersion, PlannedTraining, TrainingJob
from workers.core.models import VirtualCluster
from workers.jobs import submission
from workers.jobs.following import Following

log = logging.getLogger(__name__)
S = PlannedTraining.State
AT_ONCE = 100

#: Fields that a row keeps as they are.
PLAIN = (
    "name", "description", "preset", "extra", "nodes", "min_nodes", "gpus_per_node", "device_kind", "device_model",
    "processes", "cpus", "share", "card_memory_mib", "memory_mib", "max_disk_bytes", "priority",
    "preemptible",
)  # fmt: skip


class NotNow(DomainError, code="not_now"):
    """The plan is not in a state that allows this."""


def plan(
    *,
    user: User,
    request: TrainingRequest,
    upload_id: str,
    dataset_name: str = "",
    split: Mapping[str, Any] | None = None,
) -> PlannedTraining:
    """Create a dataset from an upload, import it, and train on it once it is ready.

    Args:
        request: a training of a preset; without one the preset that suits the labels is taken.
        upload_id: a complete upload of `user`.
        dataset_name: "" takes that of the file.
        split: as `imports.start` takes it.

    Raises:
        DomainError: all that `jobs.submit` would refuse whatever the data says, and what keeps the data from coming in.
    """
    refusals, checked_request = Refusals(), replace(request, data_comes=True)
    with refusals:
        if request.is_own_code:
            message = _("Custom code needs an existing dataset. Upload the data first.")
            raise Invalid(message, field="upload")
        draft = drafts.check(user, checked_request)
        submission.check(user, jobs.KIND, request.following, **draft.resources)
    with refusals:
        upload = uploads.require(user, upload_id)
        name = dataset_name or _free_name(user, upload.filename)
        datasets.check(owner=user, name=name)
    refusals.end()
    with transaction.atomic():
        dataset = datasets.create(owner=user, name=name, intro="")
        row = imports.start(dataset=dataset, by=user, upload_id=upload_id, wanted="auto", agreed=True, split=split)
        return PlannedTraining.objects.create(
            owner=user, dataset=dataset, data_import=row, dataset_name=name, request=serialize_request(request)
        )


def _free_name(user: User, filename: str) -> str:
    """A name for the dataset from that of the file: photos.tar.gz → photos, photos_2 where that is taken."""
    stem = filename.split(".", maxsplit=1)[0]
    taken = set(Dataset.objects.visible_to(user).values_list("name", flat=True))
    return titles.derive_name(stem, taken=taken, room=datasets.NAME_MAX)


def serialize_request(request: TrainingRequest) -> dict[str, Any]:
    """Return a preset's request in the form that a row stores; `request_of` reads it."""
    return {name: getattr(request, name) for name in PLAIN} | {
        "params": dict(request.params),
        "set_version": request.set_version and request.set_version.pk,
        "parent": request.parent and request.parent.pk,
        "cluster": request.cluster and request.cluster.pk,
        "max_runtime_s": request.max_runtime and request.max_runtime.total_seconds(),
        "following": {
            "after": list(request.following.after), "after_end": list(request.following.after_end),
            "outputs_of": list(request.following.outputs_of),
            "retries": request.following.retries, "retry_pause_s": request.following.retry_pause_s,
        },
    }  # fmt: skip


def request_of(row: PlannedTraining, version: DatasetVersion) -> TrainingRequest:
    """Return the request of a plan, with its imported data.

    Raises:
        NotFound: its cluster is gone.
    """
    stored = row.request  # of an older program it may lack some
    number, runtime_s = stored.get("cluster"), stored.get("max_runtime_s")
    cluster = VirtualCluster.objects.filter(pk=number).first() if number else None
    if number and cluster is None:
        raise NotFound(_("The virtual cluster does not exist any more."))
    return TrainingRequest(
        **{name: stored[name] for name in PLAIN if name in stored},
        version=version,
        params=stored.get("params", {}),
        set_version=ParameterSetVersion.objects.filter(pk=stored.get("set_version")).first(),
        parent=TrainingJob.objects.visible_to(row.owner).filter(pk=stored.get("parent")).first(),
        cluster=cluster,
        max_runtime=timedelta(seconds=runtime_s) if runtime_s else None,
        following=Following(**stored.get("following", {})),
    )


def begin_due() -> int:
    """Go on with all plans that wait; returns how many were started."""
    over = Q(data_import=None) | ~Q(data_import__state__in=Import.OPEN)
    rows = PlannedTraining.objects.filter(over, state=S.WAITING)
    return sum(start_plan(row.pk) for row in rows.order_by("pk")[:AT_ONCE])


def start_plan(number: int) -> bool:
    """Submit the training of one plan if its data is imported; exactly one caller succeeds."""
    with transaction.atomic():
        rows = PlannedTraining.objects.select_for_update(of=("self",))
        rows = rows.select_related("owner", "data_import__version", "dataset")
        row: PlannedTraining | None = rows.filter(pk=number, state=S.WAITING).first()
        if row is None:
            return False
        try:
            with transaction.atomic():
                version = _arrived(row)
                if version is None:
                    return False
                training = jobs.submit(user=row.owner, request=request_of(row, version))
        except OperationalError:  # the database is away: the next pass tries again
            raise
        except DomainError as exc:
            log.info("planned=%s refused: %s", row.pk, exc.sentences)
            return _failed(row, wording.of_error(exc))
        except Exception:  # of one plan, which must not keep all later ones waiting
            log.exception("planned=%s broke off", row.pk)
            return _failed(row, wording.message("training.platform_error"))
        row.state, row.training, row.message = S.STARTED, training, wording.Message()
        row.save(update_fields=["state", "training", "message"])
        return True


def _failed(row: PlannedTraining, why: wording.Message) -> bool:
    row.state, row.message = S.FAILED, why
    row.save(update_fields=["state", "message"])
    return False


def _arrived(row: PlannedTraining) -> DatasetVersion | None:
    """The newest version of the dataset once the import is over, however it came in; None while that goes on.

    Raises:
        Invalid: it will never come.
    """
    source = row.data_import
    if source is not None and source.is_open:
        return None
    if row.dataset and (newest := row.dataset.newest):
        return newest
    if source is None or source.state == Import.State.CANCELLED:
        raise Invalid(wording.message("training.import_gone"))
    if source.state == Import.State.FAILED:
        raise Invalid(wording.message("training.import_failed", why=source.error))
    return source.version


def retry(row: PlannedTraining) -> PlannedTraining:
    """Try a failed plan again, on what its dataset holds now: it may have been mended or annotated since.

    Raises:
        NotNow: it did not fail.
        DomainError: see `jobs.submit`.
    """
    if row.state != S.FAILED:
        raise NotNow(_("Only a failed one can be retried."))
    has_data = row.dataset is not None and row.dataset.newest is not None
    if row.data_import and row.data_import.state == Import.State.FAILED and not has_data:
        imports.retry(row.data_import)
    moved = PlannedTraining.objects.filter(pk=row.pk, state=S.FAILED).update(state=S.WAITING, message={})
    if moved:
        nudge()
    row.refresh_from_db()
    return row


def cancel(row: PlannedTraining) -> PlannedTraining:
    """Give a plan up; its data stays.

    Raises:
        NotNow: it was started, or is over.
    """
    if not PlannedTraining.objects.filter(pk=row.pk, state__in=[S.WAITING, S.FAILED]).update(state=S.CANCELLED):
        raise NotNow(_("The draft was already started or has ended."))
    row.refresh_from_db()
    return row


def nudge() -> None:
    """Have waiting plans looked at now; a lost message only costs until the next sweep."""
    enqueue("training.begin_planned")


def nudge_if_due(row: PlannedTraining) -> None:
    """Trigger the plan if its data is ready but unused, or if the worker that imports it has died."""
    if row.state != S.WAITING:
        return
    if row.data_import and row.data_import.is_open:
        imports.nudge_if_forgotten(row.data_import)
    else:
        nudge()


def shown(user: User) -> list[PlannedTraining]:
    """Plans of a person that still need attention, for the list of trainings."""
    rows = PlannedTraining.objects.visible_to(user).filter(owner=user, state__in=[S.WAITING, S.FAILED])
    return list(rows.select_related("data_import")[:20])
