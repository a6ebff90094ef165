"""Earlier results: a step with the same kind, parameters and contents of inputs is not done again.

The key is the SHA-256 of canonical JSON of all that decides a result, and of nothing else: no names, positions, owners
or times. A hit counts only where what it gave is still there and its owner may use it. What acts on the world, such as
a service or a message, has no key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet

from accounts.models import User
from aiplatform.lib.errors import DomainError
from datasets.models import DatasetVersion
from inference.models import Evaluation, ModelVersion, Service
from inference.pipelines import beginning, graph
from inference.pipelines.advance import FINAL, WHOLE, State
from inference.pipelines.kinds import KINDS, Call, StepKind
from inference.pipelines.models import PipelineRun, StepRun

#: Tables behind references, by type, and the column that names their content.
TABLES: Mapping[str, tuple[Any, str]] = {
    "dataset": (DatasetVersion, "manifest_sha256"),
    "model": (ModelVersion, "sha256"),
    "service": (Service, ""),
}


class Lookup:
    """Keys of the steps that could begin now, and earlier results under them."""

    def __init__(self, run: PipelineRun, spec: graph.Spec, newest: Mapping[tuple[str, int], StepRun]) -> None:
        self.run, self.spec, self.newest = run, spec, newest
        self._contents: dict[tuple[str, int], str] = {}
        self._keys: dict[int, str] = {}
        self._earlier: dict[str, StepRun] = {}
        for step in newest.values():
            if step.state == State.WAITING and self._may_begin(step) and (key := self._key(step)):
                self._keys[step.pk] = key
        if run.use_cache and self._keys:
            self._earlier = self._found(set(self._keys.values()))

    def key_of(self, step: StepRun) -> str:
        """The key of a step that could begin; "" where it is done anew each time."""
        return self._keys.get(step.pk, "")

    def known(self) -> frozenset[tuple[str, int]]:
        """Steps and items with an earlier result."""
        return frozenset(
            (step.step, step.item) for step in self.newest.values() if self._keys.get(step.pk) in self._earlier
        )

    def of(self, step: StepRun) -> StepRun:
        """The earlier row whose result counts."""
        return self._earlier[self._keys[step.pk]]

    def _may_begin(self, step: StepRun) -> bool:
        of = self.spec.steps.get(step.step)
        if of is None or (step.item == WHOLE and of.each is not None):
            return False
        rows = [self.newest.get((source, WHOLE)) for source in of.sources]
        over = all(row is not None and row.state in FINAL for row in rows)
        return step.item != WHOLE or over

    def _key(self, step: StepRun) -> str:
        kind = KINDS.find(self.spec.steps[step.step].kind)
        if kind is None or kind.acts:
            return ""
        try:
            call = beginning.call_of(self.run, self.spec, step, kind, self.newest)
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

    def _found(self, keys: set[str]) -> dict[str, StepRun]:
        rows: QuerySet[StepRun] = StepRun.objects.filter(
            cache_key__in=keys, state=StepRun.State.OK, run__owner=self.run.owner
        )
        newest = {row.cache_key: row for row in rows.defer("kept").order_by("pk")}
        return {key: row for key, row in newest.items() if all_there(_references(row.outputs), self.run.owner)}


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
