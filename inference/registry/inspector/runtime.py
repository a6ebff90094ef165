"""Open an ONNX file once, as a service would, to find out whether any runtime can."""

from __future__ import annotations

import re
from pathlib import Path

from django.utils.translation import gettext as _

from inference.registry.formats.onnx import RefusedModel

MAX_REASON_LENGTH = 300
_FILE = re.compile(r"^.{0,300}? failed: ?")  # the runtime's words about the path of the file


def check_opens(model: Path) -> str:
    """Create a session for the file; its graph is not optimized, nothing is run.

    Returns:
        "", or why ONNX Runtime cannot run it on a CPU although the file is valid: an operator that it has for other
        devices alone.

    Raises:
        RefusedModel: the file is not valid for ONNX Runtime; with its reason.
    """
    import onnxruntime  # noqa: PLC0415  takes 0.2 s of CPU, which files without a graph do not need
    from onnxruntime.capi import onnxruntime_pybind11_state as errors  # noqa: PLC0415  as above

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except errors.NotImplemented as error:
        return _reason(error)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  whatever the runtime finds in the file
        if "bad_alloc" in str(error) or "Failed to allocate" in str(error):
            raise MemoryError from None
        message = _("ONNX Runtime cannot open the model: %(reason)s Export it for a supported version.")
        raise RefusedModel(message % {"reason": _reason(error)}) from None
    return ""


def _reason(error: Exception) -> str:
    """The runtime's own words in one line, without its codes and without paths of the platform."""
    line = " ".join(str(error).split())
    line = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", line)
    line = _FILE.sub("", line)[:MAX_REASON_LENGTH].strip()
    return line if line.endswith(".") else f"{line or type(error).__name__}."
