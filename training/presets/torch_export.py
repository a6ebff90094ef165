"""`python -m presets.torch_export`: a finished model of ours as a program of torch.export, compared with its ONNX file.

The network is built anew from model.json by these presets, and takes its weights from model.safetensors: nothing that
somebody wrote is run. It leaves outputs/model.pt2 and outputs/torch.json, or outputs/refused.json with a code.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from . import classify, own_network, segment, tag
from .export import TOLERANCE

PICTURES = 4  # of random numbers, on which both must answer alike
MAX_LENGTH = 200


class NotExported(Exception):
    """There is no program of this model; `code` says why."""

    def __init__(self, code: str, **facts: str | float) -> None:
        super().__init__(f"{code.replace('_', ' ')} {', '.join(str(fact) for fact in facts.values())}".strip())
        self.code, self.facts = code, facts


def _tagger(metadata: Mapping[str, Any]) -> nn.Module:
    inner = classify.taught_by(metadata)
    assert isinstance(inner, classify.Answering)
    return tag.Answering(inner.model, torch.zeros(len(metadata["classes"])), mirror=inner.mirror)


#: Preset → builds its network as it was exported, without weights, from model.json.
BUILDERS: Mapping[str, Callable[[Mapping[str, Any]], nn.Module]] = {
    "classify": classify.taught_by,
    "segment": segment.taught_by,
    "tag": _tagger,
}


def exported(folder: Path, target: Path) -> dict[str, Any]:
    """Write the program of the model in a folder; return how it was compared.

    `largest` is the largest difference from the ONNX file, in the outputs' own units, on `pictures` pictures; `batch`
    is whether it takes any number of them.

    Raises:
        NotExported.
    """
    model, metadata = _rebuilt(folder)
    input_spec = metadata["input"]
    pictures = torch.randn(
        PICTURES, input_spec["channels"], input_spec["height"], input_spec["width"], generator=torch.manual_seed(0)
    )
    free = _written(model, pictures, target)
    written = torch.export.load(str(target)).module()  # what lies on the disk now
    largest = _difference(written, folder / "model.onnx", pictures if free else pictures[:1], metadata)
    if not largest <= TOLERANCE:
        raise NotExported("torch_differs", largest=round(largest, 6) if np.isfinite(largest) else "inf")
    return {"largest": largest, "pictures": len(pictures) if free else 1, "batch": free, "torch": torch.__version__}


def _rebuilt(folder: Path) -> tuple[nn.Module, dict[str, Any]]:
    try:
        metadata: dict[str, Any] = json.loads((folder / "model.json").read_text())
        if metadata["architecture"] == own_network.NAME:
            raise NotExported("not_rebuilt", error="its network is somebody's own")
        model = BUILDERS[metadata["preset"]](metadata)
        model.load_state_dict(load_file(folder / "model.safetensors"))
    except (OSError, LookupError, TypeError, ValueError, RuntimeError, AssertionError) as error:
        raise NotExported("not_rebuilt", error=_first(error)) from error
    return model.cpu().float().eval(), metadata


def _written(model: nn.Module, pictures: Tensor, target: Path) -> bool:
    """Write the program for any number of pictures, else for one; whether it is for any."""
    shapes = ({0: torch.export.Dim("batch")},)
    errors: list[Exception] = []
    for example, dynamic in ((pictures[:2], shapes), (pictures[:1], None)):
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                torch.export.save(torch.export.export(model, (example,), dynamic_shapes=dynamic), str(target))
            return dynamic is not None
        except Exception as error:  # noqa: BLE001  whatever the exporter meets in a network
            errors.append(error)
    raise NotExported("not_traced", error=_first(errors[0]))


def _difference(program: nn.Module, onnx: Path, pictures: Tensor, metadata: Mapping[str, Any]) -> float:
    """Return the largest difference of the outputs, for all images at once and for the first alone."""
    session = onnxruntime.InferenceSession(str(onnx), providers=["CPUExecutionProvider"])
    name = metadata["input"]["name"]
    worst = 0.0
    for some in (pictures, pictures[:1]):
        with torch.no_grad():
            answer = program(some)
        ours = answer if isinstance(answer, tuple | list) else (answer,)
        theirs = session.run(None, {name: some.numpy()})
        for output, reference in zip(ours, theirs, strict=True):
            worst = float(np.maximum(worst, np.abs(output.numpy() - reference).max()))  # keeps what is not a number
    return worst


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:MAX_LENGTH]


def main() -> int:
    outputs = Path(os.environ["AIP_OUTPUT_DIR"])
    try:
        comparison = exported(Path(os.environ["AIP_MODEL_DIR"]), outputs / "model.pt2")
    except NotExported as refused:
        (outputs / "refused.json").write_text(json.dumps({"code": refused.code, "facts": refused.facts}))
        sys.stdout.write(f"Not exported: {refused}\n")
        return 1
    (outputs / "torch.json").write_text(json.dumps(comparison))
    sys.stdout.write(f"model.pt2 differs from model.onnx by {comparison['largest']:.1e} at most\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
