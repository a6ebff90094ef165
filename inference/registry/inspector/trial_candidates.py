"""Whether the files of a model can be tried, and in which ways; runs in the inspector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.utils.translation import gettext as _

from aiplatform.lib import files as disk_files
from aiplatform.lib.errors import DomainError, Refusals
from inference.registry.formats.declared import Declared, Files
from inference.registry.formats.folder import find_weights, home_of, survey
from inference.registry.inspector import variants


class CannotTry(DomainError, code="cannot_try", status=400, field="file"):
    """There is nothing in these files that could be tried."""


def weights(folder: Path) -> Path:
    """Return the ONNX file that can be run in a trial.

    Raises:
        CannotTry: there is none, or it is described already.
        RefusedModel: the files are not sound.
    """
    path = find_weights(folder)
    if path is None or path.suffix.lower() != ".onnx":
        survey(folder)  # which may know better what is wrong with them
        raise CannotTry(_("Only ONNX models can be tested: weights alone cannot run."))
    if (home_of(folder) / "model.json").exists():
        raise CannotTry(_("The model.json already defines everything that could be tested. Import the model directly."))
    return path


def list_declarations(folder: Path, files: Files, declared: Declared) -> list[Declared]:
    """Return the possible declarations of the model in a folder.

    Raises:
        CannotTry, Invalid, RefusedModel: there is none, or the files are not sound.
    """
    declarations, excluded, refusals = variants.list_candidates(files, declared)
    if not declarations:
        raise _no_candidates(files, excluded, refusals)
    _check_sound(folder, files, declarations[0])
    return declarations


def _no_candidates(
    files: Files, excluded: Sequence[variants.ExcludedLayout], refusals: Sequence[DomainError]
) -> DomainError:
    """Return why there is no declaration: the errors of the layouts that fit, else that none fits."""
    collected = Refusals()
    for refusal in refusals:
        with collected:
            raise refusal
    if collected:
        first, *others = collected.all
        first.others = tuple(others)
        return first
    shapes = ", ".join(f"{tensor.name} {tensor.shape}" for tensor in files.summary.outputs[:6])
    message = _(
        "The layout of its outputs (%(shapes)s) is unknown. Export the model with its head decoded into boxes, "
        "or describe it by a model.json."
    )
    return CannotTry(message % {"shapes": shapes[:300]})


def _check_sound(folder: Path, files: Files, declaration: Declared) -> None:
    """Refuse pickles and the like next to the model now, before the user chooses a variant."""
    described = home_of(folder) / "model.json"
    complete = variants.as_import(files, declaration)
    disk_files.write_json(described, files.model_json(complete))
    try:
        survey(folder)
    finally:
        described.unlink(missing_ok=True)
