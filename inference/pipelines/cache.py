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
    """Earlier results for the steps and items of a run, looked for when somebody asks whether one is `in` it.

    Only what could begin now may be asked for: what feeds it is over.
    """

    def __init__(self, run: PipelineRun, spec: graph.Spec, newest: Mapping[tuple[str, int], StepRun]) -> None:
        self.run, self.spec, self.newest = run, spec, newest
        self._contents: dict[tuple[str, int], str] = {}
        self._keys: dict[int, str] = {}
        self._earlier: dict[str, StepRun | None] = {}

    def __contains__(self, at: object) -> bool:
        step = self.newest[at]  # type: ignore[index]  # Container asks with any object; here it is a step and an item
        return self.run.use_cache and self._found(self.key_of(step)) is not None

    def key_of(self, step: StepRun) -> str:
        """The key of a step that could begin; "" where it is done anew each time."""
        if step.pk not in self._keys:
            self._keys[step.pk] = self._key(step)
        return self._keys[step.pk]

    def of(self, step: StepRun) -> StepRun:
        """The earlier row whose result counts, of a step that is `in` this.

        Raises:
            LookupError: there is none.
        """
        found = self._found(self.key_of(step))
        if found is None:
            raise LookupError(f"There is no earlier result for {step}.")
        return found

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
        decides = {
            "kind": kind.name,
            "number": kind.number,
            "params": dict(call.params),
            "inputs": {port: [self._content(one) for one in given] for port, given in call.inputs.items()},
            "further": dict(further),
        }
        if kind.computes:
            decides["with"] = environment()
        text = json.dumps(decides, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()

    def _content(self, reference: Mapping[str, Any]) -> Any:
        """What a reference stands for: the digest of its content, figures themselves."""
        kind = str(reference.get("type", ""))
        if kind not in TABLES:
            return {name: value for name, value in reference.items() if name not in ("id", "label")}
        where = (kind, int(reference.get("id") or 0))
        if where not in self._contents:
            table, column = TABLES[kind]
            found = table.objects.filter(pk=where[1]).values_list(column or "pk", flat=True).first()
            self._contents[where] = f"{kind}:{found or where[1]}"
        return self._contents[where]

    def _found(self, key: str) -> StepRun | None:
        if not key:
            return None
        if key not in self._earlier:
            rows = StepRun.objects.filter(cache_key=key, state=StepRun.State.OK, run__owner=self.run.owner)
            newest = rows.defer("kept").order_by("-pk").first()
            counts = newest is not None and all_there(_references(newest.outputs), self.run.owner)
            self._earlier[key] = newest if counts else None
        return self._earlier[key]


@lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """Versions of the platform and of what its programs compute with; packages that are absent are left out."""
    found = {"aiplatform": __version__, "python": platform.python_version()}
    for name in COMPUTING:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _references(outputs: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for value in outputs.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Mapping):
                yield one


def as_own(outputs: Mapping[str, Any], step: str) -> dict[str, Any]:
    """Earlier outputs as those of a step: rules name figures by the step that gives them."""
    return {
        port: value | {"step": step, "label": step} if isinstance(value, dict) and "step" in value else value
        for port, value in outputs.items()
    }


def all_there(references: Iterable[Mapping[str, Any]], user: User) -> bool:
    """Whether everything that is named is still there, and this person may work with it."""
    for one in references:
        number = one.get("evaluation")  # that figures are of
        if number is not None and not Evaluation.objects.visible_to(user).filter(pk=number).exists():
            return False
        if (kind := str(one.get("type", ""))) in TABLES:
            table = TABLES[kind][0]
            if not table.objects.usable_by(user).filter(pk=one.get("id") or 0).exists():
                return False
    return True
