"""Submit and restore trainings, and take them as the pattern of new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from django.db import transaction

from accounts.models import User
from aiplatform.lib.errors import Refusals
from datasets.models import DatasetVersion
from training.presets.catalog import PRESETS
from training.programs import requests, run_inputs
from training.runs import (
    checkpoints,
    custom_code,
    data_use,
    drafts,
    extra_options,
    folds,
    parameter_sets,
    parameters,
    pretrained_weights,
    recorders,
)
from training.runs.drafts import TrainingRequest
from training.runs.models import TrainingInput, TrainingJob
from workers.core.models import Job
from workers.images.services import uses
from workers.jobs import actions, resource_request, submission
from workers.jobs.following import like
from workers.jobs.resource_request import Resources

KIND = "training"


def submit(*, user: User, request: TrainingRequest) -> TrainingJob:
    """Queue a training: of a preset on an annotated dataset version, or of custom code on any data or none.

    Raises:
        DomainError: see `drafts.check`; and the queue refuses what can never fit.
    """
    refusals = Refusals()
    with refusals:
        draft = drafts.check(user, request)
    if refusals:  # what the machines cannot give is said as well
        with refusals:
            submission.check(user, KIND, request.following, **drafts.resources_of(user, request))
        refusals.end()
    with transaction.atomic():
        trainings = _queued(user, request, draft)
        for training in trainings:
            training.save()
            uses.attach(training.job, request.image)
            parameter_sets.record_use(training, request.set_version)
            TrainingInput.objects.bulk_create(
                TrainingInput(training=training, name=str(version)[:60], version=version)
                for version in request.datasets
            )
        recorders.record_submitted(
            [training.job for training in trainings], [training.params for training in trainings]
        )
    return trainings[0]


def _queued(user: User, request: TrainingRequest, draft: drafts.Draft) -> list[TrainingJob]:
    """Queue the training's job; for a cross-validation one per fold, but a single one for a batch preview."""

    def specified(training: TrainingJob) -> dict[str, Any]:
        return spec_of(training, request.datasets, nodes=request.nodes)

    fields: dict[str, Any] = {"owner": user, "kind": KIND, "name": draft.name, "following": request.following}
    fields |= draft.resources
    indices = folds.fold_indices(draft.training.params)
    if indices is None or draft.training.extra.get("show_batch"):
        draft.training.job = submission.submit(spec=specified(draft.training), **fields)
        return [draft.training]
    each = {number: copy(draft.training) for number in indices.numbers}
    for number, training in each.items():
        training.params = training.params | {"fold": number}
    jobs = submission.submit_array(indices=indices, spec_of=lambda number: specified(each[number]), **fields)
    for training, job in zip(each.values(), jobs, strict=True):
        training.job = job
    return list(each.values())


def spec_of(training: TrainingJob, datasets: Sequence[DatasetVersion], *, nodes: int) -> dict[str, Any]:
    """Return everything that defines the run, as written to spec.json and shown on the spec page."""

    def data(version: Any) -> dict[str, Any] | None:
        return run_inputs.spec([version])[0] if version is not None else None

    spec: dict[str, Any] = {
        "preset": training.preset or None,
        "params": training.params,
        "extra": training.extra,
        "processes": training.processes,
        "dataset": data(training.version),
        "eval_dataset": data(training.eval_version),
    }
    if training.is_own_code:
        spec |= custom_code.spec(training, datasets, nodes=nodes)
    return spec


def as_request(training: TrainingJob) -> dict[str, Any]:
    """Return the request that would make this training again: the values of a clone's form."""
    job = training.job
    preset = PRESETS.get(training.preset)
    one_each = training.is_own_code and not training.launcher  # of a row that was made before 0 meant one process
    columns = (
        "description", "preset", "start_file", "launcher", "arguments", "writes_checkpoints", "output_path", "version",
        "eval_version",
    )  # fmt: skip
    own = {name: getattr(training, name) for name in columns} | {
        "params": parameters.changed(preset, training.params) if preset else training.params,
        "command": training.script,
        "worker_command": training.worker_script,
        "extra": extra_options.written({name: value for name, value in training.extra.items() if name != "show_batch"}),
        "min_nodes": job.min_nodes,
        "processes": training.processes or (max(job.gpus_per_node, 1) if one_each else 0),
        "following": like(job),
    }
    return requests.as_request(training, own) | {"nodes": job.wanted_nodes}


def restore(
    training: TrainingJob,
    *,
    by: User,
    checkpoint: str = "",
    params: Mapping[str, Any] | None = None,
    gpus_per_node: int | None = None,
    nodes: int | None = None,
) -> TrainingJob:
    """Queue an ended training again; it resumes from a checkpoint.

    Args:
        checkpoint: a name from `checkpoints.valid` ("2/step-000123"); "" takes the newest.
        params: changes; everything else is remembered.
        gpus_per_node, nodes: None is as before.

    Raises:
        NotRestorable: no valid checkpoint, or the data or the cluster is no longer there for the owner.
        BadParameter: a changed parameter is wrong, or the teacher is gone.
        DomainError: the queue refuses (still running, can never fit).
    """
    owner, job, refusals = training.job.owner, training.job, Refusals()
    with refusals:
        folder = checkpoints.folder_of(training, checkpoint)
    with refusals:
        data_use.check_restore(training)
    with refusals:
        uses.check_restore(job)
    with refusals:
        if (params or {}).get(pretrained_weights.MODEL) in (None, training.params.get(pretrained_weights.MODEL)):
            pretrained_weights.check_teacher(training)  # another one is looked for with the other changes
    with refusals:
        resource_request.cluster_for(owner, job.cluster)
    places: Resources = {
        "nodes": nodes or job.wanted_nodes,
        "min_nodes": min(job.min_nodes, nodes or job.wanted_nodes),
        "gpus_per_node": job.gpus_per_node if gpus_per_node is None else gpus_per_node,
    }
    share = job.share if (places["nodes"], places["gpus_per_node"]) == (1, 1) else 8
    min_nodes, max_nodes = resource_request.range_of(places)
    resources = Resources(
        cluster=job.cluster, cpus=job.cpus, share=share, card_memory_mib=job.card_memory_mib,
        device_kind=job.device_kind, device_model=job.device_model, needs=job.needs,
        root_inside=job.root_inside,
    )  # fmt: skip
    with refusals:
        submission.check_fit(KIND, **resources | places)
    changes: dict[str, Any] = {}
    with refusals:
        if params:
            merged = {**training.params, **params}
            training.params = (
                _changed(owner, training, merged) if training.preset in PRESETS else parameters.plain_pairs(merged)
            )
            datasets = [row.version for row in training.inputs.select_related("version__dataset") if row.version]
            changes = spec_of(training, datasets, nodes=places["nodes"])
    refusals.end()
    with transaction.atomic():
        training.save(update_fields=["params"])
        recorders.record_restored(job, training.params)
        Job.objects.filter(pk=job.pk).update(**places | {"min_nodes": min_nodes, "max_nodes": max_nodes}, share=share)
        actions.restore(job, by=by, checkpoint=str(folder), changes=changes)
    job.refresh_from_db()
    return training


def _changed(owner: User, training: TrainingJob, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a preset after a change; models that it begins to name now must be there for the owner."""
    preset, before = PRESETS[training.preset], training.params
    read = parameters.read_complete(preset, params)
    changed = {name: value for name, value in read.items() if value != before.get(name)}
    return read | pretrained_weights.settled(owner, preset, changed)
