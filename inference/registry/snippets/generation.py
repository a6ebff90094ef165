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
    """Return whether the templates can decode this model: whole images, and classes or boxes."""
    input_spec = spec.input
    if input_spec is None or spec.graph is not None or spec.task not in TASKS or not TASKS[spec.task].answer.elsewhere:
        return False
    layouts = TASKS[spec.task].answer.layouts
    if any(layout.roles == tuple(spec.outputs) and not layout.in_snippets for layout in layouts):
        return False
    return input_spec.overlap is None and input_spec.scope == "picture"


def javascript(spec: ModelSpec) -> str:
    """Return the module for onnxruntime-web."""
    document = json.dumps(_describe(spec), ensure_ascii=True, indent=2)
    document = document.replace("</", "<\\/")  # it may be put into a page
    return (HERE / "predict.js").read_text().replace(JS_PLACE, f"const MODEL = {document};")


def cpp(spec: ModelSpec) -> str:
    """The program for ONNX Runtime's C++ API."""
    text = (HERE / "predict.cpp").read_text()
    before, _begin, rest = text.partition(CPP_BEGIN)
    _sample, _end, after = rest.partition(CPP_END)
    return f"{before}{CPP_BEGIN}{_constants(_describe(spec))}{CPP_END}{after}"


def _describe(spec: ModelSpec) -> dict[str, Any]:
    input_spec, limits = spec.input, spec.decode
    assert input_spec is not None
    return {
        "task": spec.task,
        "input": {
            "name": input_spec.name, "width": input_spec.width, "height": input_spec.height,
            "channels": input_spec.channels,
            "mean": list(input_spec.mean), "std": list(input_spec.std), "resize": input_spec.resize,
            "order": input_spec.order,
        },
        "outputs": dict(spec.outputs),
        "classes": [{"id": label.id, "name": label.name} for label in spec.classes],
        "decode": {
            "score_threshold": limits.score_threshold, "iou_threshold": limits.iou_threshold,
            "max_detections": limits.max_detections,
        },
    }  # fmt: skip


def _constants(document: Mapping[str, Any]) -> str:
    """Return the lines between the marks of predict.cpp, for this model."""
    input_fields, limits = document["input"], document["decode"]
    outputs = ", ".join(f"{{{_text(role)}, {_text(name)}}}" for role, name in document["outputs"].items())
    classes = "".join(f"    {{{label['id']}, {_text(label['name'])}}},\n" for label in document["classes"])
    return (
        f"const std::string TASK = {_text(document['task'])};\n"
        f"const std::string INPUT = {_text(input_fields['name'])};\n"
        f"constexpr int WIDTH = {input_fields['width']}, HEIGHT = {input_fields['height']}, "
        f"CHANNELS = {input_fields['channels']};\n"
        f"const std::vector<float> MEAN = {{{', '.join(map(_float, input_fields['mean']))}}};\n"
        f"const std::vector<float> STD = {{{', '.join(map(_float, input_fields['std']))}}};\n"
        f"constexpr bool BLUE_FIRST = {'true' if input_fields['order'] == 'BGR' else 'false'};\n"
        f"constexpr bool LETTERBOX = {'true' if input_fields['resize'] == 'letterbox' else 'false'};\n"
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
