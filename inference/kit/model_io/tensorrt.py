"""TensorRT as a runtime of models: an engine that was built for this very card, where its wheel is installed.

Engines lie beside their model.onnx, named by card, compute capability and TensorRT's version: they run on no other.
Opening one runs what it says, so only jobs do, and only engines that a conversion of the platform built.

Source: https://docs.nvidia.com/deeplearning/tensorrt/latest/_static/python-api/
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io import cuda

PROVIDER = "TensorRT"
INSTALL = "pip install tensorrt"
OLDEST = 10  # its first version that names tensors and not bindings alone
SUFFIX = ".plan"
NAME = re.compile(r"model\.[a-z0-9-]{1,60}\.sm\d{2,4}\.trt[0-9a-z.]{1,30}\.plan")
End = tuple[str, str, tuple[int, ...]]
# TensorRT's name of a type → numpy's
TYPES: Mapping[str, str] = {
    "FLOAT": "f4", "HALF": "f2", "INT8": "i1", "INT32": "i4", "INT64": "i8", "UINT8": "u1", "BOOL": "?",
}  # fmt: skip


class NotUsable(Exception):
    """TensorRT cannot run here, or has no engine for this card; says what to do."""


def module() -> Any:
    """Return the TensorRT package.

    Raises:
        NotUsable: it is not installed where this runs, or too old.
    """
    try:
        tensorrt = import_module("tensorrt")
    except (ImportError, OSError):
        message = f"TensorRT is not installed where this job runs. There: {INSTALL}, or choose an image that has it."
        raise NotUsable(message) from None
    if int(tensorrt.__version__.partition(".")[0]) < OLDEST:
        raise NotUsable(f"TensorRT {tensorrt.__version__} is too old. Where this job runs: {INSTALL} --upgrade")
    return tensorrt


def card() -> cuda.Card:
    """The card that was granted.

    Raises:
        NotUsable: there is none.
    """
    try:
        return cuda.Card()
    except cuda.NoCard as none:
        raise NotUsable(f"TensorRT runs on NVIDIA cards. {none}") from None


def require() -> None:
    """Say so where no engine could be built or run.

    Raises:
        NotUsable: the wheel is missing, or no card was granted.
    """
    card()
    module()


def engine_name(trt: Any, of: cuda.Card) -> str:
    """What the engine of a model for a card is called."""
    called = re.sub("[^a-z0-9]+", "-", of.name.lower()).strip("-")[:60] or "card"
    version = re.sub("[^0-9a-z.]+", "", str(trt.__version__))[:30]
    return f"model.{called}.sm{of.capability[0]}{of.capability[1]}.trt{version}{SUFFIX}"


class Session:
    """An engine on the card, with the parts of ONNX Runtime's session that `inference.kit.model_io.engine` uses.

    Args:
        path: the model.onnx that the engine was built from and is stored next to.

    Raises:
        NotUsable: there is no card, no wheel, or no engine that fits both.
    """

    def __init__(self, path: Path) -> None:
        self._card, self._trt = card(), module()
        name = engine_name(self._trt, self._card)
        file = path.parent / name
        if file.is_symlink() or not file.is_file():
            raise NotUsable(f"This model has no engine {name} for this card. Convert it on such a card")
        self._logger = self._trt.Logger(self._trt.Logger.ERROR)
        self._runtime = self._trt.Runtime(self._logger)
        self.engine = self._runtime.deserialize_cuda_engine(file.read_bytes())
        if self.engine is None:
            raise NotUsable(f"TensorRT does not open {name}. Convert the model once more on this card")
        self._context = self.engine.create_execution_context()
        if self._context is None:
            raise NotUsable("The card has too little free memory for the engine. Ask for a larger share")
        names = [self.engine.get_tensor_name(index) for index in range(self.engine.num_io_tensors)]
        input_mode = self._trt.TensorIOMode.INPUT
        self._profiles: dict[str, list[tuple[int, ...]]] = {}  # least, usual and largest sizes of inputs of free size
        self.inputs = [self._end(tensor) for tensor in names if self.engine.get_tensor_mode(tensor) == input_mode]
        self.outputs = [self._end(tensor) for tensor in names if self.engine.get_tensor_mode(tensor) != input_mode]
        self._types = {tensor: np.dtype(TYPES[kind]) for tensor, kind, _shape in (*self.inputs, *self.outputs)}
        self._most = min((sizes[2][0] for sizes in self._profiles.values() if sizes[2]), default=1)
        self._rooms: dict[str, tuple[int, int]] = {}  # of each tensor: address and bytes on the card
        weakref.finalize(self, _release, self._card, self._rooms)

    def run(self, names: Sequence[str], feeds: Mapping[str, NDArray[np.generic]]) -> list[NDArray[np.generic]]:
        """Compute outputs; more samples than the engine was built for go through it in several turns."""
        self._card.enter()
        parts = [self._once(names, part) for part in self._turns(feeds)]
        return parts[0] if len(parts) == 1 else [np.concatenate(each) for each in zip(*parts, strict=True)]

    def _turns(self, feeds: Mapping[str, NDArray[np.generic]]) -> list[Mapping[str, NDArray[np.generic]]]:
        ends = (*self.inputs, *self.outputs)
        if not all(shape and shape[0] == -1 for _name, _kind, shape in ends):
            return [feeds]
        count = max(len(values) for values in feeds.values())
        return [
            {name: values[start : start + self._most] for name, values in feeds.items()}
            for start in range(0, max(count, 1), self._most)
        ]

    def _once(self, names: Sequence[str], feeds: Mapping[str, NDArray[np.generic]]) -> list[NDArray[np.generic]]:
        for name, _kind, shape in self.inputs:
            values = np.ascontiguousarray(feeds[name])
            if values.dtype != self._types[name]:  # the card would read its bytes as other numbers
                raise ValueError(f"{name} takes {self._types[name]}, not {values.dtype}.")
            if not self._context.set_input_shape(name, values.shape):
                least, _usual, largest = self._profiles.get(name, [shape] * 3)
                raise ValueError(f"{name} takes sizes from {least} to {largest}, not {values.shape}.")
            self._context.set_tensor_address(name, self._room(name, values.nbytes))
            self._card.upload(self._rooms[name][0], values)
        answers = {name: self._answer(name) for name, _kind, _shape in self.outputs}
        if not self._context.execute_async_v3(self._card.stream):
            raise RuntimeError("TensorRT could not run the engine; the log says why.")
        for name, values in answers.items():
            self._card.download(self._rooms[name][0], values)
        self._card.synchronize()
        return [answers[name] for name in names]

    def _answer(self, name: str) -> NDArray[np.generic]:
        shape = tuple(self._context.get_tensor_shape(name))
        if any(size < 0 for size in shape):
            raise ValueError(f"How large {name} is depends on the picture; such models are not run by TensorRT here.")
        values: NDArray[np.generic] = np.empty(shape, self._types[name])
        self._context.set_tensor_address(name, self._room(name, values.nbytes))
        return values

    def _room(self, name: str, size: int) -> int:
        """The address of at least `size` bytes on the card, kept for the next run."""
        address, there = self._rooms.get(name, (0, 0))
        if there < size or not there:
            if there:
                del self._rooms[name]
                self._card.free(address)
            address, there = self._card.allocate(max(size, 1)), max(size, 1)
            self._rooms[name] = (address, there)
        return address

    def _end(self, name: str) -> End:
        """Return name, type and shape of an input or output; -1 is free, fixed sizes of the engine are named."""
        kind, shape = self.engine.get_tensor_dtype(name).name, tuple(self.engine.get_tensor_shape(name))
        if kind not in TYPES:
            raise NotUsable(f"{name} is a {kind}; such tensors are not exchanged with TensorRT here")
        if self.engine.get_tensor_location(name) != self._trt.TensorLocation.DEVICE:
            raise NotUsable(f"{name} is no tensor on the card; such models are not run by TensorRT here")
        if self.engine.get_tensor_mode(name) == self._trt.TensorIOMode.INPUT and -1 in shape:
            self._profiles[name] = [tuple(sizes) for sizes in self.engine.get_tensor_profile_shape(name, 0)]
            least, _usual, largest = self._profiles[name]
            shape = tuple(high if low == high else -1 for low, high in zip(least, largest, strict=True))
        return name, kind, shape


def _release(held: cuda.Card, rooms: Mapping[str, tuple[int, int]]) -> None:
    with suppress(cuda.CudaError):  # the process may be ending, and the driver before it
        held.enter()
        for address, _size in rooms.values():
            held.free(address)
