"""Answers as the first draft of an annotation: the next version of the dataset they are about, or a dataset of its own.

The next version shares the images of the one that was answered and is made by `datasets.services.rewriting`; a dataset
of its own gets copies of the pictures and is imported like anything that is uploaded. Both say which model drew them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

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


class CannotDraft(DomainError):
    """No annotation can be made of these answers."""

    code: ClassVar[str] = "cannot_draft"


def can_draft(prediction: Prediction) -> bool:
    """Whether answers of its task are annotations."""
    return bool(prediction_shapes.draft_of(prediction.task))


def make(prediction: Prediction, *, by: User, name: str = "", min_score: float = 0.0) -> PredictedData:
    """Begin to make a version whose annotations are the answers.

    Args:
        by: sees the prediction.
        name: of a dataset of its own; "" makes the next version of the dataset that was answered.
        min_score: answers below it are left out.

    Raises:
        NotAllowed: this person's roles let nobody make it.
        CannotDraft: the job has not ended, left no answers, or they are no annotations.
        Invalid: the score is out of range; there is no dataset, or it is not this person's to change.
        NotNow: an import of the dataset is open.
        NameTaken, TooLarge, DiskFull: see `datasets.create` and `uploads.create`.
    """
    by.require(Action.DATASETS_CREATE if name else Action.DATASETS_EDIT)
    found = Refusals()
    with found:
        if not can_draft(prediction):
            raise CannotDraft(_("Answers of this task are no annotations. Download them instead."))
    with found:
        if not prediction.job.is_final:
            raise CannotDraft(_("Its answers become annotations once it has ended."))
        if results.load(prediction).get("done", 0) <= results.load(prediction).get("broken", 0):
            raise CannotDraft(_("It left no answers."))
    with found:
        if finite(min_score) is None or not 0 <= min_score <= 1:
            said = _("Give a number from %(low)s to %(high)s.") % {"low": "0", "high": "1"}
            raise Invalid(said, field="min_score")
    with found:
        if name:
            datasets.check(owner=by, name=name)
        else:
            _own_version(prediction, by)
    found.end()
    return _as_dataset(prediction, by, name, min_score) if name else _as_version(prediction, by, min_score)


def _own_version(prediction: Prediction, by: User) -> DatasetVersion:
    """The version that was answered, where its dataset is this person's to change."""
    if prediction.data is None:
        said = _("These pictures belong to no dataset. Give a name, and they become one.")
        raise Invalid(said, field="name")
    if not Dataset.objects.editable_by(by).filter(pk=prediction.data.dataset_id).exists():
        said = _("%(dataset)s is not yours to change. Give a name, and the answers become a dataset of your own.")
        raise Invalid(said % {"dataset": prediction.data.dataset}, field="name")
    return prediction.data


def may_extend(prediction: Prediction, by: User) -> bool:
    """Whether this person may make the next version of the dataset that was answered."""
    data = prediction.data
    own = data is not None and Dataset.objects.editable_by(by).filter(pk=data.dataset_id).exists()
    return own and by.can(Action.DATASETS_EDIT)


@transaction.atomic
def _as_version(prediction: Prediction, by: User, min_score: float) -> PredictedData:
    version = _own_version(prediction, by)
    facts = {"prediction": prediction.pk, "min_score": min_score}
    row = imports.start_from(version=version, rewrite=NAME, facts=facts, annotated=True, by=by)
    return kept(prediction, row, by, min_score)


def _as_dataset(prediction: Prediction, by: User, name: str, min_score: float) -> PredictedData:
    root = root_of(prediction, by)
    length = sum(_bytes(root / line["path"]) for line in results.lines(prediction) if "error" not in line)
    about = {
        sources.KEY: SOURCE.name, "filename": f"prediction-{prediction.pk}", "prediction": str(prediction.pk),
        "min_score": str(min_score),
    }  # fmt: skip
    with transaction.atomic():
        upload = uploads.create(owner=by, length=length, metadata=about)
        Upload.objects.filter(pk=upload.pk).update(state=Upload.State.DONE)  # nothing is sent: it lies here
        dataset = datasets.create(owner=by, name=name, intro="")
        row = imports.start(dataset=dataset, by=by, upload_id=upload.pk, agreed=True)
        return kept(prediction, row, by, min_score)


def kept(prediction: Prediction, row: Import, by: User, min_score: float) -> PredictedData:
    """Note what is made of the answers."""
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
        NotFound: the dataset is gone, or not theirs to see.
        PathRefused, PathMissing: the same of a folder on the server.
    """
    if prediction.folder:
        return pictures.folder(prediction.folder, by=user)
    version = DatasetVersion.objects.visible_to(user).filter(pk=prediction.data_id or 0).first()
    if version is None:
        raise NotFound(_("The pictures of this prediction are gone, or are not yours to see."))
    return version.images_path


def name_for(prediction: Prediction, user: User) -> str:
    """A free name of a dataset, to begin with."""
    taken = set(Dataset.objects.visible_to(user).values_list("name", flat=True))
    return titles.derive_name(prediction.job.name, taken=taken, room=datasets.NAME_MAX)


def _write_plan(row: Import) -> None:
    """The images of the version with the answers as their annotations; those without an answer are not annotated."""
    version, prediction = row.source_version, prediction_of(row)
    if version is None or prediction is None:
        raise CannotDraft(_("The prediction, or the version that it answered, is gone."))
    min_score = finite(row.split.get("min_score")) or 0.0
    labelled = prediction_shapes.draft_of(prediction.task) == CLASSES
    images = _annotated(version, prediction, min_score, labelled=labelled)
    about: dict[str, Any] = {
        "task": CLASSES if labelled else SHAPES,
        "classes": [{"id": one["id"], "name": one["name"], "supercategory": ""} for one in prediction.classes],
        "coco_head": {
            "info": {"predicted_by": prediction.model_label},
            "licenses": [],
            "categories": [
                [one["id"], more]
                for one in prediction.classes
                if (more := {name: value for name, value in one.items() if name not in ("id", "name")})
            ],
        },
    }
    rewriting.write(row, version, images, **about)


def _annotated(
    version: DatasetVersion, prediction: Prediction, min_score: float, *, labelled: bool
) -> Iterator[StoredImage]:
    said = Answers(prediction)
    number = 0
    for image in resplitting.stored_images(version):
        line = said.of(image.path)
        image.shapes, image.label, image.annotated = [], None, line is not None and not labelled
        if line is not None and labelled:
            image.label = prediction_shapes.label_of(line, prediction.classes, min_score=min_score)
            image.annotated = image.label is not None
        elif line is not None:
            for found in prediction_shapes.shapes(line, prediction.classes, min_score=min_score):
                number += 1
                image.shapes.append(stored_answer(found, number))
        yield image


def stored_answer(found: dict[str, Any], number: int) -> dict[str, Any]:
    """An answer as an annotation of a version, its score among the attributes."""
    kept = {name: value for name, value in found.items() if name != "score"}
    shown = {"id": number, **kept, "attributes": {"score": found["score"]}}
    return shown | {"kind": kinds.of_stored(shown).name}


class Answers:
    """The answers by the paths of pictures that are asked for in the order of the version."""

    def __init__(self, prediction: Prediction) -> None:
        good = (line for line in results.lines(prediction) if "error" not in line)
        # a list has an order of its own; it is short enough to be held
        self._held = {line["path"]: line for line in good} if prediction.is_listed else {}
        self._rest = iter(good)
        self._next: Line | None = next(self._rest, None)

    def of(self, path: str) -> Line | None:
        """The answer to a picture; None where there is none."""
        if path in self._held:
            return self._held[path]
        line = self._next
        if line is None or line["path"] != path:
            return None
        self._next = next(self._rest, None)
        return line


def prediction_of(row: Import) -> Prediction | None:
    """The prediction whose answers an import takes; None where it is gone."""
    return Prediction.objects.select_related("job").filter(pk=row.split.get("prediction") or 0).first()


def _story(row: Import) -> Message:
    prediction = prediction_of(row)
    return drafted(prediction) if prediction else Message()


def drafted(prediction: Prediction) -> Message:
    """What a version says of the model that drew it."""
    return message("prediction.draft", model=prediction.model_label, name=prediction.job.name)


def _files(user: User, metadata: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    """The pictures that were answered, and a COCO file; pictures with one class each lie in folders of its name."""
    prediction = _named(metadata, user)
    if prediction is None:
        raise NotFound(_("The prediction is gone."))
    root = root_of(prediction, user)
    if prediction.folder:
        answered = (line["path"] for line in results.lines(prediction) if "error" not in line)
        server_paths.require_files(root, answered, by=user)
    min_score = float(metadata.get("min_score") or 0)
    labelled = prediction_shapes.draft_of(prediction.task) == CLASSES
    names = {one["id"]: safe_name(str(one["name"]).replace("/", "_")) for one in prediction.classes}
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


def _named(metadata: Mapping[str, str], user: User) -> Prediction | None:
    number = ids.number(metadata.get("prediction", "")) or 0
    found: Prediction | None = Prediction.objects.visible_to(user).select_related("job").filter(pk=number).first()
    return found


def _story_of(metadata: Mapping[str, str]) -> Message:
    number = ids.number(metadata.get("prediction", "")) or 0
    prediction = Prediction.objects.select_related("job").filter(pk=number).first()
    return drafted(prediction) if prediction else Message()


SOURCE = sources.Source("prediction", _files, _story_of)
REWRITE = rewriting.Rewrite(NAME, _write_plan, _story)
