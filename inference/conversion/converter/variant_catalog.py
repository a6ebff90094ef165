"""Which variants there are, as data: pages and programs read it alike."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "source"  # the row of the model as it came
MINMAX, ENTROPY, PERCENTILE = "minmax", "entropy", "percentile"
METHODS = (MINMAX, ENTROPY, PERCENTILE)

# What became of a variant.
ACCEPTED, REFUSED, FAILED = "accepted", "refused", "failed"


@dataclass(frozen=True)
class Target:
    """A variant of a model. Its texts are English; pages translate them.

    Args:
        calibrated: it needs images to calibrate the ranges of activations.
        runtime: what model.json says of how it is run; "": ONNX Runtime.
        half: its engine computes in FP16; for TensorRT.
    """

    name: str
    label: str
    description: str
    calibrated: bool = False
    runtime: str = ""
    half: bool = False

    @property
    def needs_card(self) -> bool:
        """Whether it is built on an NVIDIA card, for that model of card alone."""
        return self.runtime == "tensorrt"


_ALL = (
    Target("fp32", "FP32, simplified", "Constant-folded FP32 graph"),
    Target("fp16", "FP16", "Half the size. Faster on GPUs that support it; CPUs gain no speed."),
    Target(
        "int8",
        "INT8, calibrated",
        "A quarter of the size, and faster on most CPUs. Images determine the value ranges.",
        calibrated=True,
    ),
    Target(
        "int8_dynamic",
        "INT8, dynamic",
        "Without calibration. For models that consist mainly of matrix multiplications: convolutions become slower.",
    ),
    Target(
        "openvino",
        "OpenVINO",
        "The same weights, run by OpenVINO if it is installed: often faster on CPUs.",
        runtime="openvino",
    ),
    Target(
        "int8_openvino",
        "INT8, calibrated, OpenVINO",
        "The calibrated INT8 network in OpenVINO, if installed.",
        calibrated=True,
        runtime="openvino",
    ),
    Target(
        "tensorrt",
        "TensorRT",
        "An engine for the GPU it is built on, in FP32. On other hardware ONNX Runtime runs the model.",
        runtime="tensorrt",
    ),
    Target(
        "tensorrt_fp16",
        "TensorRT, FP16",
        "An engine for the GPU it is built on, in FP16: fastest on most GPUs.",
        runtime="tensorrt",
        half=True,
    ),
)
TARGETS = {target.name: target for target in _ALL}
DEFAULT_TARGETS = ("fp16", "int8")
