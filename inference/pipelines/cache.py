"""Earlier results: a step with the same kind, parameters and contents of inputs is not done again.

The key is the SHA-256 of canonical JSON of all that decides a result, and of nothing else: no names, positions, owners
or times. A hit counts only where what it gave is still there and its owner may use it. What acts on the world, such as
a service or a message, has no key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from importlib import metadata
from typing import Any

from accounts.models import User
from aiplatform import __version__
from aiplatform.lib.errors import DomainError
from datasets.models import DatasetVersion
from inference.evaluation.models import Evaluation
from inference.pipelines import graph, step_start
from inference.pipelines.kinds import KINDS, Call, StepKind
from inference.pipelines.models import PipelineRun, StepRun
from inference.registry.models import ModelVersion
from inference.serving.models import Service

#: Tables behind references, by type, and the column that names their content.
TABLES: Mapping[str, tuple[Any, str]] = {
    "dataset": (DatasetVersion, "manifest_sha256"),
    "model": (ModelVersion, "sha256"),
    "service": (Service, ""),
}


#: Packages whose versions decide what a training, an evaluation or a conversion makes.
COMPUTING = (
    "torch", "torchvision", "numpy", "scipy", "scikit-learn", "pillow", "onnx", "onnxruntime", "onnxruntime-gpu",
    "openvino", "tensorrt", "optuna",
)  # fmt: skip


class Lookup(Container[tuple[str, int]]):
    """Earlier results for the steps and items of a run, searched when `in` is evaluated.

    Only steps that could start now may be looked up: their inputs are complete.

    Only what could begin now may be asked for: what feeds it is over.
    """

    def __init__(self, run: PipelineRun, spec: graph.Spec, newest: Mapping[tuple[str, int], StepRun]) -> None:
        self.run, self.spec, self.newest = run, spec, newest
        self._contents: dict[tuple[str, int], str] = {}
        self._keys: dict[int, str] = {}
        self._earlier: dict[str, StepRun | None] = {}

    def __contains__(self, at: object) -> bool:
        step = self.newest[at]  # type: ignore[index]  # Container asks with any object; here it is a step and an item
        return self.run.use_cache and self._find_earlier(self.key_of(step)) is not None

    def key_of(self, step: StepRun) -> str:
        """Return the key of a step that could start; "" where the step runs each time."""
        if step.pk not in self._keys:
            self._keys[step.pk] = self._key(step)
        return self._keys[step.pk]

    def get(self, step: StepRun) -> StepRun:
        """Return the earlier row whose result is reused, of a step that is `in` this lookup.

        Raises:
            LookupError: there is none.
        """
        earlier = self._find_earlier(self.key_of(step))
        if earlier is None:
            raise LookupError(f"There is no earlier result for {step}.")
        return earlier

    def _key(self, step: StepRun) -> str:
        kind = KINDS.find(self.spec.steps[step.step].kind)
        if kind is None or kind.acts:
            return ""
        try:
            call = step_start.call_of(self.run, self.spec, step, kind, self.newest)
            further = kind.content(call)
        except DomainError:
            return ""  # it says so when it begins
        return "" if further is None else self._digest(kind, call, further)

    def _digest(self, kind: StepKind, call: Call, further: Mapping[str, Any]) -> str:
        content = {
            "kind": kind.name,
            "number": kind.number,
            "params": dict(call.params),
            "inputs": {port: [self._content(item) for item in references] for port, references in call.inputs.items()},
            "further": dict(further),
        }
        if kind.computes:
            content["with"] = environment()
        text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()

    def _content(self, reference: Mapping[str, Any]) -> Any:
        """Return what identifies the content of a reference: its digest; metrics are returned as they are."""
        kind = str(reference.get("type", ""))
        if kind not in TABLES:
            return {name: value for name, value in reference.items() if name not in ("id", "label")}
        where = (kind, int(reference.get("id") or 0))
        if where not in self._contents:
            table, column = TABLES[kind]
            digest = table.objects.filter(pk=where[1]).values_list(column or "pk", flat=True).first()
            self._contents[where] = f"{kind}:{digest or where[1]}"
        return self._contents[where]

    def _find_earlier(self, key: str) -> StepRun | None:
        if not key:
            return None
        if key not in self._earlier:
            rows = StepRun.objects.filter(cache_key=key, state=StepRun.State.OK, run__owner=self.run.owner)
            newest = rows.defer("kept").order_by("-pk").first()
            counts = newest is not None and all_exist(_references(newest.outputs), self.run.owner)
            self._earlier[key] = newest if counts else None
        return self._earlier[key]


@lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """Return versions of the platform and of its numeric packages; packages that are not installed are left out."""
    versions = {"aiplatform": __version__, "python": platform.python_version()}
    for name in COMPUTING:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _references(outputs: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for value in outputs.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                yield item


def as_own(outputs: Mapping[str, Any], step: str) -> dict[str, Any]:
    """Earlier outputs as those of a step: rules name figures by the step that gives them."""
    return {
        port: value | {"step": step, "label": step} if isinstance(value, dict) and "step" in value else value
        for port, value in outputs.items()
    }


def all_exist(references: Iterable[Mapping[str, Any]], user: User) -> bool:
    """Whether all referenced rows still exist, and this user may use them."""
    for item in references:
        number = item.get("evaluation")  # that figures are of
        if number is not None and not Evaluation.objects.visible_to(user).filter(pk=number).exists():
            return False
        if (kind := str(item.get("type", ""))) in TABLES:
            table = TABLES[kind][0]
            if not table.objects.usable_by(user).filter(pk=item.get("id") or 0).exists():
                return False
    return True
