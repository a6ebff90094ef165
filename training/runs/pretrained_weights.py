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
from training.catalog import param_labels
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
LARGEST = 4 << 30
NAMED = re.compile(r"(?:(?P<owner>[^/]+)/)?(?P<name>[^/@]+)(?: v(?P<number>\d{1,9})|@(?P<alias>[^/@ ]{1,50}))")


@dataclass(frozen=True)
class RegisteredModel:
    """A version of the registry that somebody may start from."""

    words: str  # OWNER/NAME v2
    folder: Path
    preset: str
    weights: str  # file in the folder; "" where it has none
    params: Mapping[str, Any]  # what it was trained with, as its files say
    architecture: str  # as its files say, and as the program that builds it anew believes
    archived: bool = False  # nothing new begins with it


@dataclass(frozen=True)
class Models:
    """How the registry is asked: for what somebody may see of a name and number, and for the newest versions."""

    named: Callable[[User, str, str, int | str], Sequence[RegisteredModel]]  # owner "" is anybody; a text: an alias
    newest: Callable[[User], Sequence[str]]


MODELS: Slot[Models] = Slot("registry of models")


def settled(owner: User, preset: Preset, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with models by their full names.

    Raises:
        BadParameter: no such model or file for this person, or one that has nothing to start from.
    """
    found, values = Refusals(), dict(params)
    for name in NAMES:
        words = str(params.get(name) or "").strip()
        if not words:
            continue
        with found:
            if name == FILE and _is_file(words):
                _check_file(owner, words)
                values[name] = words
            else:
                values[name] = _in_use(_model(owner, words, name, preset), name).words
    found.end()
    return values


def check_teacher(training: TrainingJob) -> None:
    """Refuse to let a training go on whose teacher is gone: unlike weights, it is asked until the end.

    Raises:
        BadParameter: it was deleted, or is no longer its owner's to use.
    """
    words, preset = str(training.params.get(MODEL) or ""), PRESETS.get(training.preset)
    if not words or preset is None:
        return
    try:
        _model(training.job.owner, words, MODEL, preset)
    except BadParameter as exc:
        said = _("The teacher %(words)s is gone, so the training cannot go on with it: %(why)s Name another, or none.")
        raise _refused(said % {"words": words, "why": exc.message}, MODEL) from None


def offered(user: User) -> Sequence[str]:
    """The newest versions that this person may start from, by their full names."""
    models = MODELS.get()
    return models.newest(user) if models else ()


def begun_from(user: User, words: str) -> tuple[str, dict[str, Any]]:
    """The preset and the parameters that a training begins with which goes on from a model: the same network.

    Raises:
        BadParameter: no such model for this person, or one that has nothing to start from.
    """
    model = _in_use(_model(user, words, FILE, None), FILE)
    preset = PRESETS.get(model.preset)
    if preset is None or FILE not in {param.name for param in preset.parameters}:
        raise _refused(_("%(words)s was trained by no preset that goes on.") % {"words": model.words}, FILE)
    network = param_labels.group_of("architecture")
    same = {name: value for name, value in parameters.changed(preset, model.params).items()
            if param_labels.group_of(name) == network}  # fmt: skip
    return preset.name, {**same, FILE: model.words}


def handed_over(training: TrainingJob, attempt: Attempt, run: RunDir) -> tuple[dict[str, str], list[Path]]:
    """Variables that tell the program where its weights lie, and the folders it must read for them.

    A file of the home is copied among the inputs: what its owner changes meanwhile changes no run.

    Raises:
        CannotRun: they are gone, or no longer its owner's to use.
    """
    env: dict[str, str] = {}
    folders: list[Path] = []
    preset = PRESETS.get(training.preset)
    for name in NAMES if preset else ():
        words = str(training.params.get(name) or "")
        if not words or (name == FILE and attempt.checkpoint_in):  # what goes on has learned from them already
            continue
        try:
            if name == FILE and _is_file(words):
                path = _copied(training.job.owner, words, run.inputs)
            else:
                model = _model(training.job.owner, words, name, preset)
                path = model.folder / model.weights
                folders.append(model.folder)
        except (BadParameter, OSError):
            raise CannotRun(wording.message("training.weights_gone", weights=words)) from None
        env[f"AIP_{name.upper()}"] = str(path)
    return env, folders


def _is_file(words: str) -> bool:
    return words.lower().endswith(SUFFIXES)


def _model(user: User, words: str, name: str, preset: Preset | None) -> RegisteredModel:
    parts, models = NAMED.fullmatch(words), MODELS.get()
    if parts is None:
        said = _("Name a model as OWNER/NAME v2 or OWNER/NAME@ALIAS.") if name == MODEL else _(
            "Name a model as OWNER/NAME v2 or OWNER/NAME@ALIAS, or a .safetensors or .pth file in your home."
        )  # fmt: skip
        raise _refused(said, name)
    which = int(parts["number"]) if parts["number"] else parts["alias"]
    found = models.named(user, parts["owner"] or "", parts["name"], which) if models else ()
    if not found:
        raise _refused(_("There is no model %(words)s for you.") % {"words": words}, name)
    if len(found) > 1:
        both = ", ".join(one.words for one in found)
        raise _refused(_("Several models are called so: %(both)s. Name the owner too.") % {"both": both}, name)
    one = found[0]
    if not one.weights:
        said = _("%(words)s has only ONNX, nothing that can go on learning. Choose a model that was trained here.")
        raise _refused(said % {"words": one.words}, name)
    if name == MODEL and one.architecture == custom_networks.OWN and not one.words.startswith(f"{user.username}/"):
        said = _("Somebody else wrote the network of %(words)s. Only its owner learns from it: that runs its program.")
        raise _refused(said % {"words": one.words}, name)
    if name == MODEL and preset and one.preset != preset.name:
        said = _("%(words)s was not trained by %(preset)s. A teacher answers the same question in the same way.")
        raise _refused(said % {"words": one.words, "preset": preset.name}, name)
    return one


def _in_use(model: RegisteredModel, name: str) -> RegisteredModel:
    """The model, unless it is archived: trainings that began with it go on, new ones do not."""
    if model.archived:
        said = _("%(words)s is archived. Choose another version, or bring it back on the page of the model.")
        raise _refused(said % {"words": model.words}, name)
    return model


def _check_file(owner: User, words: str) -> None:
    try:
        with os.fdopen(_opened(owner, words), "rb") as file:
            size = os.fstat(file.fileno()).st_size
    except (OSError, files.OutsideRoot, Invalid):
        said = _("There is no file %(words)s in your home. Links are not followed.")
        raise _refused(said % {"words": words}, FILE) from None
    if size > LARGEST:
        raise _refused(_("%(words)s is larger than %(limit)s GiB.") % {"words": words, "limit": LARGEST >> 30}, FILE)


def _copied(owner: User, words: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"weights{Path(words).suffix.lower()}"
    try:
        descriptor = _opened(owner, words)
    except (files.OutsideRoot, Invalid) as exc:
        raise FileNotFoundError(words) from exc
    with os.fdopen(descriptor, "rb") as file, files.atomic_writer(target) as out:
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise FileNotFoundError(words)
        shutil.copyfileobj(file, out, 1 << 20)
    return target


def _opened(owner: User, words: str) -> int:
    parts = file_names.parse(words)
    if not parts:
        raise Invalid(_("This is no path."), field="path")
    with trees.opened(homes.home_of(owner), parts[:-1]) as folder:
        return trees.open_file(folder, parts[-1])


def _refused(said: str, name: str) -> BadParameter:
    return BadParameter(said, field=f"param_{name}", name=name)
