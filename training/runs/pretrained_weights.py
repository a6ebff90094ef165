"""What a preset starts from or learns after: a version of the registry, or a file in its owner's home.

A parameter names it, as OWNER/NAME v2 or as a path below the home. The registry lies above this room and registers how
it finds versions. Files are only ever opened by the job, in its sandbox.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import file_names, files, trees, wording
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.registry import Slot
from datasets.files import homes
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.programs.start import CannotRun
from training.runs import custom_networks, parameters
from training.runs.models import TrainingJob
from training.runs.parameters import BadParameter
from workers.core.models import Attempt
from workers.core.runs import RunDir

FILE, MODEL = "weights", "teacher"  # parameters: a model or a file; a model only
NAMES = (FILE, MODEL)
SUFFIXES = (".safetensors", ".pth", ".pt", ".ckpt")
MAX_BYTES = 4 << 30
NAMED = re.compile(r"(?:(?P<owner>[^/]+)/)?(?P<name>[^/@]+)(?: v(?P<number>\d{1,9})|@(?P<alias>[^/@ ]{1,50}))")


@dataclass(frozen=True)
class RegisteredModel:
    """A version of the registry that a training may start from."""

    full_name: str  # OWNER/NAME v2
    folder: Path
    preset: str
    weights: str  # file in the folder; "" where it has none
    params: Mapping[str, Any]  # what it was trained with, as its files say
    architecture: str  # as its files say, and as the program that builds it anew believes
    archived: bool = False  # nothing new begins with it


@dataclass(frozen=True)
class Models:
    """Lookups in the registry: visible versions by name and number, and the newest versions."""

    named: Callable[[User, str, str, int | str], Sequence[RegisteredModel]]  # owner "" is anybody; a text: an alias
    newest: Callable[[User], Sequence[str]]


MODELS: Slot[Models] = Slot("registry of models")


def settled(owner: User, preset: Preset, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with models by their full names.

    Raises:
        BadParameter: no such model or file for this person, or one that has nothing to start from.
    """
    refusals, values = Refusals(), dict(params)
    for name in NAMES:
        value = str(params.get(name) or "").strip()
        if not value:
            continue
        with refusals:
            if name == FILE and _is_file(value):
                _check_file(owner, value)
                values[name] = value
            else:
                values[name] = _in_use(_model(owner, value, name, preset), name).full_name
    refusals.end()
    return values


def check_teacher(training: TrainingJob) -> None:
    """Refuse to resume a training whose teacher is deleted: unlike weights, it is used until the end.

    Raises:
        BadParameter: it was deleted, or is no longer its owner's to use.
    """
    teacher, preset = str(training.params.get(MODEL) or ""), PRESETS.get(training.preset)
    if not teacher or preset is None:
        return
    try:
        _model(training.job.owner, teacher, MODEL, preset)
    except BadParameter as exc:
        message = _(
            "The teacher %(words)s no longer exists, so the training cannot continue with it: %(why)s Choose "
            "another teacher, or none."
        )
        raise _refused(message % {"words": teacher, "why": exc.message}, MODEL) from None


def offered(user: User) -> Sequence[str]:
    """The newest versions that this person may start from, by their full names."""
    models = MODELS.get()
    return models.newest(user) if models else ()


def begun_from(user: User, reference: str) -> tuple[str, dict[str, Any]]:
    """Return the preset and parameters of a training that continues from a model: the same network.

    Raises:
        BadParameter: no such model for this person, or one that has nothing to start from.
    """
    model = _in_use(_model(user, reference, FILE, None), FILE)
    preset = PRESETS.get(model.preset)
    if preset is None or FILE not in {param.name for param in preset.parameters}:
        raise _refused(
            _("%(words)s was not trained by a preset that supports continued training.") % {"words": model.full_name},
            FILE,
        )
    of_network = {param.name for param in preset.parameters if param.group == "model"}
    same = {name: value for name, value in parameters.changed(preset, model.params).items() if name in of_network}
    return preset.name, {**same, FILE: model.full_name}


def handed_over(training: TrainingJob, attempt: Attempt, run: RunDir) -> tuple[dict[str, str], list[Path]]:
    """Return variables with the paths of the weights, and the folders that the program must read for them.

    A file of the home is copied among the inputs: what its owner changes meanwhile changes no run.

    Raises:
        CannotRun: they are gone, or no longer its owner's to use.
    """
    env: dict[str, str] = {}
    folders: list[Path] = []
    preset = PRESETS.get(training.preset)
    for name in NAMES if preset else ():
        value = str(training.params.get(name) or "")
        if not value or (name == FILE and attempt.checkpoint_in):  # what goes on has learned from them already
            continue
        try:
            if name == FILE and _is_file(value):
                path = _copied(training.job.owner, value, run.inputs)
            else:
                model = _model(training.job.owner, value, name, preset)
                path = model.folder / model.weights
                folders.append(model.folder)
        except (BadParameter, OSError):
            raise CannotRun(wording.message("training.weights_gone", weights=value)) from None
        env[f"AIP_{name.upper()}"] = str(path)
    return env, folders


def _is_file(value: str) -> bool:
    return value.lower().endswith(SUFFIXES)


def _model(user: User, reference: str, name: str, preset: Preset | None) -> RegisteredModel:
    parts, models = NAMED.fullmatch(reference), MODELS.get()
    if parts is None:
        message = _("Name a model as OWNER/NAME v2 or OWNER/NAME@ALIAS.") if name == MODEL else _(
            "Name a model as OWNER/NAME v2 or OWNER/NAME@ALIAS, or a .safetensors or .pth file in your home."
        )  # fmt: skip
        raise _refused(message, name)
    which = int(parts["number"]) if parts["number"] else parts["alias"]
    matches = models.named(user, parts["owner"] or "", parts["name"], which) if models else ()
    if not matches:
        raise _refused(_("Model %(words)s not found.") % {"words": reference}, name)
    if len(matches) > 1:
        both = ", ".join(match.full_name for match in matches)
        raise _refused(_("Several models have this name: %(both)s. Add the owner.") % {"both": both}, name)
    match = matches[0]
    if not match.weights:
        message = _(
            "%(words)s has only an ONNX file, which cannot be trained further. Choose a model that was trained here."
        )
        raise _refused(message % {"words": match.full_name}, name)
    if (
        name == MODEL
        and match.architecture == custom_networks.OWN
        and not match.full_name.startswith(f"{user.username}/")
    ):
        message = _(
            "Another user wrote the network of %(words)s. Only its owner can train it, because this runs its program."
        )
        raise _refused(message % {"words": match.full_name}, name)
    if name == MODEL and preset and match.preset != preset.name:
        message = _("%(words)s was not trained by %(preset)s. A teacher must have the same task and output.")
        raise _refused(message % {"words": match.full_name, "preset": preset.name}, name)
    return match


def _in_use(model: RegisteredModel, name: str) -> RegisteredModel:
    """Return the model unless it is archived: running trainings continue with it, new ones may not use it."""
    if model.archived:
        message = _("%(words)s is archived. Choose another version, or unarchive it on the model page.")
        raise _refused(message % {"words": model.full_name}, name)
    return model


def _check_file(owner: User, path: str) -> None:
    try:
        with os.fdopen(_opened(owner, path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
    except (OSError, files.OutsideRoot, Invalid):
        message = _("File %(words)s not found in your home folder. Links are not followed.")
        raise _refused(message % {"words": path}, FILE) from None
    if size > MAX_BYTES:
        raise _refused(_("%(words)s is larger than %(limit)s GiB.") % {"words": path, "limit": MAX_BYTES >> 30}, FILE)


def _copied(owner: User, path: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"weights{Path(path).suffix.lower()}"
    try:
        descriptor = _opened(owner, path)
    except (files.OutsideRoot, Invalid) as exc:
        raise FileNotFoundError(path) from exc
    with os.fdopen(descriptor, "rb") as file, files.atomic_writer(target) as out:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise FileNotFoundError(path)
        shutil.copyfileobj(file, out, 1 << 20)
    return target


def _opened(owner: User, path: str) -> int:
    parts = file_names.parse(path)
    if not parts:
        raise Invalid(_("Invalid path."), field="path")
    with trees.opened(homes.home_of(owner), parts[:-1]) as folder:
        return trees.open_file(folder, parts[-1])


def _refused(message: str, name: str) -> BadParameter:
    return BadParameter(message, field=f"param_{name}", name=name)
