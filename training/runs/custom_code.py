"""A training with somebody's own code: what of its request is refused, and how the row keeps it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import shell_words
from aiplatform.lib.errors import Invalid, Refusals
from datasets.models import DatasetVersion
from training.programs import data_checks, layout, program, requests, run_inputs, script, snapshots
from training.programs import variables as environment
from training.programs.launchers import Launcher
from training.runs import parameters
from training.runs.models import TrainingJob
from workers.images.services import uses

if TYPE_CHECKING:
    from training.runs.drafts import TrainingRequest

PLACEHOLDERS = ("resume", "data", "output", "params")
ONLY_OWN = ("command", "worker_command", "launcher", "variables", "secrets", "image", "datasets", "root_inside")
"""Fields of a request that a preset has no use for."""


def check_parts(
    *,
    arguments: str = "",
    output_path: str = "",
    command: str = "",
    worker_command: str = "",
    variables: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> None:
    """Refuse at once the parts of a request that are wrong regardless of the others."""
    refusals = Refusals()
    with refusals:
        check_arguments(arguments)
    with refusals:
        check_output_path(output_path)
    for field, text in (("command", command), ("worker_command", worker_command)):
        with refusals:
            if text:
                script.check(text, field=field)
    with refusals:
        requests.check_environment(variables, secrets)
    refusals.end()


def check_none(request: TrainingRequest) -> None:
    """Refuse fields in a preset's request that only custom code takes.

    Raises:
        Invalid: one for each such field.
    """
    refusals = Refusals()
    for name in ONLY_OWN:
        with refusals:
            if getattr(request, name):
                message = _("A preset has its own program and environment, so this does not apply. Use custom code.")
                raise Invalid(message, field=name)
    refusals.end()


def apply_request(training: TrainingJob, user: User, request: TrainingRequest) -> None:
    """Check all parts of the custom code at once, and write them into the row.

    Raises:
        BadStartFile, Invalid: a value is wrong, or there is nothing to run, or there are two things.
        VersionNotReady, WrongTask: the data does not fit.
    """
    refusals = Refusals()
    with refusals:
        check_parts(
            arguments=request.arguments, output_path=request.output_path, command=request.command,
            worker_command=request.worker_command, variables=request.variables, secrets=request.secrets,
        )  # fmt: skip
    with refusals:
        environment.check_stored(user, request.secrets)
    with refusals:
        training.start_file = _start_file(request)
    with refusals:
        training.params = parameters.plain_pairs(request.params)
    with refusals:
        _check_launcher(request)
    with refusals:
        uses.check(user, request.image)
    with refusals:
        _check_data(user, request)
    refusals.end()
    for name, value in request.columns(user).items():
        setattr(training, name, value)
    training.arguments = request.arguments.strip() if training.start_file else ""
    training.output_path = check_output_path(request.output_path)
    training.writes_checkpoints = request.writes_checkpoints
    training.script = script.normalised(request.command)
    training.worker_script = script.normalised(request.worker_command)
    training.launcher = request.launcher or (Launcher.ONCE if training.script else "")
    if training.launcher in (
        "",
        Launcher.ONCE,
    ):  # a script that knows of no ranks would do all of its work twice
        training.processes = training.processes or 1


def _start_file(request: TrainingRequest) -> str:
    """The start file, "" where a command line is run instead."""
    if request.command and request.start_file:
        raise Invalid(_("Specify an entry point or a command line, not both."), field="command")
    if request.command:
        return ""
    if request.code is None:
        raise Invalid(_("Choose a preset, or upload your own code."), field="preset")
    if not request.start_file:
        raise snapshots.BadStartFile(_("Specify the entry point of the code, or a command line."))
    return snapshots.check_start_file(request.code, request.start_file)


def _check_launcher(request: TrainingRequest) -> None:
    """Refuse a useless launcher; a start file without one is started by torchrun where needed."""
    if request.launcher or request.command:
        how = request.launcher or Launcher.ONCE
        processes = 0 if request.processes == 1 else request.processes
        layout.check(how, processes, request.worker_command, request.nodes)
    elif request.worker_command:
        message = _("A command for the other nodes needs a launcher: choose one.")
        raise Invalid(message, field="launcher")


def _check_data(user: User, request: TrainingRequest) -> None:
    """Refuse datasets that the user's job cannot read; they need not be annotated."""
    refusals = Refusals()
    version, other = request.version, request.eval_version
    with refusals:
        if version is not None:
            data_checks.check_readable(user, version)
    with refusals:
        if other is not None:
            data_checks.check_readable(user, other, field="eval_version")
            if version is None:
                raise Invalid(_("Choose the first dataset before the second."), field="eval_version")
            data_checks.check_alike(version, other)
    with refusals:
        run_inputs.check(user, request.datasets)
        named = {row.pk for row in (version, other) if row is not None}
        if any(row.pk in named for row in request.datasets):
            raise Invalid(_("Duplicate dataset."), field="datasets")
        if request.datasets and version is None:
            raise Invalid(_("Choose the first dataset before additional ones."), field="version")
    refusals.end()


def check_arguments(line: str, placeholders: Collection[str] = PLACEHOLDERS) -> str:
    """Check arguments of custom code, which are split like in a shell but never passed to one.

    Args:
        placeholders: names permitted in braces.

    Raises:
        Invalid: an open quote, a NUL, a hidden secret, or an unknown placeholder.
    """
    try:
        args = shell_words.split(line)
    except ValueError:
        raise Invalid(_("A quotation mark in the arguments is not closed."), field="arguments") from None
    if "\0" in line:
        raise Invalid(_("Arguments must not contain a NUL character."), field="arguments")
    script.check_whole(line, field="arguments")
    for word in args:
        for name in re.findall(r"\{([a-z_]+)\}", word):
            if name not in placeholders:
                there = ", ".join(f"{{{placeholder}}}" for placeholder in placeholders)
                raise Invalid(
                    _("{%(name)s} is unknown in arguments. Available: %(there)s.") % {"name": name, "there": there},
                    field="arguments",
                )
    return line.strip()


def check_output_path(value: str) -> str:
    """Return a folder in the code as a clean relative path; "" for none.

    Raises:
        Invalid: it leads out of the code or has odd characters.
    """
    text = value.strip()
    path = PurePosixPath(text)
    parts = path.parts
    if not text or str(path) == ".":
        return ""
    if path.is_absolute() or ".." in parts or not text.isprintable() or parts[0].startswith("-"):
        raise Invalid(_("The output path must be a folder inside your code, for example runs."), field="output_path")
    return str(path)


def spec(training: TrainingJob, datasets: Sequence[DatasetVersion], *, nodes: int) -> dict[str, Any]:
    """Return the part of a training's spec that describes custom code."""
    result: dict[str, Any] = {
        "start_file": training.start_file,
        "arguments": training.arguments,
        "output_path": training.output_path,
        "writes_checkpoints": training.writes_checkpoints,
        **requests.code_spec(training.code),
    }
    if datasets:
        result["datasets"] = run_inputs.spec(datasets)
    return result | {name: value for name, value in program.spec(training, nodes=nodes).items() if value}


def name_stem(request: TrainingRequest) -> str:
    """A name for own code without data: of its command line, else of its start file."""
    return script.name_of(request.command) if request.command else PurePosixPath(request.start_file).stem
