"""ONNX Runtime, or OpenVINO or TensorRT where model.json asks for it, with a small interface: inputs, outputs, run."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from inference.kit.model_io import openvino, tensorrt

log = logging.getLogger(__name__)
CPU = "CPUExecutionProvider"

Tensors = Mapping[str, NDArray[np.generic]]

# ONNX Runtime's name → (Open Inference Protocol's name, numpy's)
DATATYPES: Mapping[str, tuple[str, np.dtype[np.generic]]] = {
    "tensor(float)": ("FP32", np.dtype("f4")),
    "tensor(double)": ("FP64", np.dtype("f8")),
    "tensor(float16)": ("FP16", np.dtype("f2")),
    "tensor(int8)": ("INT8", np.dtype("i1")),
    "tensor(int16)": ("INT16", np.dtype("i2")),
    "tensor(int32)": ("INT32", np.dtype("i4")),
    "tensor(int64)": ("INT64", np.dtype("i8")),
    "tensor(uint8)": ("UINT8", np.dtype("u1")),
    "tensor(uint16)": ("UINT16", np.dtype("u2")),
    "tensor(uint32)": ("UINT32", np.dtype("u4")),
    "tensor(uint64)": ("UINT64", np.dtype("u8")),
    "tensor(bool)": ("BOOL", np.dtype("?")),
}


# OpenVINO's names of the same
OF_OPENVINO: Mapping[str, str] = {
    "f32": "tensor(float)", "f64": "tensor(double)", "f16": "tensor(float16)", "i8": "tensor(int8)",
    "i16": "tensor(int16)", "i32": "tensor(int32)", "i64": "tensor(int64)", "u8": "tensor(uint8)",
    "u16": "tensor(uint16)", "u32": "tensor(uint32)", "u64": "tensor(uint64)", "boolean": "tensor(bool)",
}  # fmt: skip
OF_TENSORRT: Mapping[str, str] = {
    "FLOAT": "tensor(float)", "HALF": "tensor(float16)", "INT8": "tensor(int8)", "INT32": "tensor(int32)",
    "INT64": "tensor(int64)", "UINT8": "tensor(uint8)", "BOOL": "tensor(bool)",
}  # fmt: skip
RUNTIME, OPENVINO, TENSORRT = "runtime", "openvino", "tensorrt"  # in model.json


@dataclass(frozen=True)
class TensorInfo:
    """One input or output; a size of -1 is free."""

    name: str
    datatype: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


class Loaded(Protocol):
    """What answers: the engine of one file, or a composed model with one for each of its parts."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    provider: str

    @property
    def batches(self) -> bool:
        """Whether samples of several requests can be put into one run."""

    @property
    def even(self) -> bool:
        """Whether all samples have one size, so that each costs the same."""

    def run(self, feeds: Tensors, wanted: Sequence[str] | None = None) -> dict[str, NDArray[np.generic]]:
        """Compute the outputs named in `wanted` (None: all) for complete `feeds`."""

    def warm_up(self) -> None:
        """Run once so that the first caller does not pay for lazy allocation."""


class Engine:
    """A loaded model. `run` is called by one thread at a time.

    Args:
        path: an ONNX file; a model.json beside it may say "runtime": "openvino" or "tensorrt". Where that is not
            installed or does not fit (OpenVINO with a card, TensorRT without one or without an engine for this one),
            ONNX Runtime answers instead: the file is the same.
        strictly: raise instead.
        runtime: runtime of a part of a composed model; None: the one named in the model.json next to it.

    Raises:
        NotInstalled, NotUsable: OpenVINO or TensorRT is requested with `strictly` and not available.
    """

    def __init__(self, path: Path, *, threads: int = 1, strictly: bool = False, runtime: str | None = None) -> None:
        self.session: Any = None
        name = _runtime(path) if runtime is None else runtime
        try:
            if name == OPENVINO and (strictly or _providers() == [CPU]):
                self._use_session(openvino.Session(path, threads=threads), openvino.PROVIDER, OF_OPENVINO)
            elif name == TENSORRT:
                self._use_session(tensorrt.Session(path), tensorrt.PROVIDER, OF_TENSORRT)
        except (openvino.NotInstalled, tensorrt.NotUsable) as missing:
            if strictly:
                raise
            log.warning("%s. ONNX Runtime answers instead.", str(missing).rstrip("."))
        if self.session is not None:
            return
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Idle threads must sleep, not spin: many services share one machine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self.session = ort.InferenceSession(str(path), options, providers=_providers())
        self.inputs = tuple(_info(node) for node in self.session.get_inputs())
        self.outputs = tuple(_info(node) for node in self.session.get_outputs())
        self.provider = str(self.session.get_providers()[0])

    def _use_session(self, session: Any, provider: str, types: Mapping[str, str]) -> None:
        self.inputs = tuple(_to_info(end, types) for end in session.inputs)
        self.outputs = tuple(_to_info(end, types) for end in session.outputs)
        self.session, self.provider = session, provider

    @property
    def batches(self) -> bool:
        """Whether samples of several requests can be put into one run."""
        ends = self.inputs + self.outputs
        return all(end.shape and end.shape[0] == -1 for end in ends)

    @property
    def even(self) -> bool:
        """Whether all samples have one size, so that each costs the same."""
        return self.batches and all(size != -1 for end in self.inputs for size in end.shape[1:])

    def run(self, feeds: Tensors, wanted: Sequence[str] | None = None) -> dict[str, NDArray[np.generic]]:
        """Compute the outputs named in `wanted` (None: all) for complete `feeds`."""
        names = list(wanted) if wanted else [end.name for end in self.outputs]
        return dict(zip(names, self.session.run(names, dict(feeds)), strict=True))

    def warm_up(self) -> None:
        """Run once on zeros so that the first caller does not pay for lazy allocation."""
        feeds = {i.name: np.zeros([1 if n < 0 else n for n in i.shape], i.dtype) for i in self.inputs}
        try:
            self.run(feeds)
        except Exception as exc:  # noqa: BLE001  a model with free inner sizes may refuse 1×1 pictures
            log.info("warm-up skipped: %s", exc)


def _providers() -> list[str]:
    """A GPU provider where the run was given a card and the installed ONNX Runtime has one; else the CPU."""
    cards = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    gpu = [p for p in ("CUDAExecutionProvider",) if p in ort.get_available_providers()]
    if cards not in ("", "-1") and not gpu:
        log.warning("a GPU was granted but this ONNX Runtime has no CUDA support; running on the CPU")
    return [*(gpu if cards not in ("", "-1") else []), CPU]


def _runtime(path: Path) -> str:
    """Read the runtime from the model.json next to a file; "" where none is named."""
    try:
        content = json.loads((path.parent / "model.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    return str(content.get(RUNTIME, "")) if isinstance(content, dict) else ""


def _to_info(port: tuple[str, str, tuple[int, ...]], types: Mapping[str, str]) -> TensorInfo:
    name, kind, shape = port
    if kind not in types:
        raise ValueError(f"{name} is a {kind}; only number tensors can be served.")
    datatype, dtype = DATATYPES[types[kind]]
    return TensorInfo(name, datatype, dtype, shape)


def _info(node: ort.NodeArg) -> TensorInfo:
    if node.type not in DATATYPES:
        raise ValueError(f"{node.name} is a {node.type}; only number tensors can be served.")
    datatype, dtype = DATATYPES[node.type]
    shape = tuple(n if isinstance(n, int) and n > 0 else -1 for n in node.shape)
    return TensorInfo(node.name, datatype, dtype, shape)
