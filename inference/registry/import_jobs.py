"""Imports of model files that a request does not wait for: a job of the queue runs the inspector in its sandbox."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import translation

from accounts.models import User
from aiplatform.lib import files, titles, wording
from aiplatform.lib.errors import DomainError
from inference.registry import inspections, model_jobs
from inference.registry import registration as registry
from inference.registry.file_copies import copy_rest
from inference.registry.formats.declared import NOTHING, Declared
from inference.registry.formats.folder import ModelContents, home_of
from inference.registry.inspections import FILES, PACKED
from inference.registry.inspector import inspection, replies
from inference.registry.inspector.__main__ import REPLY
from inference.registry.models import Model, ModelTask, ModelVersion, Visibility
from inference.registry.registration import Origin
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs import submission
from workers.jobs.resource_request import Resources, cluster_for

LARGE_BYTES = 64 << 20  # larger files are not read while a request waits
REQUEST_LIMITS = replace(inspections.REQUEST, seconds=20)  # what a request bears for smaller ones
MAX_RUNTIME = timedelta(hours=1)  # of the job
DESCRIPTION = "model.json"


class _AlreadyMade(Exception):
    """Another worker made the version meanwhile."""


def home(job: Job) -> Path:
    """Folder with the files that a job reads; they are removed when the version is made."""
    return Path(settings.DATA_ROOT) / "jobs" / str(job.pk) / "import"


def submit(
    *,
    user: User,
    bring: Callable[[Path], None],
    origin: Origin,
    declared: Declared = NOTHING,
    name: str = "",
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    model: Model | None = None,
    queued: Callable[[ModelTask], object] = lambda _task: None,
) -> ModelTask:
    """Queue a job that reads the files and makes a version of them; see `registration.register` for the arguments.

    Args:
        queued: called with the task in the transaction that makes it.

    Raises:
        Invalid: what is declared fits no model.
        NameTaken: the user has a model of this name.
        DomainError: the files cannot be copied, or the queue refuses.
    """
    with model_jobs.import_workplace(bring, FILES, user=user, name=name, model=model, declared=declared) as work:
        is_packed = (work / PACKED).exists()
        spec = {
            "declared": asdict(declared), "name": name, "description": description, "visibility": visibility,
            "model": model.pk if model else None, "origin": _origin_spec(origin), "is_packed": is_packed,
            "is_described": not is_packed and (home_of(work / FILES) / DESCRIPTION).exists(),
            "language": translation.get_language() or "en",
        }  # fmt: skip
        with transaction.atomic():
            resources: Resources = {
                "cluster": cluster_for(user, None), "cpus": model_jobs.CPUS, "gpus_per_node": 0,
                "max_runtime": MAX_RUNTIME,
            }  # fmt: skip
            title = titles.derive_name(f"{model or name} import", room=100)
            job = submission.submit(owner=user, kind=model_jobs.KIND, name=title, spec=spec, **resources)
            task = ModelTask.objects.create(job=job, act=ModelTask.Act.IMPORT)
            queued(task)
            home(job).parent.mkdir(parents=True, exist_ok=True)
            work.rename(home(job))
        return task


def _origin_spec(origin: Origin) -> dict[str, Any]:
    return {
        "source": origin.source, "job": origin.job.pk if origin.job else None, "attempt": origin.attempt,
        "label": origin.label[:300],
    }  # fmt: skip


def are_files_there(job: Job) -> bool:
    """Whether the files of an import are still there, so that its job can run again."""
    spec = job.spec
    return (home(job) / (PACKED if spec["is_packed"] else FILES)).exists()


def launch(task: ModelTask, run: RunDir) -> Launch:
    """The command of the job. What an earlier attempt unpacked or wrote is removed first."""
    folder, spec = home(task.job), task.job.spec
    if spec["is_packed"]:
        files.remove_tree(folder / FILES)
    elif not spec["is_described"]:
        (home_of(folder / FILES) / DESCRIPTION).unlink(missing_ok=True)
    request = {
        "act": inspection.VERSION, "folder": str(folder / FILES), "declared": spec["declared"], "opens": True,
        "archive": str(folder / PACKED) if spec["is_packed"] else "", "language": spec["language"],
        "seconds": int(MAX_RUNTIME.total_seconds()),
    }  # fmt: skip
    files.write_json(run.params, inspections.complete_request(request))
    return Launch(
        argv=[sys.executable, "-P", "-m", "inference.registry.inspector"],
        env={"PYTHONPATH": str(settings.BASE_DIR), "PYTHONDONTWRITEBYTECODE": "1"},
        read_only=inspections.code_folders(), read_write=[folder], own_folders=[folder], own_network=True,
        command="inference.registry.inspector",
    )  # fmt: skip


def publish(task: ModelTask, attempt: Attempt) -> None:
    """Make the version of what an attempt read, or keep everything that is wrong with it; may be called again."""
    if task.made_id is not None:
        return
    job, owner = task.job, task.job.owner
    reply = _reply(RunDir.for_attempt(job.pk, attempt.number).outputs)
    if reply is None:
        _set_message(task, wording.message("model_task.not_checked"))
        return
    spec = job.spec
    model = Model.objects.editable_by(owner).filter(pk=spec["model"]).first() if spec["model"] else None
    if spec["model"] and model is None:
        _set_message(task, wording.message("model_task.model_gone"))
        return

    def made(version: ModelVersion) -> None:
        if not ModelTask.objects.filter(pk=task.pk, made=None).update(made=version, message=wording.Message()):
            raise _AlreadyMade

    try:
        inspections.end_refused(reply)
        content = inspections.decode_checked(lambda: replies.decode_found(reply, home(job) / FILES))
        registry.register(
            user=owner, bring=partial(_copy_files, home(job), content), read=partial(_in_place, content), model=model,
            origin=_origin(spec["origin"]), made=made,
            **{field: spec[field] for field in ("name", "description", "visibility")},
        )  # fmt: skip
    except _AlreadyMade:
        return
    except DomainError as error:
        _set_message(task, wording.of_error(error) if not error.others else wording.verbatim(error.sentences))
        return
    files.remove_tree(home(job))


def _origin(spec: dict[str, Any]) -> Origin:
    job = Job.objects.filter(pk=spec["job"] or 0).first()
    return Origin(spec["source"], job, spec["attempt"] if job else 0, spec["label"])


def _reply(outputs: Path) -> dict[str, Any] | None:
    """What the program left; None where it left nothing that can be read."""
    try:
        with os.fdopen(files.open_beneath(outputs, REPLY), "rb") as file:
            reply = json.loads(file.read(inspections.WORKER.reply_bytes))
    except (OSError, ValueError, RecursionError, files.OutsideRoot):
        return None
    return reply if isinstance(reply, dict) else None


def _copy_files(root: Path, content: ModelContents, into: Path) -> None:
    """Copy the files of the model, each under its name in the registry, following no link."""
    into.mkdir()
    for name, path in content.files.items():
        try:
            descriptor = files.open_beneath(root, path.relative_to(root))
        except (OSError, files.OutsideRoot):
            raise inspections.crashed() from None
        with os.fdopen(descriptor, "rb") as source:
            copy_rest(source, into / name, max_bytes=inspections.MAX_BYTES)


def _in_place(content: ModelContents, folder: Path) -> ModelContents:
    content.files = {name: folder / name for name in content.files}
    return content


def _set_message(task: ModelTask, message: wording.Message) -> None:
    """Store why nothing was created, unless another worker created it meanwhile."""
    ModelTask.objects.filter(pk=task.pk, made=None).update(message=message)
