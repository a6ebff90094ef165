"""Make a composed version: copies of its parts' files, and a model.json that says how they answer together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import files, titles
from aiplatform.lib.errors import Invalid, Refusals
from inference.kit.model_io.spec import CHAIN, ENSEMBLE
from inference.kit.models import model_json
from inference.kit.models.graph_json import METHODS
from inference.registry import registration as registry
from inference.registry.composition import compatibility
from inference.registry.composition.descriptions import Recipe, describe
from inference.registry.composition.models import VersionPart
from inference.registry.formats.folder import ModelContents
from inference.registry.models import Model, ModelVersion, Visibility
from inference.registry.pretrained_weights import full_name

DESCRIPTION, MAX_DESCRIPTION_BYTES = "model.json", 20 << 20
MAX_NAME = 100


def compose(
    *,
    user: User,
    kind: str,
    parts: Sequence[ModelVersion],
    weights: Sequence[float] = (),
    way: str = "",
    iou: float = 0.55,
    margin: float | None = None,
    min_score: float = 0.3,
    only: Sequence[str] = (),
    name: str = "",
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    model: Model | None = None,
    made: Callable[[ModelVersion], object] = lambda _version: None,
) -> ModelVersion:
    """Create a version that combines the predictions of other versions.

    Args:
        kind: ENSEMBLE, or CHAIN: a detector, and a classifier or tagger that looks at each object it found.
        parts: in their order; the user may use all of them.
        weights: of an ensemble's parts; none: all count alike.
        way: how answers are joined, one of WAYS; "" takes the usual one of the task.
        iou: overlap from which boxes of an ensemble are of one object.
        margin: what is cut out around a box, as a share of its sides; None: as the second part learned it.
        min_score: of the detector's boxes, below which they are left out.
        only: classes of the detector whose objects are looked at; the others stay as they were found. None: all.
        name: of the new model; "" makes one. Not used with `model`.
        model: add a version to this one.
        made: called with the version in the transaction that makes it.

    Raises:
        CannotCompose, Archived, Invalid, NameTaken: all that is wrong, at once.
    """
    refusals = Refusals()
    recipe = Recipe(kind, tuple(weights), way or _usual_way(parts), iou, margin or 0.0, min_score, tuple(only))
    with refusals:
        compatibility.check(recipe, parts)
    with refusals:
        if model is None:
            name = name or _name_for(user, kind, parts)
            registry.check_name(user=user, name=name)
    with refusals:
        if visibility not in Visibility.values:
            raise Invalid(_("The visibility of a model must be private or public."), field="visibility")
    refusals.end()
    documents = [_description(part) for part in parts]
    if margin is None and kind == CHAIN:
        recipe = Recipe(kind, (), "", iou, _margin(documents[1]), min_score, tuple(only))
    labels = [full_name(part) for part in parts]
    try:
        document = describe(recipe, documents, labels)
    except model_json.BadModel as exc:  # what only the files say, such as that one looks at objects
        raise compatibility.CannotCompose(str(exc)) from None
    return registry.register(
        user=user,
        bring=partial(_write_folder, parts, document),
        read=partial(_content, document, parts),
        origin=registry.Origin(ModelVersion.Source.COMPOSED),
        name=name,
        description=description,
        visibility=visibility,
        model=model,
        made=partial(_store_parts, parts, recipe, made),
    )


def _usual_way(parts: Sequence[ModelVersion]) -> str:
    return METHODS.get(parts[0].task, ("",))[0] if parts else ""


def _name_for(user: User, kind: str, parts: Sequence[ModelVersion]) -> str:
    taken = set(Model.objects.filter(owner=user).values_list("name", flat=True))
    first = parts[0].model.name if parts else ""
    return titles.derive_name(f"{first} {kind}", taken=taken, room=MAX_NAME)


def _description(part: ModelVersion) -> Mapping[str, Any]:
    """Return the model.json of a part as stored in the registry."""
    try:
        descriptor = files.open_beneath(part.path, DESCRIPTION)
    except FileNotFoundError:
        raise _gone(part) from None
    with os.fdopen(descriptor, "rb") as file:
        document: Mapping[str, Any] = json.loads(file.read(MAX_DESCRIPTION_BYTES))
        return document


def _gone(part: ModelVersion) -> compatibility.CannotCompose:
    return compatibility.CannotCompose(
        _("The files of %(model)s are missing. Choose another version.") % {"model": part}
    )


def _margin(second: Mapping[str, Any]) -> float:
    """Return the margin around a box that the second part of a chain was trained with."""
    input_spec = second.get("input")
    return float(input_spec.get("margin", 0.0)) if isinstance(input_spec, Mapping) else 0.0


def _write_folder(parts: Sequence[ModelVersion], document: Mapping[str, Any], into: Path) -> None:
    """Write the files of the parts and the description into a new folder, which is then copied into the registry."""
    into.mkdir()
    for number, part in enumerate(parts, 1):
        try:
            os.link(part.path / "model.onnx", into / f"part{number}.onnx", follow_symlinks=False)
        except FileNotFoundError:
            raise _gone(part) from None
    (into / DESCRIPTION).write_text(json.dumps(document))


def _content(document: Mapping[str, Any], parts: Sequence[ModelVersion], folder: Path) -> ModelContents:
    """Return what the inspections of the parts recorded of the files."""
    spec = model_json.load(folder)
    assert spec.input is not None  # as `describe` wrote it
    facts: dict[str, Any] = {
        "score_threshold": spec.decode.score_threshold,
        "input": {"width": spec.input.width, "height": spec.input.height, "resize": spec.input.resize},
        "graph": {name: value for name, value in document["graph"].items() if name != "parts"},
    }
    counted = [part.facts.get("parameters") for part in parts]
    if all(isinstance(count, int) for count in counted):
        facts["parameters"] = sum(counted)
    return ModelContents(
        task=spec.task,
        architecture=spec.architecture,
        classes=[{"id": label.id, "name": label.name} for label in spec.classes],
        facts=facts,
        files={path.name: path for path in sorted(folder.iterdir())},
    )


def _store_parts(
    parts: Sequence[ModelVersion], recipe: Recipe, made: Callable[[ModelVersion], object], version: ModelVersion
) -> None:
    weights = recipe.weights or [1.0] * len(parts)
    VersionPart.objects.bulk_create(
        VersionPart(
            version=version, place=number, source=part, source_label=full_name(part)[:220],
            weight=weight if recipe.kind == ENSEMBLE else 1.0,
        )
        for number, (part, weight) in enumerate(zip(parts, weights, strict=True), 1)
    )  # fmt: skip
    made(version)
