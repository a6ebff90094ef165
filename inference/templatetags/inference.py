"""Template filters of models, evaluations and services."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from aiplatform.lib import markdown
from inference.evaluation import notes
from inference.evaluation import script_metrics as script_figures
from inference.evaluation.models import SPLIT_LABELS, Evaluation
from inference.registry import metric_labels, task_labels
from inference.registry.task_labels import NONE
from inference.registry.training_data import AUTO
from training.catalog import param_labels
from training.catalog.key_metrics import KeyMetric
from training.catalog.metric_labels import word
from workers.core.models import Job
from workers.jobs import summaries

register = template.Library()

MAX_METRICS = 8
FITTINGS = {"stretch": _("stretch"), "letterbox": _("pad")}


@register.filter
def task_word(task: str | None) -> Any:
    """The name of a task → its word."""
    return dict(task_labels.choices()).get(task or "", NONE)


@register.filter
def phase_steps(job: Job) -> list[summaries.PhaseStep]:
    """The phases of a job that runs."""
    return summaries.phase_steps(job)


@register.filter(name="markdown")
def markdown_of(text: str) -> SafeString:
    """Markdown as HTML: all text escaped, no tags but ours."""
    return markdown.render(text)


@register.filter
def split_word(split: str) -> Any:
    """What a split is called, also where it is chosen later."""
    return _("Automatic") if split == AUTO else SPLIT_LABELS.get(split, split)


@register.filter
def key_metric(metrics: dict[str, Any] | None, task: str | None) -> KeyMetric | None:
    """The metric that rates a model, for lists."""
    return metric_labels.key_metric(task or "", metrics or {})


@register.filter
def evaluation_metric(evaluation: Evaluation) -> KeyMetric | None:
    """Return the key metric of an evaluation, for lists: of a custom script that of its task, else its first."""
    metric = metric_labels.key_metric(evaluation.task, evaluation.metrics)
    if metric or not evaluation.is_scripted:
        return metric
    first = next(iter(script_figures.flat(evaluation.script.figures).items()), None)
    return KeyMetric(*first) if first else None


@register.filter
def figure_rows(rows: list[Any]) -> list[tuple[str, str, str]]:
    """Name, part and value as text of the figures of an own script, in its order."""
    return [
        (name, part, f"{value:.6g}")
        for name, held in rows
        for part, value in (held if isinstance(held, list) else [("", held)])
    ]


@register.filter(name="figures")
def figures_of(metrics: dict[str, Any]) -> list[tuple[str, str]]:
    """Words and values as text, a few of them."""
    return [
        (word(name), f"{value:.3f}")
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ][:MAX_METRICS]


@register.filter
def provider_word(provider: str) -> str:
    """CPUExecutionProvider → CPU."""
    return {"CUDAExecutionProvider": "GPU"}.get(provider, provider.removesuffix("ExecutionProvider"))


@register.filter
def note_words(note: str) -> str:
    """A note of the evaluator in the reader's language."""
    return notes.translate(str(note))


@register.filter
def param_word(name: str) -> str:
    """batch_size → Batch size; a name without words as it is."""
    return str(param_labels.label(name))


@register.filter
def fitting_word(resize: str) -> str:
    """How images of another shape are made to fit a model's input; a way without words as it is."""
    return str(FITTINGS.get(resize, resize))


@register.filter
def scientific(number: float) -> str:
    return f"{number:.1e}" if isinstance(number, int | float) else str(number)


@register.filter
def unlocalize_number(number: float) -> str:
    """A number as HTML attributes want it, whatever the reader's language."""
    return f"{number:.4f}"


@register.filter
def name_for(names: dict[int, str], key: int) -> str:
    """Return the name with this key, else the key itself."""
    return names.get(key, str(key))


@register.filter
def truth_boxes(image: dict[str, Any]) -> list[dict[str, Any]]:
    """Boxes someone drew: class_id, x, y, w, h, found."""
    return [
        {"class_id": class_id, **_corners(x1, y1, x2, y2), "found": matched}
        for class_id, x1, y1, x2, y2, matched in image["truth"]
    ]


@register.filter
def answer_boxes(image: dict[str, Any]) -> list[dict[str, Any]]:
    """Boxes the model answered: class_id, score, x, y, w, h."""
    return [
        {"class_id": class_id, "score": f"{score:.3f}", **_corners(x1, y1, x2, y2)}
        for class_id, score, x1, y1, x2, y2 in image["answers"]
    ]


@register.filter
def mistake_boxes(image: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Boxes of mistakes of one kind, answers or what was missed: class_id, x, y, w, h."""
    return [
        {"class_id": class_id, **_corners(*corners)}
        for name, class_id, _score, *corners, _truth in image.get("mistakes", ())
        if name == kind
    ]


@register.filter
def truth_outlines(image: dict[str, Any]) -> list[dict[str, Any]]:
    """Outlines someone drew: class_id, path of an SVG, found."""
    return [
        {"class_id": box[0], "path": _path(rings), "found": box[5]}
        for box, rings in zip(image["truth"], image["truth_outlines"], strict=True)
    ]


@register.filter
def answer_outlines(image: dict[str, Any]) -> list[dict[str, Any]]:
    """Outlines the model answered: class_id, score, path of an SVG."""
    return [
        {"class_id": box[0], "score": f"{box[1]:.3f}", "path": _path(rings)}
        for box, rings in zip(image["answers"], image["outlines"], strict=True)
    ]


def _path(rings: list[list[float]]) -> str:
    """Rings of x and y in turn as the path of an SVG."""
    return "".join(f"M{' '.join(f'{value:.1f}' for value in ring)}Z" for ring in rings)


def _corners(x1: float, y1: float, x2: float, y2: float) -> dict[str, str]:
    return {"x": f"{x1:.2f}", "y": f"{y1:.2f}", "w": f"{x2 - x1:.2f}", "h": f"{y2 - y1:.2f}"}
