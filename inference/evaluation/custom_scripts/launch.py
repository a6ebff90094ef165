"""How a job with an own script of an evaluation is started: as trainings with own code are."""

from __future__ import annotations

import json
from dataclasses import replace

from aiplatform.lib import secret_names, wording
from aiplatform.lib.errors import DomainError
from inference.evaluation.models import Evaluation
from inference.registry.models import ModelVersion
from training.programs import data_checks, run_inputs, workdir
from training.programs import script as command_lines
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.services import launch as launching
from workers.jobs import resource_request

ROLE = "eval"  # of its data, in AIP_DATASETS
FINISH_GRACE_S = 30.0  # a script may not listen: it hears TERM soon


class CannotJudge(DomainError, code="vanished"):
    """The model or the data of the script is no longer there for its owner."""


def launch(evaluation: Evaluation, job: Job, attempt: Attempt, run: RunDir) -> Launch:
    """Copy the code, link the data, write the parameters; safe to call again.

    Raises:
        CannotJudge: model, data or membership were removed since the submission.
    """
    model, version, row = evaluation.model_version, evaluation.version, evaluation.script
    if model is None or version is None:
        raise CannotJudge(wording.message("evaluation.gone"))
    if attempt.number == 1:  # what once ran keeps its data, even when a public dataset was made private
        _check_allowed(evaluation, job)
    workdir.populate(run, row.code, output_path=row.output_path)
    data_env = run_inputs.linked_as(run, [(version, ROLE)])
    run.params.parent.mkdir(parents=True, exist_ok=True)
    params = {"dataset": evaluation.version_label, **evaluation.params}
    run.params.write_text(json.dumps(params, ensure_ascii=False, indent=1), encoding="utf-8")
    made = Launch(
        argv=[],
        command=command_lines.shown(f"{row.start_file} {row.arguments}".strip()),
        env=data_env
        | {
            "AIP_MODEL_DIR": str(model.path),
            "AIP_DATA_DIR": data_env["AIP_DATASET_DIR"],
            "AIP_PARAMS": str(run.params),
            "AIP_SPLIT": evaluation.split,
        },
        read_only=[model.path, *version.folders],
        secrets=[*secret_names.find_secrets(evaluation.params), *command_lines.secrets_in(row.arguments)],
        finish_grace_s=FINISH_GRACE_S,
    )
    made = launching.with_image(made, job)  # before the words: it says which Python there is
    places = {
        "model": str(model.path), "data": data_env["AIP_DATASET_DIR"], "output": str(run.outputs),
        "params": str(run.params),
    }  # fmt: skip
    arguments = command_lines.filled(row.arguments, places)
    return replace(made, argv=[launching.python(job), "-u", row.start_file, *arguments])


def _check_allowed(evaluation: Evaluation, job: Job) -> None:
    """Check again what may have changed while the evaluation waited."""
    owner = job.owner
    if not ModelVersion.objects.usable_by(owner).filter(pk=evaluation.model_version_id or 0).exists():
        raise CannotJudge(wording.message("evaluation.gone"))
    if evaluation.version is not None:
        data_checks.check_readable(owner, evaluation.version)
    resource_request.cluster_for(owner, job.cluster)
