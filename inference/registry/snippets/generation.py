"""Lines in JavaScript and C++ for one model: templates beside this file, with what model.json says put into them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inference.kit.model_io.spec import ModelSpec
from inference.kit.models import model_json
from inference.kit.task_kinds import TASKS

HERE = Path(__file__).parent
JS_PLACE = "const MODEL = {};"
CPP_BEGIN, CPP_END = "// --- the model\n", "// --- the end of the model\n"


def files(folder: Path) -> dict[str, bytes]:
    """`use/predict.js` and `use/predict.cpp` of the model in `folder`; nothing where no lines were written for it.

    Raises:
        BadModel: its model.json is not usable.
    """
    spec = model_json.load(folder)
    if not fits(spec):
        return {}
    return {"use/predict.js": javascript(spec).encode(), "use/predict.cpp": cpp(spec).encode()}


def fits(spec: ModelSpec) -> bool:
    """Whether the templates read answers of this model: whole pictures, and classes or boxes."""
    seen = spec.input
    if seen is None or spec.graph is not None or spec.task not in TASKS or not TASKS[spec.task].answer.elsewhere:
        return False
    layouts = TASKS[spec.task].answer.layouts
    if any(layout.roles == tuple(spec.outputs) and not layout.in_snippets for layout in layouts):
        return False
    return seen.overlap is None and seen.scope == "picture"


def javascript(spec: ModelSpec) -> str:
    """The module for onnxruntime-web."""
    known = json.dumps(_described(spec), ensure_ascii=True, indent=2)
    known = known.replace("</", "<\\/")  # it may be put into a page
    return (HERE / "predict.js").read_text().replace(JS_PLACE, f"const MODEL = {known};")


def cpp(spec: ModelSpec) -> str:
    """The program for ONNX Runtime's C++ API."""
    text = (HERE / "predict.cpp").read_text()
    before, _begin, rest = text.partition(CPP_BEGIN)
    _sample, _end, after = rest.partition(CPP_END)
    return f"{before}{CPP_BEGIN}{_constants(_described(spec))}{CPP_END}{after}"


def _described(spec: ModelSpec) -> dict[str, Any]:
    seen, limits = spec.input, spec.decode
    assert seen is not None
    return {
        "task": spec.task,
        "input": {
            "name": seen.name, "width": seen.width, "height": seen.height, "channels": seen.channels,
            "mean": list(seen.mean), "std": list(seen.std), "resize": seen.resize,
            "order": seen.order,
        },
        "outputs": dict(spec.outputs),
        "classes": [{"id": one.id, "name": one.name} for one in spec.classes],
        "decode": {
            "score_threshold": limits.score_threshold, "iou_threshold": limits.iou_threshold,
            "max_detections": limits.max_detections,
        },
    }  # fmt: skip


def _constants(known: Mapping[str, Any]) -> str:
    """The lines between the marks of predict.cpp, of this model."""
    seen, limits = known["input"], known["decode"]
    outputs = ", ".join(f"{{{_text(role)}, {_text(name)}}}" for role, name in known["outputs"].items())
    classes = "".join(f"    {{{one['id']}, {_text(one['name'])}}},\n" for one in known["classes"])
    return (
        f"const std::string TASK = {_text(known['task'])};\n"
        f"const std::string INPUT = {_text(seen['name'])};\n"
        f"constexpr int WIDTH = {seen['width']}, HEIGHT = {seen['height']}, CHANNELS = {seen['channels']};\n"
        f"const std::vector<float> MEAN = {{{', '.join(map(_float, seen['mean']))}}};\n"
        f"const std::vector<float> STD = {{{', '.join(map(_float, seen['std']))}}};\n"
        f"constexpr bool BLUE_FIRST = {'true' if seen['order'] == 'BGR' else 'false'};\n"
        f"constexpr bool LETTERBOX = {'true' if seen['resize'] == 'letterbox' else 'false'};\n"
        f"const std::vector<std::pair<std::string, std::string>> OUTPUTS = {{{outputs}}};  // role, name\n"
        f"const std::vector<Class> CLASSES = {{\n{classes}}};\n"
        f"constexpr float SCORE_THRESHOLD = {_float(limits['score_threshold'])};\n"
        f"constexpr float IOU_THRESHOLD = {_float(limits['iou_threshold'])};\n"
        f"constexpr std::size_t MAX_DETECTIONS = {limits['max_detections']};\n"
    )


def _float(number: float) -> str:
    return f"{float(number)!r}f"


def _text(text: str) -> str:
    """A text as C++ writes it: each byte of its UTF-8 that is no plain sign as three octal digits."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{plain}"'
