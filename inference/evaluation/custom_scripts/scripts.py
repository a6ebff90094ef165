"""Evaluations by custom scripts: check requests, store them in rows, publish their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import secret_names, wording
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.wording import Message
from datasets.models import DatasetVersion
from inference.evaluation import script_metrics
from inference.evaluation.custom_scripts.models import Script
from inference.evaluation.models import Evaluation
from inference.kit.samples.ground_truth import UNSEEN
from training.programs import data_checks, snapshots
from training.programs import script as command_lines
from training.programs.models import CodeSnapshot
from training.runs import custom_code, parameters
from workers.core.models import Attempt
from workers.core.runs import RunDir
from workers.core.states import COMPLETED, JobState
from workers.images.models import Image
from workers.images.services import uses

PLACEHOLDERS = ("model", "data", "output", "params")
#: What a request says of an own script, beside its parameters.
FIELDS = ("code", "start_file", "arguments", "output_path", "image")


@dataclass(frozen=True, kw_only=True)
class ScriptRequest:
    """A script that is to judge.

    Args:
        code, start_file: what is run, as trainings with own code name it.
        arguments: words after the start file; `{model} {data} {output} {params}` become paths.
        output_path: folder in the code whose content counts as the job's outputs.
        image: where its programs come from; None: the platform's own.
        params: what it reads from the file in AIP_PARAMS.
    """

    code: CodeSnapshot | None = None
    start_file: str = ""
    arguments: str = ""
    output_path: str = ""
    image: Image | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_asked(self) -> bool:
        """Whether it says anything: then ours does not judge."""
        return any(getattr(self, name) for name in FIELDS)


def check_parts(*, arguments: str = "", output_path: str = "") -> None:
    """Check the fields that `check` can check without the others."""
    refusals = Refusals()
    with refusals:
        custom_code.check_arguments(arguments, placeholders=PLACEHOLDERS)
    with refusals:
        custom_code.check_output_path(output_path)
    refusals.end()


def check(user: User, request: ScriptRequest) -> dict[str, Any]:
    """Check that a script can be run; returns its parameters.

    Raises:
        BadStartFile, BadParameter, Invalid: a value is wrong, or code or start file are missing; all at once.
    """
    refusals, params = Refusals(), dict[str, Any]()
    with refusals:
        check_parts(arguments=request.arguments, output_path=request.output_path)
    with refusals:
        if not request.start_file:
            raise snapshots.BadStartFile(_("Specify the evaluation file of your code, for example evaluate.py."))
        if request.code is None:
            raise Invalid(_("Upload the code that contains the entry point."), field="code")
        snapshots.check_start_file(request.code, request.start_file)
    with refusals:
        params = parameters.plain_pairs(request.params)
    with refusals:
        uses.check(user, request.image)
    refusals.end()
    return params


def check_data(user: User, version: DatasetVersion, split: str) -> None:
    """Check that the script can read the data, which need not be annotated.

    Raises:
        VersionNotReady: it is incomplete, or not usable by the user.
        Invalid: a split that it does not have, or that only our evaluation can tell.
    """
    refusals = Refusals()
    with refusals:
        data_checks.check_readable(user, version)
    with refusals:
        if split == UNSEEN:
            message = _("A custom script does not receive the training images of the model. Choose another split.")
            raise Invalid(message, field="split")
    refusals.end()


def best_split(version: DatasetVersion) -> str:
    """Return the split for a script when the platform chooses: test, else val; "" is all images."""
    return next((name for name in ("test", "val") if version.splits.get(name)), "")


def create(evaluation: Evaluation, request: ScriptRequest) -> Script:
    """Create the row of a checked request, and attach its environment image to the job."""
    assert request.code is not None  # `check` checked it
    uses.attach(evaluation.job, request.image)
    return Script.objects.create(
        evaluation=evaluation,
        code=request.code,
        start_file=snapshots.check_start_file(request.code, request.start_file),
        arguments=request.arguments.strip(),
        output_path=custom_code.check_output_path(request.output_path),
    )


def spec(request: ScriptRequest, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the job's spec says of it; values by whose names they are secret are hidden."""
    code = request.code
    return {
        "start_file": request.start_file,
        "arguments": command_lines.shown(request.arguments),
        "output_path": request.output_path,
        "code": {"id": code.pk, "origin": code.origin, "files": code.files} if code else None,
        "params": secret_names.mask_params(params),
    }


def from_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Return FIELDS of the script of an evaluation, to run it again; empty without a script.

    Secrets in its arguments are left out; the user enters them again.
    """
    if not evaluation.is_scripted:
        return {}
    row = evaluation.script
    return {
        "code": row.code, "start_file": row.start_file, "arguments": open_words(row.arguments),
        "output_path": row.output_path, "image": uses.image_of(evaluation.job),
    }  # fmt: skip


def open_words(arguments: str) -> str:
    """Return the arguments of a script without secrets, which the user enters again."""
    for secret in sorted(command_lines.secrets_in(arguments), key=len, reverse=True):
        arguments = arguments.replace(secret, "")
    return arguments


def open_pairs(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a script; secrets are empty, the user enters them again."""
    return {name: "" if secret_names.is_secret(name) else value for name, value in params.items()}


class Judging(Protocol):
    """An evaluation or a parameter set."""

    @property
    def is_scripted(self) -> bool: ...

    @property
    def params(self) -> Any: ...


def shown_params(row: Judging) -> dict[str, Any]:
    """Return the parameters for users who may see the row; those of a script may include secrets, which are hidden."""
    return secret_names.mask_params(row.params) if row.is_scripted else dict(row.params)


def open_params(evaluation: Evaluation) -> dict[str, Any]:
    """Return the parameters of an evaluation for starting another one; secrets are empty."""
    if not evaluation.is_scripted:
        return dict(evaluation.params)
    return open_pairs(evaluation.params)


def problems(row: Script) -> list[Message]:
    """Return why the newest attempt has no metrics; each message states what to do."""
    return [Message.from_json(problem) for problem in row.problems]


def publish(evaluation: Evaluation, attempt: Attempt) -> None:
    """Store the metrics of an attempt, or why it has none; idempotent."""
    row = evaluation.script
    result = script_metrics.ScriptMetrics()
    if attempt.state in COMPLETED:
        result = script_metrics.read_outputs(RunDir.for_attempt(evaluation.job_id, attempt.number).outputs)
    elif attempt.state == JobState.FAILED and attempt.exit_code:
        result.problems = [wording.message("own_script.failed", file=row.start_file, code=attempt.exit_code)]
    row.problems = [problem.as_json() for problem in result.problems]
    if result.rows and not result.problems:
        row.figures = result.rows
        evaluation.metrics = script_metrics.flat(result.rows)
        evaluation.published_attempt = attempt.number
        evaluation.save(update_fields=["metrics", "published_attempt"])
    row.save(update_fields=["figures", "problems"])
