"""The job kinds `evaluation`, `model_task` and `service`: what the queue calls to prepare, check and end them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

import inference
from accounts.models import User
from accounts.permissions import Action
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import write_json
from aiplatform.lib.search import Hit
from datasets.models import DatasetVersion
from inference import searching
from inference.models import Evaluation, Model, ModelTask, ModelVersion, Service
from inference.monitoring import baselines, collecting
from inference.scripted import running as scripted
from inference.selftest import keeping as self_tests
from inference.services import (
    evaluations,
    launching,
    learning,
    model_imports,
    model_jobs,
    promotion,
    serving,
    withdrawing,
)
from inference.torch_export import exports
from inference.trying import trials
from training.presets import cores, tiling
from workers.images.services import uses
from workers.jobs.resource_request import cluster_for
from workers.kinds import Capabilities, Fact, JobKind, Launch, Way
from workers.models import Attempt, Job
from workers.runs import RunDir

PACKAGE = Path(inference.__file__).parent


class Vanished(DomainError):
    """The model or the data was deleted before the job could start."""

    code = "vanished"


def copy_code(run: RunDir, *packages: str) -> None:
    """Put the pure packages into the run as `code/inference/…`, where they import each other as at home."""
    home = run.code / PACKAGE.name
    home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(PACKAGE / "__init__.py", home / "__init__.py")
    for package in packages:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PACKAGE / package, home / package, dirs_exist_ok=True, ignore=ignore)
    _copy_presets(run)


def _copy_presets(run: RunDir) -> None:
    """Put what presets score tiles with, and tell busy cores by, into the run as `code/training/presets`."""
    source = Path(tiling.__file__).parent
    target = run.code / Path(*tiling.__name__.split("."))
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(cores.__file__, target.parent / "cores.py")
    for above in (target.parent, target.parent.parent):
        (above / "__init__.py").touch()


DEVICE_KINDS = ("gpu", "cpu")  # what its programs compute on


class EvaluationKind(JobKind):
    """`python -m inference.evaluator` on a dataset version."""

    name = evaluations.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Evaluation")
    plural = gettext_lazy("Evaluations")
    hint = gettext_lazy("Measure on other data")
    icon = "evaluation"
    order = 60
    list_page = "inference:evaluation-list"
    view_action = Action.EVALUATIONS_VIEW
    submit_action = Action.EVALUATIONS_SUBMIT
    can = Capabilities(pause=True, suspend=True, finish=True, restore=True)
    related = ("evaluation",)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        rows = Evaluation.objects.select_related("model_version__model", "version__dataset", "script__code")
        evaluation = rows.get(job=job)
        if evaluation.is_scripted:
            return scripted.launch(evaluation, job, attempt, run)
        model, version = evaluation.model_version, evaluation.version
        if model is None or version is None:
            raise Vanished(wording.message("evaluation.gone"))
        copy_code(run, "server", "task_kinds", "evaluator")
        known = learning.of(model, owner=job.owner)
        write_json(run.params, {**evaluation.params, "split": evaluation.split, "learned": known and known.for_run()})
        datasets = [{"name": version.dataset.name, "role": "eval", "dir": str(version.path)}]
        return Launch(
            argv=[sys.executable, "-m", "inference.evaluator"],
            env={
                "AIP_MODEL_DIR": str(model.path),
                "AIP_DATASET_DIR": str(version.path),
                "AIP_DATASETS": json.dumps(datasets),
            },
            read_only=[model.path, *version.folders, *([known.version.path] if known else [])],
        )

    def ended(self, job: Job, attempt: Attempt) -> None:
        evaluations.publish(job, attempt)
        rows = Evaluation.objects.filter(job=job).select_related(
            "job__owner", "model_version__model", "version__dataset"
        )
        evaluation = rows.first()
        if evaluation is not None:
            if not evaluation.is_scripted:  # such a script leaves no samples, whatever lies there
                self_tests.keep_evaluated(evaluation)
            promotion.judge(evaluation)

    def capabilities(self, job: Job) -> Capabilities:
        """A script is paused by signals and runs again from its beginning; half of it has no figures."""
        scripted = Evaluation.objects.filter(job=job, is_scripted=True).exists()
        return Capabilities(pause=True, finish=False, restore=True) if scripted else self.can

    def again(self, job: Job, user: User) -> list[Way]:
        row = Evaluation.objects.visible_to(user).filter(job=job).first()
        if row is None or not user.can(Action.EVALUATIONS_SUBMIT):
            return []
        about = _("Fills in the form with the same model, data, parameters and code.")
        url = f"{reverse('inference:evaluation-new')}?evaluation={row.pk}"
        return [Way("clone", _("Clone"), "clone", about, url=url)]

    def check_restore(self, job: Job) -> None:
        evaluation = Evaluation.objects.get(job=job)
        model = ModelVersion.objects.usable_by(job.owner).filter(pk=evaluation.model_version_id or 0)
        version = DatasetVersion.objects.usable_by(job.owner).filter(pk=evaluation.version_id or 0)
        if not model.exists() or not version.exists():
            raise Vanished(_("The model or the dataset of this evaluation is no longer there for you."))
        cluster_for(job.owner, job.cluster)
        uses.check_restore(job)

    def url(self, job: Job) -> str:
        return reverse("inference:evaluation-detail", args=[job.evaluation.pk])


class ModelTaskKind(JobKind):
    """`python -m inference.measuring` of a version, `.converter` of a torch archive, `.trier` of what is brought."""

    name = model_jobs.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Model task")
    plural = gettext_lazy("Model tasks")
    icon = "models"
    order = 65
    step = False
    view_action = Action.MODELS_VIEW
    submit_action = Action.MODELS_MANAGE
    can = Capabilities(pause=False, finish=False, restore=True)
    about_restore = gettext_lazy("Runs it once more, from its beginning.")

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        task = self._task(job)
        if task.act == ModelTask.Act.BASELINE:
            return self._counting(task, run)
        if task.act == ModelTask.Act.TRY:
            return self._trying(task, run)
        if task.act == ModelTask.Act.IMPORT:
            if not model_imports.are_files_there(job):
                raise Vanished(wording.message("model_task.import_gone"))
            return model_imports.launch(task, run)
        if task.act == ModelTask.Act.TORCH:
            return self._for_torch(task, run)
        return self._measuring(task, run) if task.act == ModelTask.Act.MEASURE else self._converting(task, run)

    def _task(self, job: Job) -> ModelTask:
        """What the job is about; a measurement goes with the version that it measures.

        Raises:
            Vanished: it is gone.
        """
        task = ModelTask.objects.filter(job=job).select_related("version__model", "job__owner").first()
        if task is None:
            raise Vanished(wording.message("model_task.version_gone"))
        return task

    def _measuring(self, task: ModelTask, run: RunDir) -> Launch:
        seen = ModelVersion.objects.usable_by(task.job.owner).filter(pk=task.version_id or 0).first()
        if seen is None:
            raise Vanished(wording.message("model_task.version_gone"))
        copy_code(run, "server", "task_kinds", "measuring")
        return Launch(
            argv=[sys.executable, "-m", "inference.measuring"],
            env={"AIP_MODEL_DIR": str(seen.path)},
            read_only=[seen.path],
            own_network=True,
        )

    def _counting(self, task: ModelTask, run: RunDir) -> Launch:
        seen = ModelVersion.objects.usable_by(task.job.owner).filter(pk=task.version_id or 0).first()
        data = baselines.data_of(seen, task.job.owner) if seen is not None else None
        if seen is None or data is None:
            raise Vanished(wording.message("model_task.version_gone"))
        copy_code(run, "server", "task_kinds", "measuring")
        return Launch(
            argv=[sys.executable, "-m", "inference.measuring.baseline"],
            env={"AIP_MODEL_DIR": str(seen.path), "AIP_DATASET_DIR": str(data.path)},
            read_only=[seen.path, data.path],
            own_network=True,
        )

    def _converting(self, task: ModelTask, run: RunDir) -> Launch:
        kept, spec = model_jobs.archive_of(task.job), task.job.spec
        archive = run.inputs / f"archive{spec['suffix']}"
        run.inputs.mkdir(parents=True, exist_ok=True)
        if not kept.is_file():
            raise Vanished(wording.message("model_task.archive_gone"))
        if not archive.exists():
            shutil.copyfile(kept, archive)
        copy_code(run, "converter")
        write_json(run.params, {side: spec["declared"][side] for side in ("width", "height")})
        return Launch(
            argv=[sys.executable, "-m", "inference.converter"],
            env={"AIP_ARCHIVE": str(archive)},
            own_network=True,
        )

    def _for_torch(self, task: ModelTask, run: RunDir) -> Launch:
        seen = ModelVersion.objects.usable_by(task.job.owner).filter(pk=task.version_id or 0).first()
        if seen is None:
            raise Vanished(wording.message("model_task.version_gone"))
        presets = Path(tiling.__file__).parent.parent
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(presets, run.code / presets.name, dirs_exist_ok=True, ignore=ignore)
        return Launch(
            argv=[sys.executable, "-m", "presets.torch_export"],
            env={"AIP_MODEL_DIR": str(seen.path)},
            read_only=[seen.path],
            own_network=True,
        )

    def _trying(self, task: ModelTask, run: RunDir) -> Launch:
        kept, number = trials.home(task.job), task.job.spec["version"]
        data = DatasetVersion.objects.usable_by(task.job.owner).filter(pk=number or 0).first()
        if number and data is None:
            raise Vanished(wording.message("model_task.data_gone"))
        copy_code(run, "server", "task_kinds", "evaluator", "predictor", "trier")
        write_json(run.params, trials.params(task))
        environ = {"AIP_TRY_DIR": str(kept)}
        if data is not None:
            environ |= {"AIP_DATASET_DIR": str(data.path), "AIP_IMAGES_DIR": str(data.images_path)}
        argv, readable = [sys.executable, "-m", "inference.trier"], [kept, *(data.folders if data else ())]
        return Launch(argv=argv, env=environ, read_only=readable, own_network=True)

    def ended(self, job: Job, attempt: Attempt) -> None:
        model_jobs.publish(job, attempt)
        task = ModelTask.objects.filter(job=job).select_related("version", "job").first()
        if task is not None and task.act == ModelTask.Act.TRY:
            trials.publish(task, attempt)
        elif task is not None and task.act == ModelTask.Act.IMPORT:
            model_imports.publish(task, attempt)
        elif task is not None and task.act == ModelTask.Act.TORCH:
            exports.keep(task, RunDir.of(job.pk, attempt.number).outputs)
        elif task is not None and task.act == ModelTask.Act.BASELINE:
            outputs = RunDir.of(job.pk, attempt.number).outputs
            baselines.keep(task, model_jobs.read(outputs, baselines.FILE))

    def check_restore(self, job: Job) -> None:
        task = self._task(job)
        if task.act == ModelTask.Act.CONVERT:
            if not model_jobs.archive_of(job).is_file():
                raise Vanished(wording.message("model_task.archive_gone"))
        elif task.act == ModelTask.Act.TRY:
            trials.files_of(task)
        elif task.act == ModelTask.Act.IMPORT:
            if not model_imports.are_files_there(job):
                raise Vanished(wording.message("model_task.import_gone"))
        elif not ModelVersion.objects.usable_by(job.owner).filter(pk=task.version_id or 0).exists():
            raise Vanished(wording.message("model_task.version_gone"))
        cluster_for(job.owner, job.cluster)

    def url(self, job: Job) -> str:
        task = ModelTask.objects.filter(job=job).select_related("version__model", "made__model").first()
        shown = task and (task.made or task.version)
        if not task or not shown or task.act == ModelTask.Act.TRY:  # whose ways stand on the job's page
            return super().url(job)
        page = f"{reverse('inference:model-detail', args=[shown.model_id])}?version={shown.number}"
        return page if task.made else f"{page}#h-{'torch' if task.act == ModelTask.Act.TORCH else 'speed'}"

    def facts(self, job: Job) -> list[Fact]:
        task = ModelTask.objects.filter(job=job).select_related("version__model", "made__model").first()
        if task is None:
            return []
        about = [Fact(gettext_lazy("Act"), task.get_act_display())]
        if task.version is not None:
            about.append(Fact(gettext_lazy("Model"), str(task.version)))
        if task.made is not None:
            about.append(Fact(gettext_lazy("Made"), str(task.made)))
        return about


class ServiceKind(JobKind):
    """`python -m inference.server` behind the proxy."""

    name = serving.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Inference service")
    plural = gettext_lazy("Inference")
    hint = gettext_lazy("Put a model to work")
    icon = "inference"
    order = 70
    list_page = "inference:service-list"
    start_page = "inference:service-new"
    start_word = gettext_lazy("Start a service")
    view_action = Action.SERVICES_VIEW
    submit_action = Action.SERVICES_MANAGE
    idle_guard = False  # nobody calling is no waste: it holds its card in order to answer
    answers_requests = True
    evictable = False
    can = Capabilities(pause=False, finish=False)  # started again by a new job, see `serving.start`

    def startable(self, user: User) -> bool:
        """Whether a model is there to serve."""
        return Model.objects.visible_to(user).exists()

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        service = Service.objects.select_related("owner").filter(pk=job.spec["service"]).first()
        if service is None:
            raise Vanished(wording.message("service.deleted"))
        # what it is to answer with next, or tries, is another than what it answers with
        asked = job.spec["model_version"] if job.pk != service.job_id else None
        version = withdrawing.usable_version(service, asked)
        copy_code(run, "server", "task_kinds")
        return Launch(
            argv=[sys.executable, "-m", "inference.server"],
            env={
                "AIP_MODEL_DIR": str(version.path),
                "AIP_SERVICE_KEY": serving.key_for(job.pk, attempt.number),
                **launching.environment(service, version, job.spec),
            },
            read_only=[version.path],
            ports=1,
        )

    def ended(self, job: Job, attempt: Attempt) -> None:
        collecting.keep_last(job, attempt)

    def url(self, job: Job) -> str:
        service = Service.objects.filter(pk=job.spec.get("service")).first()
        return reverse("inference:service-detail", args=[service.pk]) if service else ""

    def count(self, user: User) -> int:
        return Service.objects.visible_to(user).count()

    def find(self, user: User, words: str, limit: int) -> Iterator[Hit]:
        return searching.services(user, words, limit)
