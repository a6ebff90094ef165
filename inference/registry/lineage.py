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
MAX_NODES = 120  # nodes


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
        if is_new and len(self.nodes) >= MAX_NODES:
            self.cut = True
            return False
        self.nodes.setdefault(node.key, node)
        edge = (node.key, to, how) if to else (after, node.key, how)
        if (to or after) and edge not in self.edges:
            self.edges.append(edge)
        return is_new


def build_graph(version: ModelVersion, user: User) -> Graph:
    """Build the graph around a version that this user may see."""
    graph = Graph()
    graph.add(_version_node(version, 0))
    _back(graph, version, user, 0)
    _forth(graph, version, user, 0)
    return graph


def _visible_versions(user: User) -> Any:
    return ModelVersion.objects.visible_to(user).select_related("model__owner", "job", "dataset_version__dataset")


def _version_node(version: ModelVersion, column: int) -> Node:
    page = f"{reverse('inference:model-detail', args=[version.model_id])}?version={version.number}"
    return Node(f"version-{version.pk}", "version", str(version), column, page, state=version.stage)


def _back(graph: Graph, version: ModelVersion, user: User, column: int) -> None:
    """Add what a version is derived from: a job, its data, its initial model and its teacher."""
    key = f"version-{version.pk}"
    target = key
    if version.job is not None:
        job = _job_node(version.job, user, column - 1)
        graph.add(job, to=key, how="made")
        target = job.key
        column -= 1
    if version.dataset_version_id or version.dataset_label:
        graph.add(_data_node(version, user, column - 1), to=target, how="data")
    for how, source_id, label in (
        ("fine_tuned", version.parent_id, version.parent_label),
        ("distilled", version.teacher_id, version.teacher_label),
    ):
        source = _visible_versions(user).filter(pk=source_id).first() if source_id else None
        if source is not None:
            if graph.add(_version_node(source, column - 1), to=target, how=how) and column > -2 * GENERATIONS:
                _back(graph, source, user, column - 1)
        elif label:
            graph.add(Node(f"gone-{how}-{version.pk}", "file", label, column - 1), to=target, how=how)
    for part in version.parts.all():
        source = _visible_versions(user).filter(pk=part.source_id).first() if part.source_id else None
        if source is None:
            gone = Node(f"gone-part-{version.pk}-{part.place}", "file", part.source_label, column - 1)
            graph.add(gone, to=key, how="part")
        elif graph.add(_version_node(source, column - 1), to=key, how="part") and column > -2 * GENERATIONS:
            _back(graph, source, user, column - 1)


def _data_node(version: ModelVersion, user: User, column: int) -> Node:
    version_id = version.dataset_version_id
    visible = DatasetVersion.objects.visible_to(user).filter(pk=version_id).first() if version_id else None
    url = reverse("datasets:detail", args=[visible.dataset_id]) if visible else ""
    key = f"data-{version_id}" if version_id else f"data-of-{version.pk}"
    return Node(key, "dataset", str(visible) if visible else version.dataset_label or "–", column, url)


def _job_node(job: Job, user: User, column: int) -> Node:
    is_visible = Job.objects.visible_to(user).filter(pk=job.pk).exists()
    kind = "training" if job.kind == "training" else "job"
    return Node(f"job-{job.pk}", kind, job.name, column, kinds.url_of(job) if is_visible else "", state=job.state)


def _forth(graph: Graph, version: ModelVersion, user: User, column: int) -> None:
    """Add what is derived from a version: evaluations, services, packages, and versions trained from it."""
    own_key = f"version-{version.pk}"
    evaluations = version.evaluations.visible_to(user).for_list()
    for evaluation in evaluations[:MAX_NODES]:
        url = reverse("inference:evaluation-detail", args=[evaluation.pk])
        facts = {"note": evaluation.version_label, "state": evaluation.job.state}
        node = Node(f"evaluation-{evaluation.pk}", "evaluation", evaluation.job.name, column + 1, url, **facts)
        graph.add(node, after=own_key, how="judged")
    services = version.services.visible_to(user).for_list()
    for service in services[:MAX_NODES]:
        url = reverse("inference:service-detail", args=[service.pk])
        node = Node(f"service-{service.pk}", "service", service.name, column + 1, url, state=service.state)
        graph.add(node, after=own_key, how="served")
    predictions = version.predictions.visible_to(user).for_list().prefetch_related("made__intake__version__dataset")
    for prediction in predictions[:MAX_NODES]:
        _add_prediction(graph, prediction, user, own_key, column + 1)
    visible_count = 0
    composed = ModelVersion.objects.filter(parts__source=version)
    for how, rows in (("fine_tuned", version.children), ("distilled", version.students), ("part", composed)):
        visible = list(_visible_versions(user).filter(pk__in=rows.values("pk")))
        visible_count += len(visible)
        for child in visible:
            if graph.add(_version_node(child, column + 1), after=own_key, how=how) and column + 1 < GENERATIONS:
                _forth(graph, child, user, column + 1)
    if column == 0:
        for entry in history.exports_of(version):
            node = Node(f"package-{entry.pk}", "package", f"{entry.at:%Y-%m-%d}", 1, note=entry.actor)
            graph.add(node, after=own_key, how="packed")
        total = version.evaluations.count() + version.services.count() + version.predictions.count()
        total += version.children.count() + version.students.count() + composed.count()
        graph.hidden = total - evaluations.count() - services.count() - predictions.count() - visible_count


def _add_prediction(graph: Graph, prediction: Prediction, user: User, after: str, column: int) -> None:
    """Add a prediction, and the dataset versions created from its output."""
    url = reverse("inference:prediction-detail", args=[prediction.pk])
    facts = {"note": prediction.source_label, "state": prediction.job.state}
    node = Node(f"prediction-{prediction.pk}", "prediction", prediction.job.name, column, url, **facts)
    graph.add(node, after=after, how="answered")
    made = [draft.intake.version_id for draft in prediction.made.all() if draft.intake and draft.intake.version_id]
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


def find_version(full_name: str) -> ModelVersion | None:
    """Return the version that a parameter of a training names by its full name, OWNER/NAME v2."""
    parts = NAMED.fullmatch(full_name)
    if parts is None or not parts["owner"] or not parts["number"]:
        return None
    rows = ModelVersion.objects.filter(model__owner__username=parts["owner"], model__name=parts["name"])
    version: ModelVersion | None = rows.filter(number=int(parts["number"])).first()
    return version


def training_columns(params: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a version that hold the initial model and the teacher of its training."""
    columns: dict[str, Any] = {}
    for column, name in (("parent", FILE), ("teacher", MODEL)):
        label = str(params.get(name) or "")
        columns |= {column: find_version(label) if label else None, f"{column}_label": label[:220]}
    return columns
