"""Job kind of a program that runs with a model version."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from aiplatform.lib import wording
from aiplatform.lib.files import write_json
from datasets.models import DatasetVersion
from inference.registry import retention, training_data
from inference.registry.models import ModelVersion
from inference.registry.run_code import DEVICE_KINDS, Vanished, copy_code
from workers.core.kinds import Capabilities, Fact, JobKind, Launch
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.jobs.resource_request import cluster_for


class ModelJobKind(JobKind):
    """The kind NAME has one row for each job, `job.NAME`, and the pages `inference:NAME-…`.

    Its message `NAME.gone` is shown where the model or the source was deleted before the start.

    Attributes:
        rows: table of the rows.
        packages: what is copied into the run besides `kit`, as paths below `inference`; the last one is the program.
        version_field, data_field: columns with the model version and the dataset version.
        source: label and column of what the program reads, a fact of the job.
        holder_text: see `retention.Holder`.
        own_network: see `Launch`.
    """

    rows: ClassVar[Any]
    packages: ClassVar[tuple[str, ...]]
    version_field: ClassVar[str] = "version"
    data_field: ClassVar[str] = "data"
    source: ClassVar[tuple[Any, str]] = (gettext_lazy("Dataset"), "data_label")
    holder_text: ClassVar[Any]
    own_network: ClassVar[bool] = True
    device_kinds = DEVICE_KINDS
    step = False
    view_action = Action.EVALUATIONS_VIEW
    submit_action = Action.EVALUATIONS_SUBMIT
    can = Capabilities(pause=True, suspend=True, finish=True, restore=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.list_page, cls.related = f"inference:{cls.name}-list", (cls.name,)

    def row(self, job: Job) -> Any:
        return self.rows.objects.for_list().get(job=job)

    def has_source(self, row: Any) -> bool:
        """Whether the owner of the job may use what the program reads."""
        data = DatasetVersion.objects.usable_by(row.job.owner)
        return data.filter(pk=getattr(row, f"{self.data_field}_id") or 0).exists()

    def launch(
        self, row: Any, run: RunDir, params: Mapping[str, Any], env: Mapping[str, str] | None = None,
        read_only: Sequence[Path] = (),
    ) -> Launch:  # fmt: skip
        """Copy the program, write `params`, return the start of the program with model, dataset and training data.

        Raises:
            Vanished: the model was deleted.
        """
        version, data = getattr(row, self.version_field), getattr(row, self.data_field)
        if version is None:
            self.refuse_launch()
        copy_code(run, "kit", *self.packages)
        trained = training_data.for_model(version, owner=row.job.owner)
        write_json(run.params, {**params, "split": row.split, "learned": trained and trained.for_run()})
        environ, readable = {"AIP_MODEL_DIR": str(version.path), **(env or {})}, [version.path, *read_only]
        if data is not None:
            datasets = [{"name": data.dataset.name, "role": "eval", "dir": str(data.path)}]
            environ |= {"AIP_DATASET_DIR": str(data.path), "AIP_DATASETS": json.dumps(datasets)}
            readable += data.folders
        readable += [trained.version.path] if trained else []
        return Launch(argv=self.argv, env=environ, read_only=readable, own_network=self.own_network)

    @property
    def argv(self) -> list[str]:
        """The command of the program."""
        return [sys.executable, "-m", f"inference.{self.packages[-1].replace('/', '.')}"]

    def refuse_launch(self) -> NoReturn:
        """Refuse to start without model or source.

        Raises:
            Vanished.
        """
        raise Vanished(wording.message(f"{self.name}.gone"))

    def check_restore(self, job: Job) -> None:
        row = self.row(job)
        version = ModelVersion.objects.usable_by(job.owner).filter(pk=getattr(row, f"{self.version_field}_id") or 0)
        if not version.exists() or not self.has_source(row):
            raise Vanished(_("You can no longer access the model or the data of this job."))
        cluster_for(job.owner, job.cluster)

    def url(self, job: Job) -> str:
        return reverse(f"inference:{self.name}-detail", args=[getattr(job, self.name).pk])

    def facts(self, job: Job) -> list[Fact]:
        row = self.rows.objects.filter(job=job).first()
        label, column = self.source
        return [Fact(gettext_lazy("Model"), row.model_label), Fact(label, getattr(row, column))] if row else []

    def holder(self) -> retention.Holder:
        """Unfinished jobs keep the files of their model version."""
        rows, field = self.rows, self.version_field
        return retention.Holder(
            self.name,
            self.holder_text,
            lambda version: retention.unfinished(rows.objects.filter(**{field: version})),
        )
