"""OpenVINO as a runtime of ONNX files, where its wheel is installed (an extra of its own).

Source: https://docs.openvino.ai/2026/api/ie_python_api/api.html
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PROVIDER = "OpenVINO"
INSTALL = "pip install openvino==2026.4.1"
End = tuple[str, str, tuple[int, ...]]


class NotInstalled(Exception):
    """OpenVINO cannot run here; says what to do."""

    def __init__(self, why: str = f"OpenVINO is not installed on this machine. There: {INSTALL}") -> None:
        super().__init__(why)


def require() -> None:
    """Say so where it would not be OpenVINO that answers.

    Raises:
        NotInstalled: the wheel is not there, or a card was granted, on which ONNX Runtime answers instead.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "") not in ("", "-1"):
        raise NotInstalled("OpenVINO runs on processors here. Convert without a card.")
    if importlib.util.find_spec("openvino") is None:
        raise NotInstalled


class Session:
    """A model that OpenVINO runs on the processor, with the parts of ONNX Runtime's session that the engine uses.

    Raises:
        NotInstalled: the wheel is not there.
    """

    def __init__(self, path: Path, *, threads: int) -> None:
        try:
            core = import_module("openvino").Core()
        except ImportError:
            raise NotInstalled from None
        options = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # many services share one machine
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self._model = core.compile_model(core.read_model(str(path)), "CPU", options)
        self._request = self._model.create_infer_request()
        self.inputs = [_end(port) for port in self._model.inputs]
        self.outputs = [_end(port) for port in self._model.outputs]

    def run(self, names: Sequence[str], feeds: Mapping[str, NDArray[np.generic]]) -> list[NDArray[np.generic]]:
        """Compute outputs; returns copies, because the next run overwrites the buffers of this one."""
        results = self._request.infer(dict(feeds), share_inputs=True)
        by_name: dict[str, Any] = {name: value for port, value in results.items() for name in port.names}
        return [np.array(by_name[name]) for name in names]


def _end(port: Any) -> End:
    """Name, OpenVINO's word for the type, and sizes of an input or output; -1 is free."""
    sizes = tuple(size.get_length() if size.is_static else -1 for size in port.partial_shape)
    called = port.node.friendly_name.removesuffix("/sink_port_0")  # of an output; a tensor may have several names
    return called if called in port.names else port.any_name, port.element_type.get_type_name(), sizes
