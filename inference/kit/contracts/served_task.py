"""What a task is to models at work: their server, their evaluation, their pages. Data and functions, no platform."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inference.kit.contracts.layouts import Layout
from inference.kit.contracts.schema import Schema
from inference.kit.model_io.decode import Detections, Placement
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import DecodeSpec, ModelSpec

if TYPE_CHECKING:
    from inference.kit.samples.ground_truth import Sample, Truth

# What the images of a dataset version carry, as its dataset.json says it: the words of datasets/formats/neutral.py,
# which is not there in a run.
SHAPES, CLASSES = "detection", "classification"

Arrays = Mapping[str, NDArray[np.generic]]
Floats = NDArray[np.float64]
Line = dict[str, Any]  # one image's answer as predictions.jsonl keeps it, with its "path" and "id"


class Joining(Protocol):
    """The answers to the tiles of one picture, put together."""

    def add(self, outputs: Arrays, placements: Sequence[Placement]) -> None:
        """Add the outputs for some of the tiles, with the placement of the image in each; tiles arrive in order."""

    def result(self) -> tuple[ModelSpec, Arrays, Placement]:
        """Return a model that processed the whole image, its outputs, and the placement of the image in its input.

        The model may have other outputs than the one that looked at tiles, with roles of their own.
        """


@dataclass(frozen=True)
class Answer:
    """What a model answers with.

    Args:
        outputs: roles of its outputs; model.json names a tensor for each.
        read: outputs of one run → for each picture its predictions, as JSON.
        item: what one prediction of `read` holds, as JSON Schema.
        options: names of the fields of `Requested` that change it.
        best_only: only the first prediction counts for the image.
        slow: `read` takes long enough for a thread of its own.
        regions: callers may say which part of a picture to look at.
        joining: puts the answers to the tiles of a picture of a width and height together. None: models of this task
            know no tiles.
        layouts: how its outputs may be laid out in models from elsewhere, the usual way first; none: such models need
            a model.json of their own.
        detect: returns the objects with their boxes on one image of a batch, used for tracking in a video. None:
            models of this task detect no objects.
        elsewhere: a package has lines in other languages that read such answers, see inference/registry/snippets.
        shares: how sure a model is of each class [N, C], where its answers are classes: several models answer the mean,
            and it may look at what a detector found. None: no such answers.
        maps: role of the output that is a map of logits, of which several models answer the mean; "" for none.
        boxes: its answers are boxes alone, which are fused with those of others, and cut out for a further model.
        item_of_chain: what one prediction holds where a further model looked at the boxes.
        draft: what its answers are as an annotation of new pictures: SHAPES where they lie somewhere on a picture,
            CLASSES where the best one is the class of all of it; "" where they are none.
    """

    outputs: tuple[str, ...]
    read: Callable[[ModelSpec, Arrays, Sequence[Placement], Requested], list[list[dict[str, Any]]]]
    item: Schema = field(default_factory=dict)
    options: tuple[str, ...] = ()
    best_only: bool = False
    slow: bool = False
    regions: bool = False
    joining: Callable[[ModelSpec, tuple[int, int]], Joining] | None = None
    layouts: tuple[Layout, ...] = ()
    detect: Callable[[ModelSpec, Arrays, int, Placement, DecodeSpec], Detections] | None = None
    elsewhere: bool = False
    shares: Callable[[ModelSpec, Arrays], NDArray[np.float32]] | None = None
    maps: str = ""
    boxes: bool = False
    item_of_chain: Schema = field(default_factory=dict)
    draft: str = ""

    def roles(self, names: Collection[str]) -> tuple[str, ...]:
        """Roles of a layout, all among those that a model names; the task's own where there is none."""
        layouts = (self.outputs, *(layout.roles for layout in self.layouts))
        return next((roles for roles in layouts if set(roles) <= set(names)), self.outputs)


class Scoring(Protocol):
    """A module of four functions, loaded only by an evaluation: it may bring heavy packages."""

    def lines(
        self,
        spec: ModelSpec,
        outputs: Arrays,
        samples: Sequence[tuple[Sample, Placement]],
        mapping: Mapping[int, int],
        limits: DecodeSpec,
    ) -> list[Line]:
        """What is kept of one run of the model; `mapping` is place in its output → class id of the dataset.

        A sample occurs once, or once per box (`Sample.looks`) for models that process boxes.
        """

    def evaluate(self, truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Score all lines: what goes into evaluation.json, with at least "summary", and one entry per image.

        An image's entry has path, width, height, badness (the list is sorted by it, worst first) and cells, the
        places in a confusion matrix it stands behind, beside what the task's templates show.
        """

    def files(self, lines: list[Line]) -> dict[str, str]:
        """Further files for outputs/: name → content."""

    def agreement(self, first: Line, second: Line, threshold: float) -> float:
        """Return how alike two models answered one image, from 0 (different) to 1 (the same).

        `threshold` is the score from which the model's answers count, where the task has one.
        """


@dataclass(frozen=True)
class Figure:
    """One number of a summary or of a class. Its texts are English; pages translate them."""

    key: str
    label: str
    help: str = ""
    live: bool = False  # follows the threshold a reader moves
    manual: str = ""  # what the manual of the first platform calls it
    least_classes: int = 0  # of fewer classes it says nothing


#: Below the figures of detectors: what the manual of the first platform shows beside them.
LOSSES = (
    "Classification_Loss, Localization_Loss, Regularization_Loss and Total_Loss are not shown: they depend on "
    "the losses used in training, which a model file does not contain. See the page of the training job."
)


@dataclass(frozen=True)
class Pages:
    """What pages show of a task. Templates and scripts by their full names, so that a search finds them.

    Args:
        figures: tiles of a result, left to right.
        headline: keys of metrics; lists show the first one that a result has.
        sections: templates of the evaluation page below the tiles. Each gets evaluation, found, pages.
        script: module of the evaluation page; "" for none.
        curve_note: text next to the heading of the precision and recall curve.
        counted: what a class has a number of in the table of classes.
        class_columns: figures of each class between AP and precision.
        caption: template below a judged image. It gets image, names.
        overlay: template inside the SVG of a judged image, "" for none. It gets image, names.
        legend: template above the judged images, "" for none.
        try_script: module that shows an answer on the page of a service.
        try_controls: template between picture and answer there, "" for none. It gets score_percent.
        note: below the tiles, "" for none.
        snippet: lines of Python that use `answer`, the reply of a call.
    """

    figures: tuple[Figure, ...]
    headline: tuple[str, ...]
    sections: tuple[str, ...]
    caption: str
    try_script: str
    script: str = ""
    curve_note: str = ""
    counted: str = "Objects"
    class_columns: tuple[Figure, ...] = ()
    overlay: str = ""
    legend: str = ""
    try_controls: str = ""
    threshold: bool = False  # callers choose the lowest score of an answer
    note: str = ""
    snippet: str = 'for prediction in answer.json()["predictions"]:\n    print(prediction)'

    def texts(self) -> list[str]:
        """Every text a page translates."""
        figures = (*self.figures, *self.class_columns)
        return [
            self.curve_note,
            self.counted,
            self.note,
            *(text for figure in figures for text in (figure.label, figure.help)),
        ]


@dataclass(frozen=True)
class Measure:
    """A figure that is a quotient of two sums over images, so that it can be had of any choice of them.

    `over` and `under` take the entry of an image (see `Scoring.evaluate`) and give its part of each sum.
    """

    key: str
    label: str
    over: Callable[[Mapping[str, Any]], float]
    under: Callable[[Mapping[str, Any]], float]
    lower_is_better: bool = False


@dataclass(frozen=True)
class ClassMean:
    """A figure that is a mean over the classes that are there, of what the pairs of all images say.

    `of` takes how often each class was answered rightly, is there, and was answered [classes], and gives its values.
    """

    key: str
    label: str
    of: Callable[[Floats, Floats, Floats], Floats]
    lower_is_better: bool = False


@dataclass(frozen=True)
class Ranked:
    """An average precision, of entries that have `ranked` and `truths` (see `matching`).

    `levels` are those of its overlaps that it is the mean of: all, or one.
    """

    key: str
    label: str
    levels: slice
    lower_is_better: bool = False


def average_precisions(over: str, at_50: str, at_75: str) -> tuple[Ranked, ...]:
    """COCO's three by what a task calls them: over all overlaps, at 0.50 and at 0.75."""
    return (
        Ranked("map", over, slice(None)),
        Ranked("ap50", at_50, slice(0, 1)),
        Ranked("ap75", at_75, slice(5, 6)),
    )


def counted() -> tuple[Measure, ...]:
    """Measures of entries that have `tp`, `fp` and `fn`: over all objects of all images, regardless of class.

    Their names are not those of the figures of a summary, which are means over the classes.
    """
    return (
        Measure(
            "objects_f1",
            "F1 over all objects",
            lambda entry: 2 * entry["tp"],
            lambda entry: 2 * entry["tp"] + entry["fp"] + entry["fn"],
        ),
        Measure(
            "objects_precision",
            "Precision over all objects",
            lambda entry: entry["tp"],
            lambda entry: entry["tp"] + entry["fp"],
        ),
        Measure(
            "objects_recall",
            "Recall over all objects",
            lambda entry: entry["tp"],
            lambda entry: entry["tp"] + entry["fn"],
        ),
    )


def ranked_answers(entry: Mapping[str, Any]) -> list[tuple[float, bool]]:
    """Return the scores of an entry that has `ranked`, and whether each prediction matches an object (IoU 0.5)."""
    return [
        (float(score), bool(int(right) & 1)) for _kind, score, right, passed in entry["ranked"] if not int(passed) & 1
    ]


def class_recall(right: Floats, there: Floats, _answered: Floats) -> Floats:
    """Share of what is there of each class that was answered."""
    return right / there


def class_precision(right: Floats, _there: Floats, answered: Floats) -> Floats:
    """Share of the answers of each class that are right; 0 of a class that was never answered."""
    return np.divide(right, answered, out=np.zeros_like(right), where=answered > 0)


def class_f1(right: Floats, there: Floats, answered: Floats) -> Floats:
    """F1 of each class, which is also Dice's coefficient of its pixels."""
    return 2 * right / (there + answered)


def class_iou(right: Floats, there: Floats, answered: Floats) -> Floats:
    """Overlap of each class: what is right, of what is there or was answered."""
    return right / (there + answered - right)


def once(_entry: Mapping[str, Any]) -> float:
    """Each image counts once."""
    return 1.0


@dataclass(frozen=True)
class ServedTask:
    """A task of training.catalog.task_kinds, by the same name.

    Args:
        data: what the images of a dataset version carry that a model can be judged on: SHAPES, CLASSES.
        scoring: dotted name of a module that keeps to `Scoring`.
        strangers: whether classes that a model does not know belong to what it is judged on.
        measures: figures by which evaluations are compared, see `Measure`. One with the key of a figure of the summary
            is that figure.
        pairs: indices of truth and prediction on an image with their counts; None for a task without `means`.
        means: further figures by which evaluations are compared, see `ClassMean`.
        ranked: average precisions by which evaluations are compared, see `Ranked`.
        right: whether a model made no mistake on an image; None of a task whose answers are not right or wrong.
        scored: the scores of an image's answers that should be probabilities, and whether each is right; None of a task
            without such scores.
        elsewhere: what other tools call it: ends of transformers' architectures, its problem types, Ultralytics' tasks.
    """

    name: str
    data: tuple[str, ...]
    answer: Answer
    scoring: str
    pages: Pages
    strangers: bool = False
    measures: tuple[Measure, ...] = ()
    pairs: Callable[[Mapping[str, Any]], Iterable[tuple[int, int, int]]] | None = None
    means: tuple[ClassMean, ...] = ()
    ranked: tuple[Ranked, ...] = ()
    right: Callable[[Mapping[str, Any]], bool] | None = None
    scored: Callable[[Mapping[str, Any]], Iterable[tuple[float, bool]]] | None = None
    elsewhere: tuple[str, ...] = ()
