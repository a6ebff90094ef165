"""Lineage of versions, and what keeps one from being deleted."""

from __future__ import annotations

import pytest

from aiplatform.lib.errors import StillInUse
from inference.registry import lineage
from inference.registry import registration as registry
from inference.registry.models import ModelVersion
from inference.serving import endpoints
from tests.factories import models as factory
from tests.inference import judged, tiny
from tests.inference.running import set_state
from training.runs import publishers
from training.runs.models import TrainingJob
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db


def trained(owner, data, *, name, **params):
    """A version that a finished training left."""
    job = set_state(factory.training_job(owner, name=name), "succeeded")
    training = TrainingJob.objects.create(
        job=job, preset="detect", version=data, version_label=str(data), params=params
    )
    tiny.detector(RunDir.for_attempt(job.pk, 1).outputs / "model")
    publishers.publish(training)
    return ModelVersion.objects.get(job=job)


@pytest.fixture
def family(alice, tmp_path):
    """A version, one fine-tuned from it, one distilled from that, all on one dataset version."""
    data = judged.dataset_version(alice, tmp_path / "data")
    first = trained(alice, data, name="first")
    tuned = trained(alice, data, name="tuned", weights="alice/first v1")
    taught = trained(alice, data, name="taught", teacher="alice/tuned v1")
    return data, first, tuned, taught


def edges(graph):
    labels = {key: node.label for key, node in graph.nodes.items()}
    return {(labels[a], labels[b], how) for a, b, how in graph.edges}


def test_lineage_is_read_from_what_a_training_began_with(family):
    _data, first, tuned, taught = family

    assert (tuned.parent, tuned.parent_label) == (first, "alice/first v1")
    assert (taught.teacher, taught.parent) == (tuned, None)


def test_lineage_goes_both_ways(family, alice, tmp_path):
    data, first, tuned, _taught = family
    evaluation = judged.judged(alice, tuned, data)
    endpoints.create(user=alice, name="demo", model_version=tuned)

    visible = edges(lineage.build_graph(tuned, alice))

    assert visible >= {
        (str(data), "tuned", "data"), ("first v1", "tuned", "fine_tuned"), ("tuned", "tuned v1", "made"),
        ("first", "first v1", "made"), ("tuned v1", evaluation.job.name, "judged"), ("tuned v1", "demo", "served"),
        ("tuned v1", "taught v1", "distilled"),
    }  # fmt: skip
    assert ("first v1", "tuned v1", "fine_tuned") in edges(lineage.build_graph(first, alice))


def test_lineage_names_nothing_that_the_reader_may_not_see(family, alice, bob, as_bob, as_alice):
    _data, first, tuned, _taught = family
    service = endpoints.create(user=alice, name="secret-service", model_version=first)
    type(first.model).objects.filter(pk=first.model_id).update(visibility="public")

    graph = lineage.build_graph(first, bob)
    page = as_bob.get(f"/models/{first.model_id}/lineage/").content.decode()

    assert {node.kind for node in graph.nodes.values()} == {"dataset", "training", "version"}
    assert [node.url for node in graph.nodes.values() if node.kind != "version"] == ["", ""]
    assert graph.hidden == 2
    for name in (service.name, "tuned v1"):
        assert name not in page
        assert name in as_alice.get(f"/models/{first.model_id}/lineage/").content.decode()
    assert as_bob.get(f"/models/{tuned.model_id}/lineage/").status_code == 404
    assert as_bob.get(f"/api/v1/model-versions/{tuned.pk}/lineage/").status_code == 404


def test_lineage_api_gives_the_graph(family, as_alice):
    _data, _first, tuned, _taught = family

    answer = as_alice.get(f"/api/v1/model-versions/{tuned.pk}/lineage/").json()

    assert {"from": "version-" + str(tuned.parent_id), "how": "fine_tuned", "to": f"job-{tuned.job_id}"} in answer[
        "edges"
    ]
    assert answer["cut"] is False


def test_lineage_ends_where_versions_learn_in_a_circle(family, alice):
    _data, first, _tuned, taught = family
    ModelVersion.objects.filter(pk=first.pk).update(parent=taught)  # nobody can make that; a restored backup might

    assert len(lineage.build_graph(ModelVersion.objects.get(pk=first.pk), alice).nodes) < 20


def test_deletion_waits_for_what_uses_the_files_and_names_all_of_it(family, alice):
    data, first, _tuned, _taught = family
    endpoints.create(user=alice, name="demo", model_version=first)
    job = set_state(factory.training_job(alice, name="going"), "running")
    TrainingJob.objects.create(job=job, preset="detect", version=data, params={"teacher": "alice/first v1"})

    with pytest.raises(StillInUse, match=r"first v1 is still used by endpoint demo of Alice, training job"):
        registry.delete(model=first.model)


def test_deletion_of_a_parent_leaves_its_name_in_the_lineage(family, alice):
    _data, first, tuned, _taught = family

    registry.delete(model=first.model)

    tuned.refresh_from_db()
    assert (tuned.parent, tuned.parent_label) == (None, "alice/first v1")
    assert ("alice/first v1", "tuned", "fine_tuned") in edges(lineage.build_graph(tuned, alice))
