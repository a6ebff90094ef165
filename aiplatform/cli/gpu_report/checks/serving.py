"""Checks of inference: a TensorRT engine that is built and served, video that is decoded by NVDEC."""

from __future__ import annotations

from aiplatform.cli.gpu_report import jobs
from aiplatform.cli.gpu_report.definitions import Context, NotAvailable, Values
from datasets.formats.neutral import CLASSES

CLIP = (1280, 720, 250)
SMALL_CLIP = (160, 120, 25)  # in tests


def tensorrt(context: Context) -> Values:
    """Build an FP16 engine as a conversion does, and serve it by the platform's model server."""
    runtime = "onnxruntime" if context.device == "cpu" else "tensorrt"
    measured = jobs.run(context, "tensorrt_serving.py", runtime, CLASSES, with_platform=True)
    values = {name: round(value, 4) if isinstance(value, float) else value for name, value in measured.items()}
    return values | {"speedup": round(measured["images_s"] / measured["plain_images_s"], 3)}


def video(context: Context) -> Values:
    """Decode H.264 by the code of video analytics."""
    clip = SMALL_CLIP if context.device == "cpu" else CLIP
    measured = jobs.run(context, "decoding.py", *clip, with_platform=True)
    devices = measured.pop("devices")
    if context.device == "cuda" and "cuda" not in devices:
        raise NotAvailable("The FFmpeg of PyAV was built without CUDA.")
    values = {name: round(value, 1) if isinstance(value, float) else value for name, value in measured.items()}
    return {name: value for name, value in values.items() if value != ""}
