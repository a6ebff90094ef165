"""Export a trained model: ONNX checked against torch on real samples, safetensors, model.json."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from . import speed
from .run import Refused, log_line

TOLERANCE = 1e-2  # of pixels and logits; float32 through another engine's order of sums
OPSET = 20


def write(
    model: nn.Module, folder: Path, *, outputs: tuple[str, ...], samples: Tensor, metadata: dict[str, Any]
) -> None:
    """Write model.onnx, model.safetensors and model.json into `folder`.

    Args:
        model: takes normalised images [N, C, H, W] and returns one tensor per name in `outputs`.
        samples: real, normalised images; ONNX Runtime must answer to them as torch does.
        metadata: the rest of model.json.

    Raises:
        Refused: the exported model does not answer as the trained one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = copy.deepcopy(model).cpu().float().eval()
    samples = samples.cpu().float().contiguous()
    with torch.inference_mode():
        answers = model(samples)
    expected = [answer.numpy() for answer in (answers if isinstance(answers, tuple) else (answers,))]
    _export(model, samples[:2] if len(samples) > 1 else samples.repeat(2, 1, 1, 1), folder / "model.onnx", outputs)
    worst = _difference(folder / "model.onnx", samples.numpy(), expected, outputs)
    if not worst <= TOLERANCE:
        raise Refused(f"The exported model differs from the trained one by {worst:g} on {len(samples)} images.")
    weights = {key: value.contiguous().clone() for key, value in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    measured = speed.measure(model, folder / "model.onnx", samples[:1])
    description = {
        "format": 1,
        **metadata,
        "verify": {"samples": len(samples), "max_abs_diff": worst},
        "speed": measured,
    }
    (folder / "model.json").write_text(json.dumps(description, indent=1))
    log_line(f"exported {folder.name}/model.onnx, differs from torch by {worst:.1e} at most")
    log_line(f"{measured['gflops']:.2f} GFLOPs and {measured['ms']:.1f} ms an image, one at a time")


def rehearse(model: nn.Module, samples: Tensor) -> None:
    """Check before the training that a custom network can be exported afterwards, with one output.

    Raises:
        Refused: it cannot, or the exported one answers otherwise; nobody has waited for it yet.
    """
    model = copy.deepcopy(model).cpu().float().eval()
    samples = samples.cpu().float().contiguous()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        try:
            with torch.inference_mode():
                expected = [model(-samples).numpy()]  # others than those it is traced with
            _export(model, samples.repeat(2, 1, 1, 1)[:2], path, ("logits",))
            worst = _difference(path, (-samples).numpy(), expected, ("logits",))
        except Exception as error:  # whatever the exporter meets in somebody's program
            first = (str(error).splitlines() or [""])[0][:300]
            raise Refused(f"Your network cannot be exported to ONNX, so nothing could use it: {first}") from error
    if not np.isfinite(expected).all():
        raise Refused("Your network answers an image with what is no number. Look for a division by zero, or a root or "
                      "logarithm of what is not positive.")  # fmt: skip
    if not worst <= TOLERANCE:
        raise Refused(f"Your network answers otherwise in ONNX, by {worst:g}: what it does must not depend on what is "
                      "in an image, or on how many there are.")  # fmt: skip


def _export(model: nn.Module, example: Tensor, path: Path, outputs: tuple[str, ...]) -> None:
    """ONNX with a free batch size, by tracing: no way through these models depends on what is in an image.

    The other exporter (`dynamo=True`) writes the same graph in five times the time, which a short budget has not.
    """
    free = {name: {0: "batch"} for name in ("images", *outputs)}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")  # on what tracing cannot follow; what comes out is compared below
        torch.onnx.export(
            model,
            (example,),
            path,
            dynamo=False,
            opset_version=OPSET,
            input_names=["images"],
            output_names=list(outputs),
            dynamic_axes=free,
        )


def _difference(path: Path, samples: np.ndarray, expected: list[np.ndarray], outputs: tuple[str, ...]) -> float:
    """Return the largest difference between ONNX and torch outputs, image by image and as one batch."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    together = session.run(list(outputs), {"images": samples})
    single = session.run(list(outputs), {"images": samples[:1]})
    pairs = [*zip(together, expected, strict=True), *((o, e[:1]) for o, e in zip(single, expected, strict=True))]
    return max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs)
