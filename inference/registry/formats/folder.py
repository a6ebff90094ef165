"""Inspect a folder that is to become a model version: which files count, what they contain."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.files import OutsideRoot, walk_beneath
from aiplatform.lib.parsers import is_sound
from inference.kit.model_io.spec import TENSOR
from inference.kit.models import model_json
from inference.registry.formats import onnx, safetensors
from inference.registry.formats.onnx import RefusedModel

PICKLES = {
    ".pt",
    ".pth",
    ".pkl",
    ".pickle",
    ".joblib",
    ".ckpt",
    ".pt2",
    ".mar",
    ".npy",
    ".npz",
    ".bin",
    ".h5",
    ".keras",
}
KEPT_SUFFIXES = {".onnx", ".safetensors", ".json", ".txt", ".md", ".yaml", ".yml"}
WEIGHTS = "weights"  # the task of a version that cannot run here
MAX_EXTRA_BYTES = 20 << 20  # of one file that is not weights
MAX_FILES = 10_000


@dataclass
class ModelContents:
    """Contents of a version, as far as its files tell."""

    task: str  # of inference.kit.task_kinds; TENSOR: ONNX without description; WEIGHTS: safetensors only
    architecture: str = ""
    preset: str = ""
    classes: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)  # name in the version → where it lies now


def find_weights(folder: Path) -> Path | None:
    """Return the ONNX file below a folder, else the safetensors file; None without either."""
    weights = _weights(folder)
    return next((path for path in weights if path.suffix.lower() == ".onnx"), weights[0] if weights else None)


def home_of(folder: Path) -> Path:
    """Return the folder of the model's description: that of the first of its weights."""
    weights = _weights(folder)
    return weights[0].parent if weights else folder


def _weights(folder: Path) -> list[Path]:
    paths = sorted(folder / name for name in walk_beneath(folder, max_files=MAX_FILES, lenient=True))
    return [path for path in paths if path.suffix.lower() in (".onnx", ".safetensors")]


def survey(folder: Path) -> ModelContents:
    """Decide which files of `folder` are kept, and read them with parsers that run nothing.

    Raises:
        RefusedModel: pickles, no model at all, two models, or files that contradict each other.
    """
    try:
        paths = sorted(folder / name for name in walk_beneath(folder, max_files=MAX_FILES, lenient=True))
    except OutsideRoot as exc:
        raise RefusedModel(str(exc)) from None
    for path in paths:
        if path.suffix.lower() in PICKLES:
            message = _(
                "%(name)s can execute code when it is opened (a pickle or an archive with one), so it is not "
                "accepted. Save the weights as .safetensors and the model as .onnx."
            )
            raise RefusedModel(message % {"name": path.name})
    weights = [p for p in paths if p.suffix.lower() in (".onnx", ".safetensors")]
    if not weights:
        raise RefusedModel(_("No model found: a .onnx or .safetensors file is required."))
    files: dict[str, Path] = {}
    for kind in (".onnx", ".safetensors"):
        own = [p for p in weights if p.suffix.lower() == kind]
        if len(own) > 1:
            names = ", ".join(str(p.relative_to(folder)) for p in own[:3])
            message = _("There is more than one %(kind)s file (%(names)s); a version contains one model.")
            raise RefusedModel(message % {"kind": kind, "names": names})
        if own:
            files[f"model{kind}"] = own[0]
    home = weights[0].parent
    for path in paths:
        extra = path.parent == home and path.suffix.lower() in KEPT_SUFFIXES and path not in weights
        if extra and is_sound(path.name) and path.stat().st_size <= MAX_EXTRA_BYTES:
            files[path.name] = path
    return _read_checked(files, home)


def _is_plain(path: Path) -> bool:
    return not path.is_symlink() and (path.is_file() or not path.exists())


def _read_checked(files: dict[str, Path], home: Path) -> ModelContents:
    content = _read(files, home)
    if not is_sound([content.architecture, content.preset, content.classes, content.facts]):
        message = _("The description contains a value that cannot be stored, such as NUL or Infinity.")
        raise RefusedModel(message)
    return content


def _figures(value: object) -> dict[str, Any]:
    """The entries that are numbers; a figure that cannot be kept is left out, the model is good without it."""
    entries = value.items() if isinstance(value, dict) else ()
    return {name: number for name, number in entries if isinstance(number, int | float) and is_sound({name: number})}


def _read(files: dict[str, Path], home: Path) -> ModelContents:
    content = ModelContents(task=WEIGHTS, files=files)
    if "model.safetensors" in files:
        tensors, values = safetensors.inspect(files["model.safetensors"])
        content.facts |= {"tensors": tensors, "parameters": values}
    if "model.onnx" not in files:
        return content
    summary = onnx.inspect(files["model.onnx"])
    content.facts |= {
        "producer": summary.producer[:100],
        "opset": summary.opset,
        "nodes": summary.nodes,
        "inputs": [{"name": t.name, "shape": t.shape} for t in summary.inputs],
        "outputs": [{"name": t.name, "shape": t.shape} for t in summary.outputs],
    }
    content.facts.setdefault("parameters", summary.parameters)
    if not _is_plain(home / "model.json"):
        message = _("%(name)s is a link or a special file, which is not supported.")
        raise RefusedModel(message % {"name": "model.json"})
    try:
        spec = model_json.load(home)
    except model_json.BadModel as exc:
        raise RefusedModel(str(exc)) from None
    if spec.graph is not None:
        message = _("model.json describes a combined model. Import its parts and combine them.")
        raise RefusedModel(message)
    content.task = spec.task
    if spec.task == TENSOR:
        return content
    names = {t.name for t in summary.inputs}
    if spec.input is None or names != {spec.input.name}:
        message = _("model.json names a different input than model.onnx (%(names)s).")
        raise RefusedModel(message % {"names": ", ".join(sorted(names))})
    missing = set(spec.outputs.values()) - {t.name for t in summary.outputs}
    if missing:
        message = _("model.onnx has no output “%(name)s”, which model.json names.")
        raise RefusedModel(message % {"name": min(missing)})
    content.architecture, content.preset = spec.architecture[:100], spec.preset[:50]
    content.classes = [{"id": c.id, "name": c.name} for c in spec.classes]
    params = spec.raw.get("params")
    content.metrics = _figures(spec.raw.get("metrics"))
    content.params = params if isinstance(params, dict) and is_sound(params) else {}
    if isinstance(spec.raw.get("verify"), dict):
        content.facts["verify"] = _figures(spec.raw["verify"])
    speed = spec.raw.get("speed")
    if isinstance(speed, dict):
        hardware = {name: speed.get(name) for name in ("provider", "processor")}
        valid_names = {name: word[:100] for name, word in hardware.items() if isinstance(word, str) and is_sound(word)}
        content.facts["speed"] = _figures(speed) | valid_names
    content.facts["score_threshold"] = spec.decode.score_threshold
    content.facts["input"] = {"width": spec.input.width, "height": spec.input.height, "resize": spec.input.resize}
    if spec.input.blue_first:
        content.facts["input"]["order"] = spec.input.order
    if spec.input.overlap is not None:
        content.facts["input"]["tile"] = {"overlap": spec.input.overlap}
    return content
