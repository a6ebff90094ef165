"""Store edits of shapes: each once, none over another person's, all of a request or none.

The browser keeps an edit until it is answered for by its own id, so the same edit may come again:
it is recognised in the journal and answered as before. An edit names the revision of the shape it
was made on; when the shape has moved on, both versions go back and a person decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F, TextField
from django.db.models.functions import Cast
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError
from annotation.models import ImageTask, LabelClass, Shape, ShapeEvent
from annotation.models.projects import ANY_SHAPE
from annotation.services import review, sets
from datasets import shapes as kinds

MAX_EDITS = 500
MAX_SHAPES = 50_000
MAX_REV = 2**31 - 1


class BadEdit(DomainError, code="bad_edit", status=400):
    """An edit is malformed; the whole request is refused and nothing of it is stored.

    The answer's facts name the edit (`event`) and the place in the request (`path`).
    """


class WrongShapeForClass(BadEdit, code="wrong_shape_for_class"):
    """A class that is drawn as one kind of shape was given another kind."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit as it was requested. `label` and `rings` are None for a deletion."""

    id: uuid.UUID
    shape: uuid.UUID
    base: int  # revision it was made on; 0 for a shape the editor has just drawn
    kind: str = ""
    label: int | None = None
    rings: list[list[float]] | None = None

    @property
    def deletes(self) -> bool:
        return self.rings is None


@dataclass(slots=True)
class Outcome:
    """The result of each edit, in order, and the image's revision afterwards."""

    rev: int
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def conflicts(self) -> int:
        return sum(result["status"] == "conflict" for result in self.results)


def as_dict(shape: Shape) -> dict[str, Any]:
    """A shape as browser and API read it."""
    return {
        "id": str(shape.uuid),
        "number": shape.pk,
        "kind": shape.kind,
        "label": shape.label_id,
        "rings": shape.rings,
        "rev": shape.rev,
        "deleted": shape.deleted,
        "source": shape.source,
    }


def all_shapes_json(task: ImageTask) -> str:
    """All shapes of an image as JSON {"rev", "shapes", "deleted": [{"id", "rev"}]}.

    Points go out as the database holds them: for ten thousand polygons, reading them into Python
    and writing them again would take ten times as long as all_shapes_json else.
    """
    rows = task.shapes.order_by("pk").annotate(text=Cast("rings", TextField()))
    shapes, gone = [], []
    columns = rows.values_list("pk", "uuid", "kind", "label_id", "text", "rev", "source", "deleted")
    for pk, name, kind, label, rings, rev, source, deleted in columns.iterator(chunk_size=2_000):
        if deleted:
            gone.append(f'{{"id":"{name}","rev":{rev}}}')
        else:
            shapes.append(
                f'{{"id":"{name}","number":{pk},"kind":"{kind}","label":{label},"rings":{rings},"rev":{rev},'
                f'"deleted":false,"source":"{source}"}}'
            )
    return f'{{"rev":{task.rev},"shapes":[{",".join(shapes)}],"deleted":[{",".join(gone)}]}}'


def apply(*, task: ImageTask, edits: Sequence[Edit], by: User) -> Outcome:
    """Store edits of one image, in the order they were made.

    Edits that conflict are left alone, the others of the request are stored: work on one shape
    never waits for a quarrel about another.

    Raises:
        NotAllowed: this person may only look at the project.
        BadEdit: outside the image, degenerate, too large, or of a kind or class that is not there.
        WrongShapeForClass: a new object of a class that is drawn otherwise, or one that was given such a class.
        ImageAccepted: a reviewer accepted the image, and this person does not review.
    """
    review.require_drawing(by, task)
    _require_meaning(task, edits)
    with transaction.atomic():
        task = ImageTask.objects.select_for_update().select_related("asset").get(pk=task.pk)
        return _store(task, edits, by)


def _store(task: ImageTask, edits: Sequence[Edit], by: User) -> Outcome:
    stored = {event.uuid: event for event in ShapeEvent.objects.filter(task=task, uuid__in=[edit.id for edit in edits])}
    if any(edit.id not in stored for edit in edits):  # what was stored before is answered as before
        review.require_open(by, task)
    shapes = {shape.uuid: shape for shape in Shape.objects.filter(task=task, uuid__in={edit.shape for edit in edits})}
    outcome = Outcome(rev=task.rev)
    journal: list[ShapeEvent] = []
    touched: dict[uuid.UUID, Shape] = {}
    count = task.shape_count
    moment = now()
    for edit in edits:
        answer: dict[str, Any] = {"id": str(edit.id), "shape": str(edit.shape), "status": "stored"}
        outcome.results.append(answer)
        before = shapes.get(edit.shape)
        if edit.id in stored:  # its answer was lost on the way
            answer["rev"] = stored[edit.id].rev
            continue
        if edit.base != (before.rev if before else 0) or (before is None and edit.deletes):
            answer["status"] = "conflict"
            answer["theirs"] = as_dict(before) if before else {"id": str(edit.shape), "rev": 0, "deleted": True}
            continue
        count += _change_in_count(before, edit)
        shape = before or Shape(task=task, uuid=edit.shape, rev=0, created_by=by, created_at=moment)
        _write(shape, edit, by, moment)
        shapes[edit.shape] = touched[edit.shape] = shape
        event = ShapeEvent(
            task=task, uuid=edit.id, shape=edit.shape, rev=shape.rev, by=by, at=moment,
            op=ShapeEvent.Op.DELETE if edit.deletes else ShapeEvent.Op.PUT,
            data=None if edit.deletes else {"kind": shape.kind, "label": shape.label_id, "rings": shape.rings},
        )  # fmt: skip
        journal.append(event)
        stored[edit.id] = event
        answer["rev"] = shape.rev
    if count > MAX_SHAPES:
        raise BadEdit(_("An image can have at most 50,000 shapes."))
    if journal:
        _save(task, journal, list(touched.values()), count, by)
        outcome.rev += len(journal)
    return outcome


def _change_in_count(before: Shape | None, edit: Edit) -> int:
    was = before is not None and not before.deleted
    return int(not edit.deletes) - int(was)


def _write(shape: Shape, edit: Edit, by: User, moment: Any) -> None:
    shape.rev += 1
    shape.deleted = edit.deletes
    shape.updated_by, shape.updated_at = by, moment
    if edit.rings is None or edit.label is None:
        return
    kind = kinds.get(edit.kind)
    rings = kind.cleaned(edit.rings)
    shape.kind, shape.label_id, shape.rings = kind.name, edit.label, rings
    shape.x, shape.y, shape.width, shape.height = kind.extents(rings)
    shape.area = kind.area(rings)


def _save(task: ImageTask, journal: list[ShapeEvent], shapes: list[Shape], count: int, by: User) -> None:
    drawn = [shape for shape in shapes if shape.pk is None]
    changed = [shape for shape in shapes if shape.pk is not None]
    Shape.objects.bulk_create(drawn)
    Shape.objects.bulk_update(
        changed,
        ["kind", "label", "rings", "x", "y", "width", "height", "area", "rev", "deleted", "updated_by", "updated_at"],
        batch_size=100,
    )
    ShapeEvent.objects.bulk_create(journal)
    sets.revive({shape.label_id for shape in shapes if not shape.deleted})
    state = task.state
    done = {ImageTask.State.SUBMITTED, ImageTask.State.ACCEPTED}
    if state == ImageTask.State.NEW or (state in done and count == 0):
        state = ImageTask.State.IN_PROGRESS  # a finished image that lost its last shape wants another look
    ImageTask.objects.filter(pk=task.pk).update(
        rev=F("rev") + len(journal), shape_count=count, state=state, empty=False, updated_at=now(), updated_by=by
    )


def _require_meaning(task: ImageTask, edits: Sequence[Edit]) -> None:
    """Refuse edits of unknown kinds and classes, and shapes their kind finds flaws in.

    Raises:
        BadEdit: naming the first one.
    """
    labels = {label.pk: label for label in LabelClass.objects.filter(set=task.set_id)}
    for number, edit in enumerate(edits):
        if edit.deletes:
            continue
        name, path = str(edit.id), f"events[{number}]"
        kind = kinds.find(edit.kind)
        if kind is None or not kind.drawable:
            names = ", ".join(dict(kinds.choices()))
            raise BadEdit(_("A shape must be one of: %(kinds)s.") % {"kinds": names}, event=name, path=f"{path}.kind")
        if edit.label not in labels:
            raise BadEdit(_("The dataset does not have this class."), event=name, path=f"{path}.label")
        flaw = kind.flaw(edit.rings, width=task.asset.width, height=task.asset.height)
        if flaw is not None:
            raise BadEdit(flaw.text, event=name, path=f"{path}.rings{flaw.path}", flaw=flaw.code)
    _require_kinds_of_classes(task, edits, labels)


def _require_kinds_of_classes(task: ImageTask, edits: Sequence[Edit], labels: Mapping[int, LabelClass]) -> None:
    """Refuse shapes of a kind that their class is not drawn as.

    A shape that has been of this kind and class stays changeable: the class may have been another one's then.

    Raises:
        WrongShapeForClass: naming the first one.
    """
    drawn = [(number, edit, labels[edit.label]) for number, edit in enumerate(edits) if edit.label is not None]
    odd = [(number, edit, label) for number, edit, label in drawn if label.shape not in {edit.kind, ANY_SHAPE}]
    if not odd:
        return
    rows = Shape.objects.filter(task=task, uuid__in=[edit.shape for _number, edit, _label in odd])
    stored = {(row.uuid, row.kind, row.label_id) for row in rows}
    for number, edit, label in odd:
        if (edit.shape, edit.kind, edit.label) not in stored:
            text = _("The class %(class)s requires the shape %(kind)s. Use that shape, or choose another class.")
            facts = {"class": label.name, "kind": label.get_shape_display()}
            raise WrongShapeForClass(text % facts, event=str(edit.id), path=f"events[{number}].kind")
