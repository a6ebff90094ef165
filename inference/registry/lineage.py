"""Where a version came from and what came of it, as far as the reader may see. List and drawing read the same graph.

Columns count from the version itself, which stands in column 0: what it came from is left of it, what came of it right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from accounts.models import User
from datasets.models import DatasetVersion
from inference.registry import history
from inference.registry.models import ModelVersion
from training.runs.pretrained_weights import FILE, MODEL, NAMED
from workers.core import kinds
from workers.core.models import Job

if TYPE_CHECKING:
    from inference.batch.models import Prediction

GENERATIONS = 4  # back and forth
MOST = 120  # nodes


@dataclass(frozen=True)
class Node:
    """One thing.

    `kind`: dataset, training, job, version, evaluation, prediction, service, package, file; `url`: "" for none.
    """

    key: str
    kind: str
    label: str
    column: int
    url: str = ""
    note: str = ""
    state: str = ""


@dataclass
class Graph:
    """Things and what led from one to another. `hidden`: what else came of it that the reader may not see."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)  # from, to, how: see HOW
    hidden: int = 0
    cut: bool = False  # there is more than is shown

    def add(self, node: Node, *, to: str = "", after: str = "", how: str = "") -> bool:
        """Add a node and its edge; False where it was there already, or there is no room."""
        is_new = node.key not in self.nodes
        if is_new and len(self.nodes) >= MOST:
            self.cut = True
            return False
        self.nodes.setdefault(node.key, node)
        edge = (node.key, to, how) if to else (after, node.key, how)
        if (to or after) and edge not in self.edges:
            self.edges.append(edge)
        return is_new


def of(version: ModelVersion, user: User) -> Graph:
    """The graph around a version that this person may see."""
    graph = Graph()
    graph.add(_version_node(version, 0))
    _back(graph, version, user, 0)
    _forth(graph, version, user, 0)
    return graph


def _seen(user: User) -> Any:
    return ModelVersion.objects.visible_to(user).select_related("model__owner", "job", "dataset_version__dataset")


def _version_node(version: ModelVersion, column: int) -> Node:
    page = f"{reverse('inference:model-detail', args=[version.model_id])}?version={version.number}"
    return Node(f"version-{version.pk}", "version", str(version), column, page, state=version.stage)


def _back(graph: Graph, version: ModelVersion, user: User, column: int) -> None:
    """What a version came from: a job, its data, and the versions that it began with or learned after."""
    me = f"version-{version.pk}"
    into = me
    if version.job is not None:
        job = _job_node(version.job, user, column - 1)
        graph.add(job, to=me, how="made")
        into = job.key
        column -= 1
    if version.dataset_version_id or version.dataset_label:
        graph.add(_data_node(version, user, column - 1), to=into, how="data")
    for how, one, label in (
        ("fine_tuned", version.parent_id, version.parent_label),
        ("distilled", version.teacher_id, version.teacher_label),
    ):
        seen = _seen(user).filter(pk=one).first() if one else None
        if seen is not None:
            if graph.add(_version_node(seen, column - 1), to=into, how=how) and column > -2 * GENERATIONS:
                _back(graph, seen, user, column - 1)
        elif label:
            graph.add(Node(f"gone-{how}-{version.pk}", "file", label, column - 1), to=into, how=how)
    for part in version.parts.all():
        seen = _seen(user).filter(pk=part.source_id).first() if part.source_id else None
        if seen is None:
            gone = Node(f"gone-part-{version.pk}-{part.place}", "file", part.source_label, column - 1)
            graph.add(gone, to=me, how="part")
        elif graph.add(_version_node(seen, column - 1), to=me, how="part") and column > -2 * GENERATIONS:
            _back(graph, seen, user, column - 1)


def _data_node(version: ModelVersion, user: User, column: int) -> Node:
    known = version.dataset_version_id
    seen = DatasetVersion.objects.visible_to(user).filter(pk=known).first() if known else None
    url = reverse("datasets:detail", args=[seen.dataset_id]) if seen else ""
    key = f"data-{known}" if known else f"data-of-{version.pk}"
    return Node(key, "dataset", str(seen) if seen else version.dataset_label or "–", column, url)


def _job_node(job: Job, user: User, column: int) -> Node:
    seen = Job.objects.visible_to(user).filter(pk=job.pk).exists()
    kind = "training" if job.kind == "training" else "job"
    return Node(f"job-{job.pk}", kind, job.name, column, kinds.url_of(job) if seen else "", state=job.state)


def _forth(graph: Graph, version: ModelVersion, user: User, column: int) -> None:
    """What came of a version: judgements, services, packages, and the versions that learned from it."""
    me = f"version-{version.pk}"
    evaluations = version.evaluations.visible_to(user).for_list()
    for evaluation in evaluations[:MOST]:
        url = reverse("inference:evaluation-detail", args=[evaluation.pk])
        about = {"note": evaluation.version_label, "state": evaluation.job.state}
        node = Node(f"evaluation-{evaluation.pk}", "evaluation", evaluation.job.name, column + 1, url, **about)
        graph.add(node, after=me, how="judged")
    services = version.services.visible_to(user).for_list()
    for service in services[:MOST]:
        url = reverse("inference:service-detail", args=[service.pk])
        node = Node(f"service-{service.pk}", "service", service.name, column + 1, url, state=service.state)
        graph.add(node, after=me, how="served")
    predictions = version.predictions.visible_to(user).for_list().prefetch_related("made__intake__version__dataset")
    for prediction in predictions[:MOST]:
        _add_prediction(graph, prediction, user, me, column + 1)
    seen = 0
    composed = ModelVersion.objects.filter(parts__source=version)
    for how, rows in (("fine_tuned", version.children), ("distilled", version.students), ("part", composed)):
        visible = list(_seen(user).filter(pk__in=rows.values("pk")))
        seen += len(visible)
        for child in visible:
            if graph.add(_version_node(child, column + 1), after=me, how=how) and column + 1 < GENERATIONS:
                _forth(graph, child, user, column + 1)
    if column == 0:
        for entry in history.exports_of(version):
            node = Node(f"package-{entry.pk}", "package", f"{entry.at:%Y-%m-%d}", 1, note=entry.actor)
            graph.add(node, after=me, how="packed")
        all_of_it = version.evaluations.count() + version.services.count() + version.predictions.count()
        all_of_it += version.children.count() + version.students.count() + composed.count()
        graph.hidden = all_of_it - evaluations.count() - services.count() - predictions.count() - seen


def _add_prediction(graph: Graph, prediction: Prediction, user: User, after: str, column: int) -> None:
    """A prediction, and the dataset versions that were made of its answers."""
    url = reverse("inference:prediction-detail", args=[prediction.pk])
    about = {"note": prediction.source_label, "state": prediction.job.state}
    node = Node(f"prediction-{prediction.pk}", "prediction", prediction.job.name, column, url, **about)
    graph.add(node, after=after, how="answered")
    made = [one.intake.version_id for one in prediction.made.all() if one.intake and one.intake.version_id]
    for version in DatasetVersion.objects.visible_to(user).filter(pk__in=made).select_related("dataset"):
        page = reverse("datasets:detail", args=[version.dataset_id])
        graph.add(Node(f"data-{version.pk}", "dataset", str(version), column + 1, page), after=node.key, how="drafted")


def as_json(graph: Graph) -> dict[str, Any]:
    """The graph for scripts."""
    return {
        "nodes": [
            {
                "key": node.key, "kind": node.kind, "label": node.label, "note": node.note, "state": node.state,
                "url": node.url, "column": node.column,
            }
            for node in graph.nodes.values()
        ],
        "edges": [{"from": a, "to": b, "how": how} for a, b, how in graph.edges],
        "cut": graph.cut,
    }  # fmt: skip


def begun_from(words: str) -> ModelVersion | None:
    """The version that a training's parameter names by its full name, OWNER/NAME v2."""
    parts = NAMED.fullmatch(words)
    if parts is None or not parts["owner"] or not parts["number"]:
        return None
    rows = ModelVersion.objects.filter(model__owner__username=parts["owner"], model__name=parts["name"])
    found: ModelVersion | None = rows.filter(number=int(parts["number"])).first()
    return found


def of_training(params: dict[str, Any]) -> dict[str, Any]:
    """Columns of a version that say what its training began with, and what it learned after."""
    columns: dict[str, Any] = {}
    for column, name in (("parent", FILE), ("teacher", MODEL)):
        words = str(params.get(name) or "")
        columns |= {column: begun_from(words) if words else None, f"{column}_label": words[:220]}
    return columns
