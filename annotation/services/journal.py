"""Take edits of shapes: each once, none over another person's, nothing half.

The browser keeps an edit until it is answered for by its own id, so the same edit may come again:
it is recognised in the journal and answered as before. An edit names the revision of the shape it
was made on; when the shape has moved on, both versions go back and a person decides.
"""

from __future__ import annotations

import math
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
from annotation import geometry
from annotation.models import ImageTask, LabelClass, Shape, ShapeEvent
from annotation.services import review, sets

MAX_EVENTS = 500
MAX_SHAPES = 50_000
MAX_REV = 2**31 - 1


class BadEdit(DomainError):
    """An edit that means nothing; the whole request is refused and nothing of it is kept.

    The answer's facts name the edit (`event`) and the place in the request (`path`).
    """

    code = "bad_edit"
    status = 400


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit, checked. `label` and `rings` are None for a deletion."""

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
    """What became of the edits, in their order, and the image's revision afterwards."""

    rev: int
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def conflicts(self) -> int:
        return sum(result["status"] == "conflict" for result in self.results)


def as_dict(shape: Shape) -> dict[str, Any]:
    """A shape as the browser and the API know it."""
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


def everything(task: ImageTask) -> str:
    """All shapes of an image as JSON {"rev", "shapes", "deleted": [{"id", "rev"}]}.

    Points go out as the database holds them: for ten thousand polygons, reading them into Python
    and writing them again would take ten times as long as everything else.
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


def apply(*, task: ImageTask, events: Sequence[Mapping[str, Any]], by: User) -> Outcome:
    """Store edits of one image.

    Edits that conflict are left alone, the others of the request are stored: work on one shape
    never waits for a quarrel about another.

    Args:
        events: [{"id", "shape": UUIDs, "op": "put" or "delete", "base": revision, and for a put
            "kind", "label", "rings"}, …] in the order they were made; at most 500.

    Raises:
        NotAllowed: this person may only look at the project.
        BadEdit: malformed, outside the image, degenerate, too large, or of a class the set has not.
        ImageAccepted: a reviewer accepted the image, and this person does not review.
    """
    review.require_drawing(by, task)
    edits = _checked(task, events)
    with transaction.atomic():
        task = ImageTask.objects.select_for_update().select_related("asset").get(pk=task.pk)
        return _store(task, edits, by)


def _store(task: ImageTask, edits: list[Edit], by: User) -> Outcome:
    known = {event.uuid: event for event in ShapeEvent.objects.filter(task=task, uuid__in=[edit.id for edit in edits])}
    if any(edit.id not in known for edit in edits):  # what was stored before is answered as before
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
        if edit.id in known:  # its answer was lost on the way
            answer["rev"] = known[edit.id].rev
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
            data=None if edit.deletes else {"kind": edit.kind, "label": edit.label, "rings": edit.rings},
        )  # fmt: skip
        journal.append(event)
        known[edit.id] = event
        answer["rev"] = shape.rev
    if count > MAX_SHAPES:
        raise BadEdit(_("An image holds at most 50,000 shapes."))
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
    box = geometry.extents(edit.rings)
    shape.kind, shape.label_id, shape.rings = edit.kind, edit.label, edit.rings
    shape.x, shape.y, shape.width, shape.height = box
    shape.area = geometry.area(edit.rings)


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


def _checked(task: ImageTask, events: Sequence[Mapping[str, Any]]) -> list[Edit]:
    if not isinstance(events, list) or not 1 <= len(events) <= MAX_EVENTS:
        raise BadEdit(_("Send 1 to 500 edits at a time."), path="events")
    labels = set(LabelClass.objects.filter(set=task.set_id).values_list("pk", flat=True))
    return [_one(task, event, f"events[{n}]", labels) for n, event in enumerate(events)]


def _one(task: ImageTask, event: Any, path: str, labels: set[int]) -> Edit:
    if not isinstance(event, Mapping):
        raise BadEdit(_("An edit is an object."), path=path)
    ids = {name: _uuid(event.get(name), f"{path}.{name}") for name in ("id", "shape")}
    name = str(ids["id"])
    base = event.get("base")
    if type(base) is not int or not 0 <= base < MAX_REV:
        raise BadEdit(_("The revision an edit was made on is a whole number."), event=name, path=f"{path}.base")
    if event.get("op") == "delete":
        return Edit(ids["id"], ids["shape"], base)
    if event.get("op") != "put":
        raise BadEdit(_("An edit is a put or a delete."), event=name, path=f"{path}.op")
    kind, label, rings = event.get("kind"), event.get("label"), event.get("rings")
    if kind not in Shape.Kind.values:
        raise BadEdit(_("A shape is a box or a polygon."), event=name, path=f"{path}.kind")
    if type(label) is not int or label not in labels:
        raise BadEdit(_("This dataset has no such class."), event=name, path=f"{path}.label")
    flaw = geometry.flaw_of(rings, width=task.asset.width, height=task.asset.height)
    if flaw is not None:
        where = _flaw_path(rings, flaw, f"{path}.rings")
        raise BadEdit(_(flaw.text), event=name, path=where, flaw=flaw.code)
    kept = [[round(float(value), 4) for value in ring] for ring in rings or []]
    if kind == Shape.Kind.BBOX and not (len(kept) == 1 and geometry.is_box(kept[0])):
        raise BadEdit(_("A box has four corners, clockwise from the top left."), event=name, path=f"{path}.rings")
    return Edit(ids["id"], ids["shape"], base, kind, label, kept)


def _flaw_path(rings: Any, flaw: geometry.Flaw, path: str) -> str:
    """Where exactly: down to the number for one that is not finite."""
    if flaw.code in {"not_finite", "not_numbers"}:
        for place, value in enumerate(rings[flaw.ring]):
            if type(value) not in (int, float) or not math.isfinite(value):
                return f"{path}[{flaw.ring}][{place}]"
    return f"{path}[{flaw.ring}]"


def _uuid(value: Any, path: str) -> uuid.UUID:
    try:
        return uuid.UUID(value)
    except (TypeError, ValueError, AttributeError):
        raise BadEdit(_("Edits and shapes are named by UUIDs."), path=path) from None
