"""The job kind `model_task`: jobs that measure, read, check or export a model."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from django.urls import reverse
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from aiplatform.lib import wording
from aiplatform.lib.files import write_json
from datasets.models import DatasetVersion
from inference.registry import baselines, import_jobs, model_jobs
from inference.registry.import_trials import trials
from inference.registry.models import ModelTask, ModelVersion
from inference.registry.run_code import DEVICE_KINDS, Vanished, copy_code
from inference.registry.torch_export import exports
from training.presets import tiling
from workers.core.kinds import Capabilities, Fact, JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs.resource_request import cluster_for


class ModelTaskKind(JobKind):
    """`python -m inference.kit.speed` of a version, `.registry.torch_archives`, `.registry.import_check`."""

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
    about_restore = gettext_lazy("Runs it again from the beginning.")

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        task = self._task(job)
        if task.act == ModelTask.Act.BASELINE:
            return self._counting(task, run)
        if task.act == ModelTask.Act.TRY:
            return self._trying(task, run)
        if task.act == ModelTask.Act.IMPORT:
            if not import_jobs.are_files_there(job):
                raise Vanished(wording.message("model_task.import_gone"))
            return import_jobs.launch(task, run)
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
        version = ModelVersion.objects.usable_by(task.job.owner).filter(pk=task.version_id or 0).first()
        if version is None:
            raise Vanished(wording.message("model_task.version_gone"))
        copy_code(run, "kit")
        return Launch(
            argv=[sys.executable, "-m", "inference.kit.speed"],
            env={"AIP_MODEL_DIR": str(version.path)},
            read_only=[version.path],
            own_network=True,
        )

    def _counting(self, task: ModelTask, run: RunDir) -> Launch:
        version = ModelVersion.objects.usable_by(task.job.owner).filter(pk=task.version_id or 0).first()
        data = baselines.data_of(version, task.job.owner) if version is not None else None
        if version is None or data is None:
            raise Vanished(wording.message("model_task.version_gone"))
        copy_code(run, "kit", "serving/server")
        return Launch(
            argv=[sys.executable, "-m", "inference.serving.server.baseline"],
            env={"AIP_MODEL_DIR": str(version.path), "AIP_DATASET_DIR": str(data.path)},
            read_only=[version.path, data.path],
            own_network=True,
        )

    def _converting(self, task: ModelTask, run: RunDir) -> Launch:
        stored, spec = model_jobs.archive_of(task.job), task.job.spec
        archive = run.inputs / f"archive{spec['suffix']}"
        run.inputs.mkdir(parents=True, exist_ok=True)
        if not stored.is_file():
            raise Vanished(wording.message("model_task.archive_gone"))
        if not archive.exists():
            shutil.copyfile(stored, archive)
        copy_code(run, "registry/torch_archives")
        write_json(run.params, {side: spec["declared"][side] for side in ("width", "height")})
        return Launch(
            argv=[sys.executable, "-m", "inference.registry.torch_archives"],
            env={"AIP_ARCHIVE": str(archive)},
            own_network=True,
        )

    def _for_torch(self, task: ModelTask, run: RunDir) -> Launch:
        version = ModelVersion.objects.usable_by(task.job.owner).filter(pk=task.version_id or 0).first()
        if version is None:
            raise Vanished(wording.message("model_task.version_gone"))
        presets = Path(tiling.__file__).parent.parent
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(presets, run.code / presets.name, dirs_exist_ok=True, ignore=ignore)
        return Launch(
            argv=[sys.executable, "-m", "presets.torch_export"],
            env={"AIP_MODEL_DIR": str(version.path)},
            read_only=[version.path],
            own_network=True,
        )

    def _trying(self, task: ModelTask, run: RunDir) -> Launch:
        folder, number = trials.home(task.job), task.job.spec["version"]
        data = DatasetVersion.objects.usable_by(task.job.owner).filter(pk=number or 0).first()
        if number and data is None:
            raise Vanished(wording.message("model_task.data_gone"))
        copy_code(run, "kit", "registry/import_check")
        write_json(run.params, trials.params(task))
        environ = {"AIP_TRY_DIR": str(folder)}
        if data is not None:
            environ |= {"AIP_DATASET_DIR": str(data.path), "AIP_IMAGES_DIR": str(data.images_path)}
        argv, readable = (
            [sys.executable, "-m", "inference.registry.import_check"],
            [folder, *(data.folders if data else ())],
        )
        return Launch(argv=argv, env=environ, read_only=readable, own_network=True)

    def ended(self, job: Job, attempt: Attempt) -> None:
        model_jobs.publish(job, attempt)
        task = ModelTask.objects.filter(job=job).select_related("version", "job").first()
        if task is not None and task.act == ModelTask.Act.TRY:
            trials.publish(task, attempt)
        elif task is not None and task.act == ModelTask.Act.IMPORT:
            import_jobs.publish(task, attempt)
        elif task is not None and task.act == ModelTask.Act.TORCH:
            exports.store(task, RunDir.for_attempt(job.pk, attempt.number).outputs)
        elif task is not None and task.act == ModelTask.Act.BASELINE:
            outputs = RunDir.for_attempt(job.pk, attempt.number).outputs
            baselines.store(task, model_jobs.read(outputs, baselines.FILE))

    def check_restore(self, job: Job) -> None:
        task = self._task(job)
        if task.act == ModelTask.Act.CONVERT:
            if not model_jobs.archive_of(job).is_file():
                raise Vanished(wording.message("model_task.archive_gone"))
        elif task.act == ModelTask.Act.TRY:
            trials.files_of(task)
        elif task.act == ModelTask.Act.IMPORT:
            if not import_jobs.are_files_there(job):
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
        facts = [Fact(gettext_lazy("Action"), task.get_act_display())]
        if task.version is not None:
            facts.append(Fact(gettext_lazy("Model"), str(task.version)))
        if task.made is not None:
            facts.append(Fact(gettext_lazy("Created"), str(task.made)))
        return facts
