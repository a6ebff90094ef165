"""The job kind `training`: what the queue calls to prepare, check and end a training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.numbers import finite
from datasets.models import DatasetVersion
from training.presets.catalog import PRESETS
from training.programs import layout, program, run_inputs, script, variables, workdir
from training.programs.start import CannotRun, meeting_place
from training.runs import data_use, pretrained_weights, previews, publishers, results, snippets, trials
from training.runs.models import TrainingJob
from workers.core import scratch
from workers.core.kinds import Capabilities, JobKind, Launch, Way
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import COMPLETED
from workers.images.services import launch as launching
from workers.images.services import uses
from workers.jobs import resource_request

HERE = Path(__file__).parents[1]
NO_DATA = "without-data"  # in place of a version, in the name of the cache of own code
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class TrainingKind(JobKind):
    """`TrainingJob`: a preset on an annotated dataset version, or own code on any data or none."""

    name = "training"
    label = gettext_lazy("Training")
    hint = gettext_lazy("Train a model on annotated data")
    icon = "training"
    order = 40
    section = "training"
    list_page = "training:job-list"
    start_page = "training:job-submit"
    start_word = gettext_lazy("Start training")
    view_action = Action.TRAINING_VIEW
    submit_action = Action.TRAINING_SUBMIT
    exec_server = True
    root_inside = True  # of own code; `drafts` refuses it of presets
    related = ("training",)
    own_tabs = True

    def key_metrics(self, jobs: Collection[int]) -> Mapping[int, str]:
        rows = TrainingJob.objects.filter(job__in=jobs).only("job", "preset", "metrics")
        return {row.job_id: str(metric) for row in rows if (metric := results.key_metric(row))}

    def startable(self, user: User) -> bool:
        """Whether anything annotated is there to learn from."""
        return DatasetVersion.objects.visible_to(user).filter(annotated=True).exists()

    def expected_runtimes(self, jobs: QuerySet[Job]) -> Mapping[int, float]:
        """Return the time budgets of presets; own code and trainings without a budget have none."""
        rows = TrainingJob.objects.filter(job__in=jobs).exclude(preset="")
        budgets = dict(rows.values_list("job_id", "params__budget_minutes"))
        return {job: 60.0 * minutes for job, minutes in budgets.items() if finite(minutes)}

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Copy the code, link the data, write the parameters; safe to call again.

        Raises:
            CannotRun: data, owner or membership are gone since the submission.
        """
        training = TrainingJob.objects.select_related("version", "eval_version", "code", "job__owner").get(job=job)
        versions = _still_allowed(training, attempt)
        launcher = _copy_code(training, run)
        dataset_variables = run_inputs.linked_as(run, versions)
        params = _params(training)
        run.params.parent.mkdir(parents=True, exist_ok=True)
        run.params.write_text(json.dumps(params, ensure_ascii=False, indent=1), encoding="utf-8")
        cache = scratch.image_cache(job.owner_id, str(training.version_id or NO_DATA))
        scratch.make(cache)
        secrets = variables.opened(job, run).get("secrets", {})
        env = training.variables | secrets | dataset_variables | _meeting_variables(training, attempt)
        env |= {
            "AIP_PARAMS": str(run.params),
            "AIP_CACHE_DIR": str(cache),
        }
        processes = _processes(training)
        if processes > 1:  # each process its part of the cores, else they stand in each other's way
            env = dict.fromkeys(THREADS, str(max(1, int(job.cpus) // processes))) | env
        env |= previews.handed_over(training, run)
        weights, folders = pretrained_weights.handed_over(training, attempt, run)
        env |= weights
        if "hint" in training.extra:
            env["AIP_HINT"] = training.extra["hint"]
        if "close_delay_s" in training.extra:
            env["AIP_CLOSE_DELAY_S"] = str(training.extra["close_delay_s"])
        launch = Launch(
            argv=[],
            command=_shown_command(training),
            env=env,
            read_only=[*(folder for version, _role in versions for folder in version.folders), *folders],
            read_write=[cache],
            secrets=[*secrets.values(), *snippets.secrets_of(training)],
            finish_grace_s=900.0 if training.preset else 30.0,  # own code may not listen: it hears TERM soon
        )
        launch = launching.with_image(launch, job)  # before the words: it says which Python there is
        argv, machines = _argv(training, attempt, run, launcher=launcher)
        return replace(launch, argv=argv, env=machines | launch.env)

    def further(self, job: Job, launch: Launch) -> Launch:
        for folder in map(Path, launch.read_write):
            if folder.is_relative_to(scratch.root()):  # the cache may lie on each machine's own disk
                scratch.make(folder)
        return launching.further(launch, job)

    def sealed(self, job: Job) -> Mapping[str, str]:
        return {"secrets": TrainingJob.objects.filter(job=job).values_list("secrets", flat=True).first() or ""}

    def capabilities(self, job: Job) -> Capabilities:
        training = job.training
        preset = PRESETS.get(training.preset)
        if previews.mode_of(training):  # over within a minute or two
            return Capabilities(pause=False, suspend=False, finish=False, restore=False)
        if preset:
            return Capabilities(preset.pause, preset.suspend, preset.finish, preset.restore)
        # a script that saves may still be deaf to the control file: it is paused and ended by signals
        return Capabilities(pause=True, suspend=False, finish=True, restore=training.writes_checkpoints)

    def ended(self, job: Job, attempt: Attempt) -> None:
        """Keep the figures and tell the publishers, once per attempt that ended well; tell its study of any end."""
        self._store_results(job, attempt)
        trials.notify_study(job)

    def _store_results(self, job: Job, attempt: Attempt) -> None:
        if attempt.state not in COMPLETED or attempt.number != job.attempt_number:
            return
        training = TrainingJob.objects.select_related("job__owner", "version__dataset").get(job=job)
        if training.published_attempt >= attempt.number:
            return
        training.metrics = results.figures(training, attempt.number)
        training.published_attempt = attempt.number
        training.save(update_fields=["metrics"])
        # a look leaves no model, and that of a trial which was given up is none
        if not previews.mode_of(training) and not trials.is_pruned(job, attempt.number):
            publishers.publish(training)
        training.save(update_fields=["published_attempt"])

    def reported(self, job: Job) -> None:
        trials.notify_study(job)

    def is_quiet(self, job: Job) -> bool:
        return bool(trials.read_mark(job))

    def check_restore(self, job: Job) -> None:
        data_use.check_restore(TrainingJob.objects.select_related("version", "eval_version").get(job=job))
        uses.check_restore(job)
        resource_request.cluster_for(job.owner, job.cluster)

    def again(self, job: Job, user: User) -> list[Way]:
        """Offer to restore from a chosen checkpoint, with changes, or to clone."""
        ways, pk = [], job.training.pk
        if user.can(Action.TRAINING_CONTROL) and (job.owner_id == user.pk or user.sees_everything):
            why = "" if job.is_final else _("The job can be restored after it has ended.")
            if not why and not self.capabilities(job).restore:
                why = _("The job has no checkpoint.")
            description = _("Choose the checkpoint, and change parameters or GPUs before it continues.")
            label, page = _("Restore from…"), reverse("training:job-restore", args=[pk])
            ways.append(Way("restore-from", label, "branch", description, url=page, why=why))
        if user.can(Action.TRAINING_SUBMIT):
            description = _("Fills in the form with the same settings; the new training starts from scratch.")
            ways.append(
                Way("clone", _("Clone"), "clone", description, url=f"{reverse('training:job-submit')}?clone={pk}")
            )
        return ways

    def url(self, job: Job) -> str:
        return reverse("training:job-detail", args=[job.training.pk])


def _still_allowed(training: TrainingJob, attempt: Attempt) -> list[tuple[DatasetVersion, str]]:
    """Check again what may have changed while the training waited; returns its data, and what each is for."""
    owner = training.job.owner
    versions = data_use.still_there(training)
    if not owner.is_active or not owner.can(Action.TRAINING_SUBMIT):
        raise CannotRun(wording.message("training.owner_not_allowed"))
    if attempt.number == 1:  # what once ran keeps its data, even when a public dataset was made private
        data_use.check_readable(training, versions)
        resource_request.cluster_for(owner, training.job.cluster)
    return versions


def _shown_command(training: TrainingJob) -> str:
    """What is run, in the words of the request; "" for a preset, whose words are its argv."""
    if training.script or training.preset:
        return script.shown(training.script)
    return script.shown(f"{training.start_file} {training.arguments}".strip())


def _copy_code(training: TrainingJob, run: RunDir) -> bool:
    """Fill code/; return True if it also contains the launcher."""
    if training.preset:
        shutil.copytree(HERE / "presets", run.code / "presets", ignore=workdir.LITTER, dirs_exist_ok=True)
    else:
        workdir.populate(run, training.code, output_path=training.output_path)
    if "hint" in training.extra or "close_delay_s" in training.extra:
        shutil.copy(HERE / "programs" / "aip_start.py", run.code / "aip_start.py")
        return True
    return False


def _params(training: TrainingJob) -> dict[str, Any]:
    if training.preset:
        return dict(training.params)
    switches = {key: training.extra[key] for key in ("keep_ms", "show_step", "no_step") if key in training.extra}
    data = {"dataset": training.version_label} if training.version_label else {}
    return {**data, **switches, **training.params}


def _argv(training: TrainingJob, attempt: Attempt, run: RunDir, *, launcher: bool) -> tuple[list[str], dict[str, str]]:
    """Return the command to start, and the variables that describe the nodes."""
    if training.script or training.launcher:
        return _started_as_requested(training, attempt, run, launcher=launcher)
    python = launching.python(training.job)
    args = ["-m", PRESETS[training.preset].module] if training.preset else [training.start_file]
    if launcher:
        args = ["aip_start.py", *args]
    if not training.preset:
        args += _arguments(training, attempt, run)
    job = training.job
    processes = _processes(training)
    if processes == 1 and job.nodes == 1:
        return [python, "-u", *args], {}
    rendezvous = ["--standalone"] if job.nodes == 1 else _meeting(attempt)
    return [python, "-m", "torch.distributed.run", *rendezvous, f"--nproc-per-node={processes}", *args], {}


def _started_as_requested(
    training: TrainingJob, attempt: Attempt, run: RunDir, *, launcher: bool
) -> tuple[list[str], dict[str, str]]:
    """Return `_argv` of a command line, or of a start file with a chosen launcher."""
    switched = program.WITH_HINT_AND_DELAY if launcher else []
    if training.script:
        argv = [*switched, *program.written(run, program.SCRIPT, training.script)]
    else:
        first = ["aip_start.py"] if launcher else []
        args = _arguments(training, attempt, run)
        argv = [launching.python(training.job), "-u", *first, training.start_file, *args]
    if not layout.is_needed(training):
        return argv, {}
    text = training.worker_script
    worker = [*switched, *program.written(run, program.WORKER_SCRIPT, text)] if text else []
    return layout.write(training, attempt, run, argv, worker)


def _arguments(training: TrainingJob, attempt: Attempt, run: RunDir) -> list[str]:
    """Return the words after the start file, with paths in place of `{data}` and the like."""
    places = {
        "resume": attempt.checkpoint_in,
        "data": str(training.version.path) if training.version else "",
        "output": str(run.outputs),
        "params": str(run.params),
    }
    return script.filled(training.arguments, places)


def _processes(training: TrainingJob) -> int:
    """Return how many processes a node starts: as requested, else one per card, else one (own code always requests)."""
    if training.launcher:
        return layout.processes_of(training)
    return training.processes or max(training.job.gpus_per_node, 1)


def _meeting_variables(training: TrainingJob, attempt: Attempt) -> dict[str, str]:
    """Return where the machines of a command line meet, for what does not go through the launcher."""
    if attempt.job.nodes == 1 or not training.script:
        return {}
    address, port = meeting_place(attempt)
    return {"MASTER_ADDR": address, "MASTER_PORT": str(port)}


def _meeting(attempt: Attempt) -> list[str]:
    """Return torchrun's words for a job with several nodes."""
    address, port = meeting_place(attempt)
    return [
        f"--nnodes={attempt.job.nodes}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={address}:{port}",
        f"--rdzv-id={attempt.job_id}-{attempt.number}",
    ]
