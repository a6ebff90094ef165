"""A model that came without model.json, described by what a person declares and what its files say.

From task, labels, layout of the outputs and the way pixels become numbers follows a model.json; what the ONNX file says
of its shapes is checked against it, so that a wrong label list is refused here and not seen on every picture later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.parsers import is_sound
from inference.kit.contracts.layouts import Found, Layout, Output, Unfit
from inference.kit.model_io.spec import BGR, RGB
from inference.kit.models import model_json
from inference.kit.task_kinds import TASKS
from inference.registry.formats import foreign_metadata as others
from inference.registry.formats import onnx
from inference.registry.formats.folder import home_of
from inference.registry.formats.foreign_metadata import FileFacts
from inference.registry.formats.onnx import Tensor

LAYOUTS: Mapping[str, Mapping[str, Layout]] = {  # of the tasks that a person can declare
    name: {layout.name: layout for layout in task.answer.layouts} for name, task in TASKS.items() if task.answer.layouts
}


class Pixels(NamedTuple):
    """Mean and std of RGB values of 0..255, and the order in which the input takes the channels."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    order: str = RGB


PIXELS: Mapping[str, Pixels] = {
    "imagenet": Pixels((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    "unit": Pixels((0.0,) * 3, (255.0,) * 3),
    "signed": Pixels((127.5,) * 3, (127.5,) * 3),
    "bytes": Pixels((0.0,) * 3, (1.0,) * 3),
    "bytes_bgr": Pixels((0.0,) * 3, (1.0,) * 3, BGR),  # YOLOX, and most of what was trained on OpenCV's pictures
    "caffe_bgr": Pixels((123.68, 116.779, 103.939), (1.0,) * 3, BGR),  # weights of Caffe, and what began with them
    "unit_bgr": Pixels((0.0,) * 3, (255.0,) * 3, BGR),
}
#: Those that take blue first, the more usual first.
BLUE_FIRST = tuple(name for name, pixels in PIXELS.items() if pixels.order == BGR)
PIXEL_LABELS = {
    "imagenet": gettext_lazy("ImageNet mean and standard deviation"),
    "unit": gettext_lazy("0 to 1"),
    "signed": gettext_lazy("−1 to 1"),
    "bytes": gettext_lazy("0 to 255, unchanged"),
    "bytes_bgr": gettext_lazy("0 to 255, BGR"),
    "caffe_bgr": gettext_lazy("0 to 255 minus the ImageNet mean, BGR"),
    "unit_bgr": gettext_lazy("0 to 1, BGR"),
}
RESIZES = ("stretch", "letterbox")
FLOAT32 = 1  # ONNX's number of the element type
MAX_LABELS, LONGEST_LABEL = 100_000, 200


@dataclass(frozen=True)
class Declared:
    """What a person says of a model; "", 0 and () leave it to the files.

    Args:
        task: of LAYOUTS.
        labels: names of the classes, in the order of the model's outputs.
        layout: of the outputs, of LAYOUTS of the task.
        pixels: of PIXELS.
        width, height: of the input in pixels, where the file leaves them free.
        resize: of RESIZES.
    """

    task: str = ""
    labels: tuple[str, ...] = ()
    layout: str = ""
    pixels: str = ""
    width: int = 0
    height: int = 0
    resize: str = ""

    def __bool__(self) -> bool:
        return bool(self.task or self.labels or self.layout or self.pixels or self.width or self.height or self.resize)

    def check(self) -> None:
        """Raise an error for values that no model can have."""
        refusals = Refusals()
        choices = {"task": tuple(LAYOUTS), "pixels": tuple(PIXELS), "resize": RESIZES}
        for name, options in choices.items():
            with refusals:
                if (value := getattr(self, name)) and value not in options:
                    raise Invalid(_("Choose one of: %(options)s.") % {"options": ", ".join(options)}, field=name)
        with refusals:
            options = tuple(LAYOUTS.get(self.task, {}))
            if self.layout and self.task in LAYOUTS and self.layout not in options:
                raise Invalid(_("Choose one of: %(options)s.") % {"options": ", ".join(options)}, field="layout")
        for side in ("width", "height"):
            with refusals:
                if not 0 <= getattr(self, side) <= model_json.MAX_SIDE:
                    message = _("The input size must be 1 to %(most)s pixels per side.") % {"most": model_json.MAX_SIDE}
                    raise Invalid(message, field=side)
        with refusals:
            _check_labels(self.labels)
        refusals.end()


NOTHING = Declared()


def labels_of(text: str) -> tuple[str, ...]:
    """Return the labels of a text: one a line, a JSON list, or a JSON table of numbers and names.

    Raises:
        Invalid: it begins like JSON and is none, or its numbers have gaps.
    """
    text = text.strip()
    if not text.startswith(("[", "{")):
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Invalid(
            _("The text starts like JSON but is invalid. Write one label per line."), field="labels"
        ) from None
    if isinstance(value, list):
        return tuple(str(label) for label in value)
    labels = others.parse_labels(value)
    if not labels:
        message = _('The label numbers must count from 0 without gaps: {"0": "cat", "1": "dog"}.')
        raise Invalid(message, field="labels")
    return labels


def _check_labels(labels: Sequence[str]) -> None:
    if len(labels) > MAX_LABELS:
        raise Invalid(_("A model can have at most %(most)s labels.") % {"most": f"{MAX_LABELS:,}"}, field="labels")
    invalid = next((label for label in labels if not label or len(label) > LONGEST_LABEL or not is_sound(label)), None)
    if invalid is not None:
        message = _("A label must have 1 to %(most)s characters; “%(label)s” does not.")
        raise Invalid(message % {"most": LONGEST_LABEL, "label": invalid[:40]}, field="labels")


def describe(folder: Path, weights: Path, declared: Declared) -> FileFacts:
    """Write the model.json of an ONNX file that has none; returns what is known of the model.

    Args:
        folder: where the files lie; nobody else writes there.
        weights: the .onnx or .safetensors file of the model, somewhere below; an ONNX file where there are both.

    Raises:
        Invalid: all that does not fit at once.
        RefusedModel: the ONNX file is broken or unsafe.
    """
    target = home_of(folder) / "model.json"
    file_facts = _read_metadata(weights, folder)
    if target.exists():
        if declared:
            text = _(
                "The model is already described by its model.json. Clear task, labels and input, or remove the file."
            )
            raise Invalid(text, field="task")
        return file_facts
    if weights.suffix.lower() != ".onnx":
        return _merge(declared, file_facts, {})
    files = Files.read(folder, weights)
    file_facts = files.merge(declared)
    if not file_facts.task:
        if declared:
            raise Invalid(_("Choose the task of the model."), field="task")
        return file_facts  # an ONNX file that answers tensors
    target.write_text(json.dumps(files.model_json(declared), ensure_ascii=False, indent=1))
    return file_facts


@dataclass(frozen=True)
class Files:
    """What the files of an ONNX model say, read once for any number of declarations."""

    beside: FileFacts  # of files beside the ONNX file
    summary: onnx.Summary

    @classmethod
    def read(cls, folder: Path, weights: Path) -> Files:
        """Read the files in a folder.

        Raises:
            RefusedModel: the ONNX file is broken or unsafe.
        """
        return cls(_read_metadata(weights, folder), onnx.inspect(weights))

    def merge(self, declared: Declared) -> FileFacts:
        """Return the declaration, completed by what the files say."""
        return _merge(declared, self.beside, self.summary.metadata)

    def model_json(self, declared: Declared) -> dict[str, Any]:
        """The model.json of the model as it is declared; declaration or files name the task.

        Raises:
            Invalid: all that does not fit at once.
        """
        return _Description(self.summary, self.merge(declared), declared).model_json()

    def classes(self, layout: Layout) -> int | None:
        """For how many classes the outputs answer where they are laid out so; None where that is free.

        Raises:
            Unfit: they are not.
        """
        return layout.find(outputs_of(self.summary))[1]


def outputs_of(summary: onnx.Summary) -> list[Output]:
    """The outputs of a file as layouts look at them."""
    return [Output(each.name, tuple(each.shape), summary.makers.get(each.name, "")) for each in summary.outputs]


def _read_metadata(weights: Path, folder: Path) -> FileFacts:
    """Read transformers' files next to the weights, or in the folder above, where its exporter writes them."""
    beside = others.huggingface(weights.parent)
    return beside if beside != FileFacts() or weights.parent == folder else others.huggingface(weights.parent.parent)


def _merge(declared: Declared, file_facts: FileFacts, metadata: Mapping[str, str]) -> FileFacts:
    """Return the declaration, completed by what the files say; files that say another task are ignored."""
    if file_facts == FileFacts():
        file_facts = others.ultralytics(metadata)
    if declared.task and declared.task != file_facts.task:
        file_facts = replace(file_facts, task="", layout="")
    pixels = PIXELS.get(declared.pixels, Pixels(file_facts.mean, file_facts.std, BGR if file_facts.blue_first else RGB))
    return replace(
        file_facts,
        task=declared.task or file_facts.task,
        labels=declared.labels or file_facts.labels,
        mean=pixels.mean,
        std=pixels.std,
        blue_first=pixels.order == BGR,
        width=declared.width or file_facts.width,
        height=declared.height or file_facts.height,
        layout=declared.layout or file_facts.layout,
    )


@dataclass
class _Description:
    """The model.json of an ONNX file; errors are collected in `refusals`."""

    summary: onnx.Summary
    facts: FileFacts
    declared: Declared
    refusals: Refusals = field(default_factory=Refusals)

    def model_json(self) -> dict[str, Any]:
        input_fields: dict[str, Any] = {}
        output: Mapping[str, str] = {}
        classes: list[dict[str, Any]] = []
        layout = next(iter(LAYOUTS[self.facts.task].values()))
        with self.refusals:
            input_fields = self._input()
        with self.refusals:
            layout = self._layout()
            output, count = self._output(layout)
            classes = self._classes(layout, count)
        self.refusals.end()
        return {
            "format": 1,
            "task": self.facts.task,
            "architecture": self.facts.architecture,
            "classes": classes,
            "input": {**input_fields, "resize": self.declared.resize or layout.resize},
            "output": {role: output[role] for role in layout.roles},
        }

    def _layout(self) -> Layout:
        """Return the layout that is declared, that the exporter names, or that shapes and names match.

        Raises:
            Invalid: they speak for several.
        """
        layouts = LAYOUTS[self.facts.task]
        if self.facts.layout in layouts:
            return layouts[self.facts.layout]
        fitting = [layout for layout in layouts.values() if layout.fits(self._outputs, len(self.facts.labels))]
        if len(fitting) > 1:
            message = _("The outputs of the file have several possible layouts. Choose one: %(options)s.")
            options = "; ".join(f"{layout.name} ({_(layout.label)})" for layout in fitting)
            raise Invalid(message % {"options": options}, field="layout")
        return fitting[0] if fitting else next(iter(layouts.values()))

    @property
    def _outputs(self) -> list[Output]:
        return outputs_of(self.summary)

    def _output(self, layout: Layout) -> Found:
        try:
            return layout.find(self._outputs)
        except Unfit:
            shapes = ", ".join(f"{tensor.name} {_shape(tensor)}" for tensor in self.summary.outputs[:6])
            message = _(
                "The outputs of the file (%(shapes)s) do not have this layout: %(layout)s. Choose another layout."
            )
            raise Invalid(message % {"shapes": shapes, "layout": _(layout.label)}, field="layout") from None

    def _input(self) -> dict[str, Any]:
        if len(self.summary.inputs) != 1:
            message = _("The model has %(count)s inputs; models for images have one.")
            raise Invalid(message % {"count": len(self.summary.inputs)}, field="file")
        (tensor,) = self.summary.inputs
        if tensor.element_type != FLOAT32 or len(tensor.shape) != 4 or tensor.shape[1] not in (1, 3, -1):
            message = _(
                "The input “%(name)s” has the shape %(shape)s. A 32-bit float input [N, 3, height, width] is "
                "required: export the model accordingly."
            )
            raise Invalid(message % {"name": tensor.name, "shape": _shape(tensor)}, field="file")
        refusals = Refusals()
        channels = tensor.shape[1] if tensor.shape[1] > 0 else 3
        sides: dict[str, int] = {}
        for side, fixed in (("height", tensor.shape[2]), ("width", tensor.shape[3])):
            with refusals:
                sides[side] = self._side(side, fixed)
        with refusals:
            if not self.facts.mean:
                raise Invalid(_("Choose the pixel normalization used for training."), field="pixels")
        refusals.end()
        mean, std = self.facts.mean, self.facts.std
        if channels == 1:
            mean, std = (sum(mean) / len(mean),), (sum(std) / len(std),)
        input_fields = {"name": tensor.name, **sides, "channels": channels, "mean": list(mean), "std": list(std)}
        return input_fields | ({"order": BGR} if self.facts.blue_first and channels == 3 else {})

    def _side(self, side: str, fixed: int) -> int:
        declared_size = getattr(self.declared, side)
        if fixed > 0:
            if declared_size and declared_size != fixed:
                text = _("The input size of the file is fixed to %(fixed)s pixels, not %(given)s. Clear the field.")
                raise Invalid(text % {"fixed": fixed, "given": declared_size}, field=side)
            return fixed
        size: int = getattr(self.facts, side)
        if not size:
            raise Invalid(
                _("The file does not define it: enter the image size in pixels used for training."), field=side
            )
        return size

    def _classes(self, layout: Layout, count: int | None) -> list[dict[str, Any]]:
        labels = self.facts.labels
        if not labels:
            message = _("Name the classes of the model (%(count)s), one per line, in the order of its outputs.")
            raise Invalid(message % {"count": "?" if count is None else count}, field="labels")
        if count is not None and len(labels) not in ((count, count - 1) if layout.ground else (count,)):
            message = _("The model predicts %(count)s classes; the labels name %(given)s. Name all in order.")
            raise Invalid(message % {"count": count, "given": len(labels)}, field="labels")
        _check_labels(labels)
        return [{"id": index, "name": label} for index, label in enumerate(labels)]


def _shape(tensor: Tensor) -> str:
    return f"[{', '.join('?' if size < 0 else str(size) for size in tensor.shape)}]"
