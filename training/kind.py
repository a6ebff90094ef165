"""The job kind `training`: what the queue calls to prepare, check and end a training."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from accounts.permissions import Action
from aiplatform.lib import wording
from datasets.models import DatasetVersion
from training import publishers, workdir
from training.models import TrainingJob
from training.presets.catalog import PRESETS
from training.services import drafts, results, snippets
from training.starting import CannotRun, meeting_place
from workers.jobs import resource_request
from workers.kinds import Capabilities, JobKind, Launch, Way
from workers.models import Attempt, Job
from workers.runs import RunDir
from workers.states import COMPLETED

HERE = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class TrainingKind(JobKind):
    """`TrainingJob`: a preset or own code on an annotated dataset version."""

    name = "training"
    label = gettext_lazy("Training")
    hint = gettext_lazy("Train on annotated data")
    icon = "training"
    order = 40
    list_page = "training:job-list"
    start_page = "training:job-submit"
    start_word = gettext_lazy("Start a training")
    view_action = Action.TRAINING_VIEW
    submit_action = Action.TRAINING_SUBMIT
    exec_server = True
    related = ("training",)

    def startable(self, user: User) -> bool:
        """Whether anything annotated is there to learn from."""
        return DatasetVersion.objects.visible_to(user).filter(annotated=True).exists()

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Copy the code, link the data, write the parameters; safe to call again.

        Raises:
            CannotRun: data, owner or membership are gone since the submission.
        """
        training = TrainingJob.objects.select_related("version", "eval_version", "code", "job__owner").get(job=job)
        _still_allowed(training, attempt)
        launcher = _copy_code(training, run)
        data = _link_data(training, run)
        params = _params(training)
        run.params.parent.mkdir(parents=True, exist_ok=True)
        run.params.write_text(json.dumps(params, ensure_ascii=False, indent=1), encoding="utf-8")
        cache = settings.DATA_ROOT / "cache" / str(job.owner_id) / str(training.version_id)
        cache.mkdir(parents=True, exist_ok=True)
        env = {
            "AIP_DATASET_DIR": data[0]["dir"],
            "AIP_DATASETS": json.dumps(data, ensure_ascii=False),
            "AIP_PARAMS": str(run.params),
            "AIP_CACHE_DIR": str(cache),
        }
        processes = _processes(training)
        if processes > 1:  # each process its part of the cores, else they stand in each other's way
            env |= dict.fromkeys(THREADS, str(max(1, int(job.cpus) // processes)))
        if "hint" in training.extra:
            env["AIP_HINT"] = training.extra["hint"]
        if "close_delay_s" in training.extra:
            env["AIP_CLOSE_DELAY_S"] = str(training.extra["close_delay_s"])
        return Launch(
            argv=_argv(training, attempt, run, launcher=launcher),
            env=env,
            read_only=[folder for version, _role in _versions(training) for folder in version.folders],
            read_write=[cache],
            secrets=snippets.secrets_of(training),
            finish_grace_s=900.0 if training.preset else 30.0,  # own code may not listen: it hears TERM soon
        )

    def capabilities(self, job: Job) -> Capabilities:
        training = job.training
        preset = PRESETS.get(training.preset)
        if preset:
            return Capabilities(preset.pause, preset.suspend, preset.finish, preset.restore)
        # a script that saves may still be deaf to the control file: it is paused and ended by signals
        return Capabilities(pause=True, suspend=False, finish=True, restore=training.writes_checkpoints)

    def ended(self, job: Job, attempt: Attempt) -> None:
        """Keep the final figures and tell the publishers, once per attempt that ended well."""
        if attempt.state not in COMPLETED or attempt.number != job.attempt_number:
            return
        training = TrainingJob.objects.select_related("job__owner", "version__dataset").get(job=job)
        if training.published_attempt >= attempt.number:
            return
        training.metrics = results.figures(training, attempt.number)
        training.published_attempt = attempt.number
        training.save(update_fields=["metrics"])
        publishers.publish(training)
        training.save(update_fields=["published_attempt"])

    def check_restore(self, job: Job) -> None:
        training = TrainingJob.objects.select_related("version", "eval_version").get(job=job)
        for version in (training.version, training.eval_version):
            if version is not None:
                drafts.check_version(job.owner, version, field="checkpoint")
        resource_request.cluster_for(job.owner, job.cluster)

    def again(self, job: Job, user: User) -> list[Way]:
        """From a chosen checkpoint, with changes; or anew."""
        ways, pk = [], job.training.pk
        if user.can(Action.TRAINING_CONTROL) and (job.owner_id == user.pk or user.sees_everything):
            why = "" if job.is_final else _("It can be restored once it has ended.")
            if not why and not self.capabilities(job).restore:
                why = _("It left no checkpoint to go on from.")
            about = _("Choose the checkpoint, and change parameters or cards before it goes on.")
            label, page = _("Restore from…"), reverse("training:job-restore", args=[pk])
            ways.append(Way("restore-from", label, "branch", about, url=page, why=why))
        if user.can(Action.TRAINING_SUBMIT):
            about = _("Fills in the form with the same settings; a new training begins from nothing.")
            ways.append(Way("clone", _("Clone"), "clone", about, url=f"{reverse('training:job-submit')}?clone={pk}"))
        return ways

    def url(self, job: Job) -> str:
        return reverse("training:job-detail", args=[job.training.pk])


def _still_allowed(training: TrainingJob, attempt: Attempt) -> None:
    """Check again what may have changed while the training waited."""
    owner = training.job.owner
    version = training.version
    if version is None or not version.is_ready or not version.path.is_dir():
        raise CannotRun(wording.message("training.version_gone", version=training.version_label))
    if not owner.is_active or not owner.can(Action.TRAINING_SUBMIT):
        raise CannotRun(wording.message("training.owner_not_allowed"))
    if attempt.number == 1:  # what once ran keeps its data, even when a public dataset was made private
        drafts.check_version(owner, version)
        resource_request.cluster_for(owner, training.job.cluster)


def _copy_code(training: TrainingJob, run: RunDir) -> bool:
    """Fill code/; True when the launcher lies there as well."""
    if training.preset:
        shutil.copytree(HERE / "presets", run.code / "presets", ignore=workdir.LITTER, dirs_exist_ok=True)
    elif training.code:
        workdir.fill(run, training.code, output_path=training.output_path)
    if "hint" in training.extra or "close_delay_s" in training.extra:
        shutil.copy(HERE / "launcher" / "aip_start.py", run.code / "aip_start.py")
        return True
    return False


def _versions(training: TrainingJob) -> list[tuple[DatasetVersion, str]]:
    """The versions a run reads, and what for."""
    versions = ((training.version, "train"), (training.eval_version, "eval"))
    return [(version, role) for version, role in versions if version is not None]


def _link_data(training: TrainingJob, run: RunDir) -> list[dict[str, str]]:
    """Links under inputs/ for people who look; jobs are given the real folders."""
    run.inputs.mkdir(parents=True, exist_ok=True)
    rows = []
    for version, role in _versions(training):
        rows.append({"name": str(version), "role": role, "dir": str(version.path)})
        link = run.inputs / role
        if not link.is_symlink():
            link.symlink_to(version.path)
    return rows


def _params(training: TrainingJob) -> dict[str, Any]:
    if training.preset:
        return dict(training.params)
    switches = {key: training.extra[key] for key in ("keep_ms", "show_step", "no_step") if key in training.extra}
    return {"dataset": training.version_label, **switches, **training.params}


def _argv(training: TrainingJob, attempt: Attempt, run: RunDir, *, launcher: bool) -> list[str]:
    program = ["-m", PRESETS[training.preset].module] if training.preset else [training.start_file]
    if launcher:
        program = ["aip_start.py", *program]
    if not training.preset:
        places = {
            "resume": attempt.checkpoint_in,
            "data": str(training.version.path) if training.version else "",
            "output": str(run.outputs),
            "params": str(run.params),
        }
        program += [_filled(word, places) for word in shlex.split(training.arguments)]
    job = training.job
    processes = _processes(training)
    if processes == 1 and job.nodes == 1:
        return [sys.executable, "-u", *program]
    rendezvous = ["--standalone"] if job.nodes == 1 else _meeting(attempt)
    return [sys.executable, "-m", "torch.distributed.run", *rendezvous, f"--nproc-per-node={processes}", *program]


def _processes(training: TrainingJob) -> int:
    """Return how many processes a node starts: as requested, else one per card, else one (own code always requests)."""
    return training.processes or max(training.job.gpus_per_node, 1)


def _meeting(attempt: Attempt) -> list[str]:
    """Return torchrun's words for a job with several nodes."""
    address, port = meeting_place(attempt)
    return [
        f"--nnodes={attempt.job.nodes}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={address}:{port}",
        f"--rdzv-id={attempt.job_id}-{attempt.number}",
    ]


def _filled(word: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        word = word.replace(f"{{{name}}}", value)
    return word
