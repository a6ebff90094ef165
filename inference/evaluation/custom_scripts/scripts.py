"""Evaluations by somebody's own script: what of a request is refused, how the row keeps it, what became of it."""

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
    """Refuse at once what `check` refuses of parts that mean something without the others."""
    found = Refusals()
    with found:
        custom_code.check_arguments(arguments, known=PLACEHOLDERS)
    with found:
        custom_code.check_output_path(output_path)
    found.end()


def check(user: User, request: ScriptRequest) -> dict[str, Any]:
    """Refuse a script that cannot be run; returns its parameters.

    Raises:
        BadStartFile, BadParameter, Invalid: a value is wrong, or code or start file are missing; all at once.
    """
    found, params = Refusals(), dict[str, Any]()
    with found:
        check_parts(arguments=request.arguments, output_path=request.output_path)
    with found:
        if not request.start_file:
            raise snapshots.BadStartFile(_("Say which file of your code judges, for instance evaluate.py."))
        if request.code is None:
            raise Invalid(_("Bring the code that the start file is in."), field="code")
        snapshots.check_start_file(request.code, request.start_file)
    with found:
        params = parameters.plain_pairs(request.params)
    with found:
        uses.check(user, request.image)
    found.end()
    return params


def check_data(user: User, version: DatasetVersion, split: str) -> None:
    """Refuse data that the script cannot read; it need not be annotated.

    Raises:
        VersionNotReady: it is not whole, or not for this person.
        Invalid: a split that it does not have, or that only our evaluation can tell.
    """
    found = Refusals()
    with found:
        data_checks.check_readable(user, version)
    with found:
        if split == UNSEEN:
            said = _("An own script is not told which images the model learned from. Choose another split.")
            raise Invalid(said, field="split")
    found.end()


def best_split(version: DatasetVersion) -> str:
    """The split that a script is told where the platform may choose: test, else val; "" is all images."""
    return next((name for name in ("test", "val") if version.splits.get(name)), "")


def keep(evaluation: Evaluation, request: ScriptRequest) -> Script:
    """Write the row of a request that `check` took, and let the job run in its image."""
    assert request.code is not None  # `check` has asked
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


def of(evaluation: Evaluation) -> dict[str, Any]:
    """FIELDS of the script of an evaluation, to judge with it again; nothing where ours judges.

    Secrets in its words are left out, to be given anew.
    """
    if not evaluation.is_scripted:
        return {}
    row = evaluation.script
    return {
        "code": row.code, "start_file": row.start_file, "arguments": open_words(row.arguments),
        "output_path": row.output_path, "image": uses.image_of(evaluation.job),
    }  # fmt: skip


def open_words(arguments: str) -> str:
    """Words of a script without the secrets among them, which are given anew."""
    for secret in sorted(command_lines.secrets_in(arguments), key=len, reverse=True):
        arguments = arguments.replace(secret, "")
    return arguments


def open_pairs(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a script; secrets are empty, to be given anew."""
    return {name: "" if secret_names.is_secret(name) else value for name, value in params.items()}


class Judging(Protocol):
    """An evaluation or a parameter set."""

    @property
    def is_scripted(self) -> bool: ...

    @property
    def params(self) -> Any: ...


def shown_params(row: Judging) -> dict[str, Any]:
    """The parameters for whoever may see the row; a script may have been given secrets."""
    return secret_names.mask_params(row.params) if row.is_scripted else dict(row.params)


def open_params(evaluation: Evaluation) -> dict[str, Any]:
    """The parameters of an evaluation to begin another with; secrets are left empty, to be given anew."""
    if not evaluation.is_scripted:
        return dict(evaluation.params)
    return open_pairs(evaluation.params)


def problems(row: Script) -> list[Message]:
    """Why its newest attempt left no figures; each says what to do."""
    return [Message.from_json(one) for one in row.problems]


def publish(evaluation: Evaluation, attempt: Attempt) -> None:
    """Keep the figures that an attempt left, or why it left none; may be called again."""
    row = evaluation.script
    found = script_metrics.Found()
    if attempt.state in COMPLETED:
        found = script_metrics.left(RunDir.of(evaluation.job_id, attempt.number).outputs)
    elif attempt.state == JobState.FAILED and attempt.exit_code:
        found.problems = [wording.message("own_script.failed", file=row.start_file, code=attempt.exit_code)]
    row.problems = [one.as_json() for one in found.problems]
    if found.rows and not found.problems:
        row.figures = found.rows
        evaluation.metrics = script_metrics.flat(found.rows)
        evaluation.published_attempt = attempt.number
        evaluation.save(update_fields=["metrics", "published_attempt"])
    row.save(update_fields=["figures", "problems"])
