"""What files of other tools say of a model: its task, its labels, what its input must look like.

Read are the `config.json` and `preprocessor_config.json` of Hugging Face's transformers, and what Ultralytics' exporter
writes into an ONNX file. All of it is anybody's text: what does not fit is passed over.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.kit.contracts.layouts import END_TO_END
from inference.kit.task_kinds import TASKS

MAX_BYTES, MAX_PREPROCESSOR_BYTES = 4 << 20, 64 << 10  # of JSON: it takes some fifty times as much memory


@dataclass(frozen=True)
class FileFacts:
    """What is known of a model; "", 0 and () where nothing is. Mean and std are of RGB values of 0..255."""

    task: str = ""
    architecture: str = ""
    labels: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    width: int = 0
    height: int = 0
    layout: str = ""  # of the outputs, of Answer.layouts of the task
    blue_first: bool = False  # the input wants blue, green, red


def huggingface(folder: Path) -> FileFacts:
    """What a folder of transformers says, with or without its preprocessor."""
    config = _json(folder / "config.json", MAX_BYTES)
    if not config:
        return FileFacts()
    names = [name for name in _list(config.get("architectures")) if isinstance(name, str)]
    architecture = names[0] if names else ""
    task = _task(lambda word: word == config.get("problem_type")) or _task(architecture.endswith)
    labels, size = parse_labels(config.get("id2label")), config.get("image_size")
    images = _json(folder / "preprocessor_config.json", MAX_PREPROCESSOR_BYTES)
    size = images.get("size", size)
    if isinstance(images.get("crop_size"), dict | int) and images.get("do_center_crop"):
        size = images["crop_size"]
    width, height = _size(size)
    mean, std = _scaling(images)
    return FileFacts(
        task=task,
        architecture=architecture[:100],
        labels=labels,
        mean=mean,
        std=std,
        width=width,
        height=height,
        layout=_layout(task, architecture),
        blue_first=images.get("do_flip_channel_order") is True,
    )


def ultralytics(metadata: Mapping[str, str]) -> FileFacts:
    """Return what Ultralytics' exporter wrote into the metadata: task, names, imgsz, end2end, and nms of its args."""
    task = _task(lambda word: word == metadata.get("task"))
    if not task or "names" not in metadata:
        return FileFacts()
    height, width = (*_list(_literal(metadata.get("imgsz", ""))), 0, 0)[:2]
    return FileFacts(
        task=task,
        architecture=metadata.get("description", "")[:100] if is_sound(metadata.get("description", "")) else "",
        labels=parse_labels(_literal(metadata["names"])),
        mean=(0.0, 0.0, 0.0),
        std=(255.0, 255.0, 255.0),
        width=_side_length(width),
        height=_side_length(height),
        layout=_layout(task, END_TO_END) if _final(metadata) else "",
    )


def _final(metadata: Mapping[str, str]) -> bool:
    """Whether the model answers boxes that need no suppression."""
    args = _literal(metadata.get("args", ""))
    return metadata.get("end2end") == "True" or (isinstance(args, dict) and args.get("nms") is True)


def _layout(task: str, word: str) -> str:
    """The layout of the outputs of what is called by a word; "" where that says nothing of them."""
    layouts = TASKS[task].answer.layouts if task else ()
    return next((layout.name for layout in layouts if word in layout.elsewhere), "")


def _task(fits: Callable[[str], object]) -> str:
    """The task that other tools call by a word that fits."""
    return next((name for name, task in TASKS.items() if any(fits(word) for word in task.elsewhere)), "")


def _json(path: Path, max_bytes: int) -> dict[str, Any]:
    """Return the table in a file; {} if it is missing, a link, or no table."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > max_bytes:
            return {}
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _literal(text: str) -> object:
    """A list or table as Python writes it; None where it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def parse_labels(value: object) -> tuple[str, ...]:
    """Return the labels of {0: "cat", …} in the order of their numbers; () unless they count from 0 without a gap."""
    if not isinstance(value, dict):
        return ()
    try:
        numbered = {int(number): str(name) for number, name in value.items()}
    except (ValueError, TypeError, OverflowError):
        return ()
    is_complete = set(numbered) == set(range(len(numbered)))
    return tuple(numbered[number] for number in range(len(numbered))) if is_complete else ()


def _scaling(images: Mapping[str, Any]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and std of RGB values of 0..255 that do what a preprocessor does; ((), ()) where that is not known."""
    if not images or images.get("rescale_offset") or images.get("include_top"):
        return (), ()  # it moves or divides the numbers once more, in ways of its own
    factor = finite(images.get("rescale_factor", 1 / 255)) if images.get("do_rescale", True) else 1.0
    if not factor:
        return (), ()
    if not images.get("do_normalize", True):
        return (0.0,) * 3, (1 / factor,) * 3
    mean, std = (_three(images.get(name)) for name in ("image_mean", "image_std"))
    if not mean or not std or min(std) <= 0:
        return (), ()
    return tuple(value / factor for value in mean), tuple(value / factor for value in std)


def _three(value: object) -> tuple[float, ...]:
    numbers = [finite(each) for each in _list(value)]
    return (
        tuple(number for number in numbers if number is not None) if len(numbers) == 3 and None not in numbers else ()
    )


def _size(value: object) -> tuple[int, int]:
    if isinstance(value, Mapping):
        return _side_length(value.get("width")), _side_length(value.get("height"))
    return (_side_length(value),) * 2


def _side_length(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 8192 else 0


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
