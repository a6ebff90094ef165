"""Make the variants of a model: files for ONNX Runtime, from the file that a model came as.

INT8 is *static post-training quantization* (B. Jacob et al., Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference, CVPR 2018) as onnxruntime.quantization does it: QDQ nodes, weights S8 for each
channel, activations U8, which on x86 runs faster than S8.
"""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxslim
from numpy.typing import NDArray
from onnx import version_converter
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel

from inference.conversion.converter import variant_catalog

OPSET = 13  # the first whose quantized weights have a scale for each channel
METHODS = {
    variant_catalog.MINMAX: CalibrationMethod.MinMax,
    variant_catalog.ENTROPY: CalibrationMethod.Entropy,
    variant_catalog.PERCENTILE: CalibrationMethod.Percentile,
}
Feeds = dict[str, NDArray[np.generic]]


class NotBuilt(Exception):
    """A variant cannot be made of this model; the message says why, in the words of the tool."""


class Samples(CalibrationDataReader):
    """Inputs of one image each, created on demand, one after the other."""

    def __init__(self, feeds: Iterator[Feeds], count: int, on_sample: Callable[[int, int], None]) -> None:
        self.feeds, self.count, self.left, self.on_sample = feeds, count, count, on_sample
        self.given = 0

    def __len__(self) -> int:
        return self.count

    def set_range(self, start_index: int, end_index: int) -> None:
        self.left = end_index - start_index

    def get_next(self) -> Feeds | None:
        if self.left <= 0:
            return None
        self.on_sample(self.given, self.count)
        self.given, self.left = self.given + 1, self.left - 1
        return next(self.feeds, None)


@dataclass
class Bench:
    """A model and the intermediate files that its variants share, which are created on first use.

    Args:
        source: the ONNX file as it came.
        work: a folder for temporary files.
        samples: makes the inputs for calibration, one picture each, on each call.
        on_sample: is given how many of them were calibrated on, of how many.
    """

    source: Path
    work: Path
    samples: Callable[[], Iterator[Feeds]]
    method: str = variant_catalog.MINMAX
    on_sample: Callable[[int, int], None] = lambda _done, _total: None

    @property
    def prepared(self) -> Path:
        """The model with the shapes of its inner results, constants folded and an opset that can be quantized."""
        made = self.work / "prepared.onnx"
        if not made.exists():
            model = onnx.load(self.source)
            opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
            if opset < OPSET:
                model = version_converter.convert_version(model, OPSET)
            lifted, making = self.work / "lifted.onnx", self.work / "preparing.onnx"
            onnx.save(model, lifted)
            try:
                quant_pre_process(str(lifted), str(making), auto_merge=True)
            except Exception:  # noqa: BLE001  symbolic shapes fail on graphs that ONNX's own inference can do
                quant_pre_process(str(lifted), str(making), skip_symbolic_shape=True)
            making.rename(made)
        return made

    @cached_property
    def count(self) -> int:
        """How many inputs there are for calibration: pictures that cannot be read are none."""
        return sum(1 for _feeds in self.samples())

    def quantize(self, into: Path, *, only: Sequence[str] = (), without: Sequence[str] = ()) -> None:
        """Write the static INT8 variant: of all nodes, of those named `only`, or of all `without` some."""
        # One picture at a time whatever the method: the collectors keep every inner result of what they are given.
        with quiet():
            self._quantize(into, only, without)

    def _quantize(self, into: Path, only: Sequence[str], without: Sequence[str]) -> None:
        quantize_static(
            str(self.prepared),
            str(into),
            Samples(self.samples(), self.count, self.on_sample),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            nodes_to_quantize=list(only) or None,
            nodes_to_exclude=list(without) or None,
            calibrate_method=METHODS[self.method],
            calibration_cache_path=self.work / f"ranges-{self.method}.json",
            extra_options={"CalibStridedMinMax": 1},
        )


def build(target: str, bench: Bench, into: Path) -> None:
    """Write the variant of a model.

    Raises:
        NotBuilt: it cannot be made of this model.
    """
    making = into.with_name(into.name + ".tmp")
    try:
        with quiet():
            _MAKERS[target](bench, making)
    except MemoryError:
        raise
    except Exception as exc:  # the tools raise whatever they happen to meet
        raise NotBuilt(f"{type(exc).__name__}: {exc}"[:300]) from exc
    making.rename(into)


def _simplified(bench: Bench, into: Path) -> None:
    onnx.save(onnxslim.slim(onnx.load(bench.source)), into)


def convert_to_half(bench: Bench, into: Path) -> None:
    """Write the model in FP16.

    Inputs and outputs stay FP32, so callers of the model are not affected.
    """
    model = OnnxModel(convert_float_to_float16(onnx.load(bench.source), keep_io_types=True))
    model.topological_sort()  # it appends its casts at the end, which ONNX forbids
    onnx.save(model.model, into)


def _as_it_is(bench: Bench, into: Path) -> None:
    shutil.copyfile(bench.source, into)


def _quantize_calibrated(bench: Bench, into: Path) -> None:
    bench.quantize(into)


def _dynamic(bench: Bench, into: Path) -> None:
    quantize_dynamic(str(bench.prepared), str(into), weight_type=QuantType.QUInt8)


_MAKERS: Mapping[str, Callable[[Bench, Path], Any]] = {
    "fp32": _simplified,
    "fp16": convert_to_half,
    "int8": _quantize_calibrated,
    "int8_dynamic": _dynamic,
    "openvino": _as_it_is,
    "int8_openvino": _quantize_calibrated,
    "tensorrt": _as_it_is,  # its engine is built of it, see inference.conversion.converter.engines
    "tensorrt_fp16": _as_it_is,
}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What the tools say at length about every node is left out of the job's log."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)
