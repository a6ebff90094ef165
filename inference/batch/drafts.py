"""Answers as the first draft of an annotation: the next version of the dataset they are about, or a dataset of its own.

The next version shares the images of the one that was answered and is made by `datasets.services.rewriting`; a dataset
of its own gets copies of the pictures and is imported like anything that is uploaded. Both say which model drew them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import ids, titles
from aiplatform.lib.archive_names import safe_name
from aiplatform.lib.errors import DomainError, Invalid, NotFound, Refusals
from aiplatform.lib.files import atomic_writer
from aiplatform.lib.numbers import finite
from aiplatform.lib.wording import Message, message
from datasets import shapes as kinds
from datasets.formats.neutral import CLASSES, SHAPES
from datasets.formats.writer import StoredImage
from datasets.models import Dataset, DatasetVersion, Import, Upload
from datasets.services import datasets, imports, resplitting, rewriting, server_paths, sources, uploads
from inference.batch import exports, results
from inference.batch import sources as pictures
from inference.batch.models import PredictedData, Prediction
from inference.registry import prediction_shapes
from inference.registry.prediction_lines import Line

NAME = "predicted"


class CannotDraft(DomainError, code="cannot_draft"):
    """No annotation can be made of these answers."""


def can_draft(prediction: Prediction) -> bool:
    """Whether answers of its task are annotations."""
    return bool(prediction_shapes.draft_of(prediction.task))


def make(prediction: Prediction, *, by: User, name: str = "", min_score: float = 0.0) -> PredictedData:
    """Start creating a version whose annotations are the predictions.

    Args:
        by: sees the prediction.
        name: of a dataset of its own; "" makes the next version of the dataset that was answered.
        min_score: answers below it are left out.

    Raises:
        NotAllowed: the user's roles do not allow it.
        CannotDraft: the job has not ended, left no answers, or they are no annotations.
        Invalid: the score is out of range; there is no dataset, or the user may not change it.
        NotNow: an import of the dataset is open.
        NameTaken, TooLarge, DiskFull: see `datasets.create` and `uploads.create`.
    """
    by.require(Action.DATASETS_CREATE if name else Action.DATASETS_EDIT)
    refusals = Refusals()
    with refusals:
        if not can_draft(prediction):
            raise CannotDraft(_("Predictions of this task cannot become annotations. Download them instead."))
    with refusals:
        if not prediction.job.is_final:
            raise CannotDraft(_("Predictions can become annotations after the job has ended."))
        if results.load(prediction).get("done", 0) <= results.load(prediction).get("broken", 0):
            raise CannotDraft(_("The job produced no predictions."))
    with refusals:
        if finite(min_score) is None or not 0 <= min_score <= 1:
            message = _("Enter a number from %(low)s to %(high)s.") % {"low": "0", "high": "1"}
            raise Invalid(message, field="min_score")
    with refusals:
        if name:
            datasets.check(owner=by, name=name)
        else:
            _own_version(prediction, by)
    refusals.end()
    return _as_dataset(prediction, by, name, min_score) if name else _as_version(prediction, by, min_score)


def _own_version(prediction: Prediction, by: User) -> DatasetVersion:
    """Return the version that was predicted, if this user may change its dataset."""
    if prediction.data is None:
        message = _("These images do not belong to a dataset. Enter a name to create one from them.")
        raise Invalid(message, field="name")
    if not Dataset.objects.editable_by(by).filter(pk=prediction.data.dataset_id).exists():
        message = _("You cannot edit %(dataset)s. Enter a name to create a new dataset from the predictions.")
        raise Invalid(message % {"dataset": prediction.data.dataset}, field="name")
    return prediction.data


def may_extend(prediction: Prediction, by: User) -> bool:
    """Whether the user may make the next version of the dataset that was answered."""
    data = prediction.data
    own = data is not None and Dataset.objects.editable_by(by).filter(pk=data.dataset_id).exists()
    return own and by.can(Action.DATASETS_EDIT)


@transaction.atomic
def _as_version(prediction: Prediction, by: User, min_score: float) -> PredictedData:
    version = _own_version(prediction, by)
    facts = {"prediction": prediction.pk, "min_score": min_score}
    row = imports.start_from(version=version, rewrite=NAME, facts=facts, annotated=True, by=by)
    return record_draft(prediction, row, by, min_score)


def _as_dataset(prediction: Prediction, by: User, name: str, min_score: float) -> PredictedData:
    root = root_of(prediction, by)
    length = sum(_bytes(root / line["path"]) for line in results.lines(prediction) if "error" not in line)
    metadata = {
        sources.KEY: SOURCE.name, "filename": f"prediction-{prediction.pk}", "prediction": str(prediction.pk),
        "min_score": str(min_score),
    }  # fmt: skip
    with transaction.atomic():
        upload = uploads.create(owner=by, length=length, metadata=metadata)
        Upload.objects.filter(pk=upload.pk).update(state=Upload.State.DONE)  # the files are on the server already
        dataset = datasets.create(owner=by, name=name, intro="")
        row = imports.start(dataset=dataset, by=by, upload_id=upload.pk, agreed=True)
        return record_draft(prediction, row, by, min_score)


def record_draft(prediction: Prediction, row: Import, by: User, min_score: float) -> PredictedData:
    """Record the import that is created from the predictions."""
    return PredictedData.objects.create(
        prediction=prediction, dataset=row.dataset, intake=row, min_score=min_score, by=by
    )


def _bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # removed meanwhile
        return 0


def root_of(prediction: Prediction, user: User) -> Path:
    """The folder of its pictures, for who may see them.

    Raises:
        NotFound: the dataset was deleted, or the user may not see it.
        PathRefused, PathMissing: the same of a folder on the server.
    """
    if prediction.folder:
        return pictures.folder(prediction.folder, by=user)
    version = DatasetVersion.objects.visible_to(user).filter(pk=prediction.data_id or 0).first()
    if version is None:
        raise NotFound(_("The images of this prediction were deleted, or you cannot access them."))
    return version.images_path


def name_for(prediction: Prediction, user: User) -> str:
    """Return a free name of a dataset as initial value."""
    taken = set(Dataset.objects.visible_to(user).values_list("name", flat=True))
    return titles.derive_name(prediction.job.name, taken=taken, room=datasets.NAME_MAX)


def _write_plan(row: Import) -> None:
    """Write the images of the version with predictions as annotations; those without one are unannotated."""
    version, prediction = row.source_version, prediction_of(row)
    if version is None or prediction is None:
        raise CannotDraft(_("The batch prediction, or the version it used, no longer exists."))
    min_score = finite(row.split.get("min_score")) or 0.0
    labelled = prediction_shapes.draft_of(prediction.task) == CLASSES
    images = _annotated(version, prediction, min_score, labelled=labelled)
    plan: dict[str, Any] = {
        "task": CLASSES if labelled else SHAPES,
        "classes": [{"id": entry["id"], "name": entry["name"], "supercategory": ""} for entry in prediction.classes],
        "coco_head": {
            "info": {"predicted_by": prediction.model_label},
            "licenses": [],
            "categories": [
                [entry["id"], more]
                for entry in prediction.classes
                if (more := {name: value for name, value in entry.items() if name not in ("id", "name")})
            ],
        },
    }
    rewriting.write(row, version, images, **plan)


def _annotated(
    version: DatasetVersion, prediction: Prediction, min_score: float, *, labelled: bool
) -> Iterator[StoredImage]:
    answers = Answers(prediction)
    number = 0
    for image in resplitting.stored_images(version):
        line = answers.find(image.path)
        image.shapes, image.label, image.annotated = [], None, line is not None and not labelled
        if line is not None and labelled:
            image.label = prediction_shapes.label_of(line, prediction.classes, min_score=min_score)
            image.annotated = image.label is not None
        elif line is not None:
            for shape in prediction_shapes.to_coco(line, prediction.classes, min_score=min_score):
                number += 1
                image.shapes.append(stored_answer(shape, number))
        yield image


def stored_answer(shape: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a prediction as an annotation of a version, its score among the attributes."""
    fields = {name: value for name, value in shape.items() if name != "score"}
    shown = {"id": number, **fields, "attributes": {"score": shape["score"]}}
    return shown | {"kind": kinds.of_stored(shown).name}


class Answers:
    """The predictions by the paths of images, which are requested in the order of the version."""

    def __init__(self, prediction: Prediction) -> None:
        good = (line for line in results.lines(prediction) if "error" not in line)
        # a list has an order of its own; it is short enough to be held
        self._held = {line["path"]: line for line in good} if prediction.is_listed else {}
        self._rest = iter(good)
        self._next: Line | None = next(self._rest, None)

    def find(self, path: str) -> Line | None:
        """Return the predictions of an image; None if there are none."""
        if path in self._held:
            return self._held[path]
        line = self._next
        if line is None or line["path"] != path:
            return None
        self._next = next(self._rest, None)
        return line


def prediction_of(row: Import) -> Prediction | None:
    """Return the prediction that an import uses; None if it was deleted."""
    return Prediction.objects.select_related("job").filter(pk=row.split.get("prediction") or 0).first()


def _story(row: Import) -> Message:
    prediction = prediction_of(row)
    return drafted(prediction) if prediction else Message()


def drafted(prediction: Prediction) -> Message:
    """What a version says of the model that drew it."""
    return message("prediction.draft", model=prediction.model_label, name=prediction.job.name)


def _files(user: User, metadata: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    """Yield the predicted images, and a COCO file; images with one class each are in folders of its name."""
    prediction = _find_prediction(metadata, user)
    if prediction is None:
        raise NotFound(_("The batch prediction no longer exists."))
    root = root_of(prediction, user)
    if prediction.folder:
        answered = (line["path"] for line in results.lines(prediction) if "error" not in line)
        server_paths.require_files(root, answered, by=user)
    min_score = float(metadata.get("min_score") or 0)
    labelled = prediction_shapes.draft_of(prediction.task) == CLASSES
    names = {entry["id"]: safe_name(str(entry["name"]).replace("/", "_")) for entry in prediction.classes}
    for line in results.lines(prediction):
        if "error" in line:
            continue
        if not labelled:
            yield root, line["path"], f"images/{line['path']}"
        elif (label := prediction_shapes.label_of(line, prediction.classes, min_score=min_score)) is not None:
            yield root, line["path"], f"{names[label]}/{line['n'] + 1:06d}_{PurePosixPath(line['path']).name}"
    if not labelled:
        draft = prediction.listing.parent / f"draft-{min_score:g}.json"
        with atomic_writer(draft) as out:
            out.writelines(exports.coco(prediction, min_score=min_score))
        yield draft.parent, draft.name, "annotations.json"


def _find_prediction(metadata: Mapping[str, str], user: User) -> Prediction | None:
    number = ids.number(metadata.get("prediction", "")) or 0
    prediction: Prediction | None = Prediction.objects.visible_to(user).select_related("job").filter(pk=number).first()
    return prediction


def _story_of(metadata: Mapping[str, str]) -> Message:
    number = ids.number(metadata.get("prediction", "")) or 0
    prediction = Prediction.objects.select_related("job").filter(pk=number).first()
    return drafted(prediction) if prediction else Message()


SOURCE = sources.Source("prediction", _files, _story_of)
REWRITE = rewriting.Rewrite(NAME, _write_plan, _story)
