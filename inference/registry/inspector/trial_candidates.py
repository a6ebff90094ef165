"""Whether the files of a model can be tried, and in which ways; runs in the inspector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.utils.translation import gettext as _

from aiplatform.lib import files as disk_files
from aiplatform.lib.errors import DomainError, Refusals
from inference.registry.formats.declared import Declared, Files
from inference.registry.formats.folder import home_of, survey, weights_in
from inference.registry.inspector import variants


class CannotTry(DomainError):
    """There is nothing in these files that could be tried."""

    code = "cannot_try"
    status = 400
    field = "file"


def weights(folder: Path) -> Path:
    """The ONNX file that can be tried.

    Raises:
        CannotTry: there is none, or it is described already.
        RefusedModel: the files are not sound.
    """
    found = weights_in(folder)
    if found is None or found.suffix.lower() != ".onnx":
        survey(folder)  # which may know better what is wrong with them
        raise CannotTry(_("Only an ONNX model can be tried: weights alone do not run."))
    if (home_of(folder) / "model.json").exists():
        raise CannotTry(_("model.json in it says all that could be tried. Bring the model in as it is."))
    return found


def ways_of(folder: Path, files: Files, declared: Declared) -> list[Declared]:
    """Ways to read the model in a folder.

    Raises:
        CannotTry, Invalid, RefusedModel: there is none, or the files are not sound.
    """
    found, out, refusals = variants.of(files, declared)
    if not found:
        raise _none(files, out, refusals)
    _check_sound(folder, files, found[0])
    return found


def _none(files: Files, out: Sequence[variants.Out], refusals: Sequence[DomainError]) -> DomainError:
    """Why there is no way: what the layouts that fit were refused for, else that none fits."""
    found = Refusals()
    for refusal in refusals:
        with found:
            raise refusal
    if found:
        first, *others = found.all
        first.others = tuple(others)
        return first
    shapes = ", ".join(f"{tensor.name} {tensor.shape}" for tensor in files.summary.outputs[:6])
    said = _(
        "Its outputs (%(shapes)s) are not laid out in a way that is known here. Export the model with its head decoded "
        "into boxes, or describe it by a model.json."
    )
    return CannotTry(said % {"shapes": shapes[:300]})


def _check_sound(folder: Path, files: Files, way: Declared) -> None:
    """Refuse pickles and the like beside the model now, and not once somebody has chosen."""
    described = home_of(folder) / "model.json"
    whole = variants.as_import(files, way)
    disk_files.write_json(described, files.model_json(whole))
    try:
        survey(folder)
    finally:
        described.unlink(missing_ok=True)
