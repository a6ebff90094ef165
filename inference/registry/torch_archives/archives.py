"""What torch writes: weights (torch.save), programs (TorchScript, torch.export).

Weights are unpickled as tensors alone (`weights_only`). A program is traced into ONNX with an example of the size that
its owner declared, and must answer there as it does in torch.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

NESTED = ("state_dict", "model_state_dict", "model", "module", "ema", "average")  # where checkpoints keep weights
FOREIGN = re.compile(r"GLOBAL ([\w.]+)")  # in what torch says of a pickle with more than tensors
OPSET = 18
TOLERANCE = 1e-3  # of the largest answer
MAX_LENGTH = 200


class Refused(Exception):
    """The archive cannot become a model here; `code` says why."""

    def __init__(self, code: str, **facts: str | int | float) -> None:
        super().__init__(f"{code.replace('_', ' ')} {', '.join(str(fact) for fact in facts.values())}".strip())
        self.code, self.facts = code, facts


class _Exported(nn.Module):
    """A program of torch.export as a module that others may set to evaluation, which it cannot be itself."""

    def __init__(self, program: nn.Module) -> None:
        super().__init__()
        for parameter in program.parameters():
            parameter.requires_grad_(False)
        self.run = (program,)

    def forward(self, images: Tensor) -> Any:
        return self.run[0](images)


def convert(archive: Path, folder: Path, *, width: int = 0, height: int = 0) -> str:
    """Make model.onnx or model.safetensors of an archive in `folder`; returns what was done, for the log.

    Args:
        width, height: of the input of a program, in pixels; 0: not declared.

    Raises:
        Refused: the file is no archive of torch, holds more than weights, or its program cannot be exported.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = _program(archive)
    if program is None:
        return _weights(archive, folder / "model.safetensors")
    if not width or not height:
        raise Refused("no_size")
    return _exported(program, torch.rand(2, 3, height, width), folder / "model.onnx")


def _program(archive: Path) -> nn.Module | None:
    """The program of TorchScript or torch.export; None where the archive holds something else."""
    if archive.suffix == ".pt2":
        return _Exported(_read(lambda: torch.export.load(str(archive)).module()))
    try:
        program: nn.Module = torch.jit.load(str(archive), map_location="cpu")  # type: ignore[no-untyped-call]  # torch's own
    except (RuntimeError, ValueError):  # no program in it: weights, or what their reader will call damaged
        return None
    return program.eval()


def _read(load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:  # whatever a damaged archive brings about
        raise Refused("unreadable", error=_first(error)) from error


def _weights(archive: Path, target: Path) -> str:
    try:
        content = torch.load(archive, map_location="cpu", weights_only=True)
    except Exception as error:
        if foreign := FOREIGN.search(str(error)):
            raise Refused("not_only_weights", name=foreign[1][:MAX_LENGTH]) from error
        raise Refused("damaged") from error  # torch's own words advise to open it without care
    tensors = _tensors(content)
    if not tensors:
        raise Refused("no_weights")
    save_file(tensors, target)
    return f"{len(tensors)} tensors, {sum(tensor.numel() for tensor in tensors.values()):,} values"


def _tensors(content: object, depth: int = 3) -> dict[str, Tensor]:
    """Return the weights of a checkpoint in separate memory, as safetensors requires."""
    if not isinstance(content, Mapping):
        return {}
    inner = (_tensors(content[name], depth - 1) for name in NESTED if name in content) if depth else iter(())
    if nested := next((tensors for tensors in inner if tensors), {}):
        return nested  # beside it stand figures of the training, tensors too
    return {str(name): value.contiguous().clone() for name, value in content.items() if isinstance(value, Tensor)}


def _exported(program: nn.Module, example: Tensor, target: Path) -> str:
    """Trace the program with several pictures at once, or with one where it was made for one."""
    errors: list[Refused] = []
    for batch in (example, example[:1]):
        try:
            return _trace(program, batch, target)
        except Refused as refused:
            errors.append(refused)
    raise errors[-1] if errors[0].code == "does_not_run" else errors[0]


def _trace(program: nn.Module, example: Tensor, target: Path) -> str:
    try:
        with torch.inference_mode():
            expected = _flat(program(example))
    except Exception as error:
        height, width = example.shape[2:]
        raise Refused("does_not_run", width=width, height=height, error=_first(error)) from error
    names = [f"output{index}" for index in range(len(expected))]
    free = {name: {0: "batch"} for name in ("images", *names)} if len(example) > 1 else None
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                program, (example,), target, dynamo=False, opset_version=OPSET, input_names=["images"],
                output_names=names, dynamic_axes=free,
            )  # fmt: skip
        worst = _difference(target, example.numpy(), expected, names)
        if free:  # one that keeps the number of pictures it was traced with answers another one otherwise, or not
            alone = _difference(target, example[:1].numpy(), [each[:1] for each in expected], names)
            worst = float(np.maximum(worst, alone))  # keeps what is not a number, as max does not
    except Exception as error:  # the exporter raises anything for a custom program
        raise Refused("not_exported", error=_first(error)) from error
    if not worst <= TOLERANCE:
        raise Refused("not_exported", error=f"it differs from torch by {worst:.1e} of the largest answer")
    return f"{target.name}: {len(names)} outputs, differs from torch by {worst:.1e} of the largest answer"


def _difference(target: Path, inputs: np.ndarray, expected: list[np.ndarray], names: list[str]) -> float:
    """Return the largest difference between the outputs of ONNX and torch, as a share of the largest output."""
    session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    answers = session.run(names, {session.get_inputs()[0].name: inputs})
    worst = 0.0
    for ours, theirs in zip(answers, expected, strict=True):
        if ours.shape != theirs.shape:
            return float("inf")
        if theirs.size:
            scale = max(float(np.abs(theirs).max()), 1e-6)
            worst = float(np.maximum(worst, np.abs(ours.astype(np.float64) - theirs).max() / scale))
    return worst


def _flat(answer: Any) -> list[np.ndarray]:
    """The tensors of an answer in the order in which the exporter names them."""
    if isinstance(answer, Tensor):
        return [answer.numpy()]
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if not isinstance(answer, list | tuple):
        raise TypeError(f"it answers a {type(answer).__name__}, not tensors")
    return [tensor for part in answer for tensor in _flat(part)]


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:MAX_LENGTH]
