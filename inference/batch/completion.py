"""Answers for the images of a version that nobody has annotated yet: the next version, whose other images stay as they
are. `drafts` is for all images alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Refusals
from aiplatform.lib.numbers import finite
from aiplatform.lib.wording import Message
from datasets.formats import stored
from datasets.formats.neutral import CLASSES, NONE, SHAPES
from datasets.formats.writer import StoredImage
from datasets.models import Asset, Dataset, DatasetVersion, Import
from datasets.services import imports, merging, resplitting, rewriting
from inference.batch import drafts, predictions, results
from inference.batch.drafts import CannotDraft
from inference.batch.models import Prediction
from inference.registry import prediction_shapes
from inference.registry.models import ModelVersion

NAME = "completed"


def open_images(version: DatasetVersion) -> list[str]:
    """Return the paths of the images without annotations, in the order of the version."""
    rows = version.assets.filter(content=Asset.Content.UNSEEN).order_by("pk")
    return list(rows.values_list("path", flat=True))


def check(model: ModelVersion, version: DatasetVersion) -> None:
    """Check that the predictions of a model can be annotations of this version.

    Raises:
        CannotPredict, CannotDraft.
    """
    refusals = Refusals()
    with refusals:
        predictions.check_model(model)
    with refusals:
        draft = prediction_shapes.draft_of(model.task)
        if not draft:
            raise CannotDraft(_("Predictions of %(model)s cannot become annotations.") % {"model": model})
        if version.task not in (NONE, draft):
            facts = {"model": model, "version": version, "task": version.get_task_display()}
            raise CannotDraft(_("%(version)s has %(task)s, which does not match the predictions of %(model)s.") % facts)
    refusals.end()


def start(*, prediction: Prediction, version: DatasetVersion, dataset: Dataset, min_score: float, by: User) -> Import:
    """Queue the next version of `dataset`: the images of `version`, answers on those that had no annotation.

    Raises:
        CannotDraft: the job left no answers.
        NotNow: an import of the dataset is open.
    """
    left = results.load(prediction)
    if left.get("done", 0) <= left.get("broken", 0):
        raise CannotDraft(_("The job produced no predictions."))
    facts = {"prediction": prediction.pk, "min_score": min_score}
    with transaction.atomic():
        row = imports.start_from(version=version, rewrite=NAME, facts=facts, annotated=True, by=by, dataset=dataset)
        drafts.record_draft(prediction, row, by, min_score)
    return row


def _write_plan(row: Import) -> None:
    version, prediction = row.source_version, drafts.prediction_of(row)
    if version is None or prediction is None:
        raise CannotDraft(_("The batch prediction, or the version it used, no longer exists."))
    classes = merging.Classes()
    classes.add(version.classes)
    about_classes = [{"id": entry["id"], "name": entry["name"]} for entry in prediction.classes]
    renamed = classes.add(about_classes)
    head = resplitting.coco_head(version)
    described = {number for number, _more in head["categories"]}
    for entry in prediction.classes:
        more = {name: value for name, value in entry.items() if name not in ("id", "name")}
        if more and renamed[entry["id"]] not in described:
            head["categories"].append([renamed[entry["id"]], more])
    head["info"] = head["info"] | {"predicted_by": prediction.model_label}
    images = _complete_images(version, prediction, renamed, finite(row.split.get("min_score")) or 0.0)
    task = prediction_shapes.draft_of(prediction.task)
    rewriting.write(row, version, images, task=task, classes=classes.rows, coco_head=head)


def _complete_images(
    version: DatasetVersion, prediction: Prediction, renamed: Mapping[int, int], min_score: float
) -> Iterator[StoredImage]:
    labelled = prediction_shapes.draft_of(prediction.task) == CLASSES
    answers = drafts.Answers(prediction)
    drawn = max((entry["id"] for entry in stored.objects(version.path)), default=0) if version.task == SHAPES else 0
    for image in resplitting.stored_images(version):
        line = answers.find(image.path)
        if line is None or image.annotated or image.label is not None:
            yield image
            continue
        if labelled:
            label = prediction_shapes.label_of(line, prediction.classes, min_score=min_score)
            image.label = None if label is None else renamed[label]
        else:
            image.annotated = True
            for shape in prediction_shapes.to_coco(line, prediction.classes, min_score=min_score):
                drawn += 1
                answer: dict[str, Any] = {**shape, "category_id": renamed[shape["category_id"]]}
                image.shapes.append(drafts.stored_answer(answer, drawn))
        yield image


def _story(row: Import) -> Message:
    prediction = drafts.prediction_of(row)
    return drafts.drafted(prediction) if prediction else Message()


REWRITE = rewriting.Rewrite(NAME, _write_plan, _story)
