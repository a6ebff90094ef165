"""Jobs that take fewer machines than they want: as many as are free, never fewer than they said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aiplatform.lib.errors import Invalid
from tests.factories import datasets, work
from tests.workers.planner_cases import LAB, NOW, ask, machines, picture, run
from training.runs import jobs
from training.runs.drafts import TrainingRequest
from training.runs.forms import OwnCodeForm, SubmitForm
from training.runs.serializers import TrainingOut
from workers.core.models import Job
from workers.core.states import Event
from workers.jobs import submission, transitions
from workers.planning.planner.fit import why_never
from workers.planning.planner.plan import plan
from workers.planning.planner.snapshot import Cluster, Quota
from workers.scheduling import placing


def elastic(job, most, least, **more):
    asked = ask(job, 4, nodes=most, **more)
    return replace(asked, request=replace(asked.request, least=least))


def nodes_of(found, job):
    return next((len(one.places) for one in found.assignments if one.job == job), 0)


@pytest.mark.parametrize(("busy", "least", "got"), [((), 1, 3), ((100,), 1, 2), ((100, 200), 1, 1), ((100, 200), 2, 0)])
def test_planner_gives_a_job_as_many_nodes_as_are_free_and_no_fewer_than_it_takes(busy, least, got):
    running = [run(node, node + 1) for node in busy]  # one card of the node is enough

    found = plan(picture(running, [elastic(9, 3, least)], nodes=3), NOW)

    assert nodes_of(found, 9) == got
    assert (9 in found.waits) == (got == 0)


def test_planner_reserves_for_the_fewest_nodes_it_waits_for():
    small = ask(10, 4, age=1.0)
    running = [run(1, 100, 101, 102, 103), run(2, 200, 201, 202, 203)]

    found = plan(picture(running, [elastic(9, 3, 2), small], nodes=3), NOW)

    assert nodes_of(found, 9) == nodes_of(found, 10) == 0
    assert found.waits[9].code == "no_cards"
    assert found.waits[9].args["asked"] == 8, "two nodes of four cards will do"


def test_planner_keeps_to_the_quota_by_taking_fewer_nodes():
    clusters = (Cluster(1, "lab", {"gpu": Quota(guaranteed=8)}),)

    assert nodes_of(plan(picture((), [elastic(9, 3, 1)], clusters, nodes=3), NOW), 9) == 2


def test_why_never_looks_at_the_fewest_nodes():
    there, devices = machines(2)

    assert why_never(elastic(9, 5, 2).request, there, devices, LAB[0]) == ()
    assert [one.code for one in why_never(elastic(9, 5, 3).request, there, devices, LAB[0])] == ["too_many_nodes"]


@pytest.fixture
def gang(db, alice, cluster, kind):
    """A job that wants three machines of one card and takes two."""
    cards = [work.node(f"node{n}", gpus=1).devices.get(kind="gpu") for n in range(1, 4)]
    asked = {"nodes": 3, "min_nodes": 2, "gpus_per_node": 1}
    job = submission.submit(owner=alice, cluster=cluster, kind="command", name="elastic", **asked)
    return job, [(card.node_id, [(card.pk, 8)]) for card in cards]


def test_job_has_the_nodes_it_got_and_wants_all_of_them_the_next_time(gang):
    job, places = gang
    assert (job.nodes, job.min_nodes, job.max_nodes) == (3, 2, 3)

    attempt = placing.place(job.pk, places[:2])
    job.refresh_from_db()
    assert (job.nodes, attempt.job.nodes, job.wanted_nodes) == (2, 2, 3)

    transitions.move(job.pk, Event.LOST, attempt=1)
    transitions.move(job.pk, Event.REQUEUED)
    placing.place(job.pk, places)
    job.refresh_from_db()
    assert job.nodes == 3
    assert list(job.ranks) == [0, 1, 2]


@pytest.mark.parametrize(("nodes", "least", "kept"), [(3, 3, (3, 0, 0)), (1, 1, (1, 0, 0)), (2, 0, (2, 0, 0))])
def test_range_of_one_number_is_none(db, alice, cluster, kind, nodes, least, kept):
    for n in range(3):
        work.node(f"node{n}", gpus=1)
    asked = {"nodes": nodes, "min_nodes": least, "gpus_per_node": 1}

    job = submission.submit(owner=alice, cluster=cluster, kind="command", name="rigid", **asked)

    assert (job.nodes, job.min_nodes, job.max_nodes) == kept


def test_more_than_it_wants_is_no_least(db, alice, cluster, kind):
    with pytest.raises(Invalid, match="At least 1 node and at most the requested number; default: all") as caught:
        submission.submit(owner=alice, cluster=cluster, kind="command", name="odd", nodes=2, min_nodes=3)

    assert caught.value.blamed == "min_nodes"


@pytest.fixture
def version(db, alice):
    for n in range(3):
        work.node(f"node{n}", gpus=1)
    return datasets.version(datasets.dataset(alice, "shades"), images=8, task="classification")


def test_training_keeps_its_range_for_a_clone_and_shows_it(alice, cluster, version):
    request = TrainingRequest(name="elastic", version=version, preset="classify", nodes=3, min_nodes=2, gpus_per_node=1)

    training = jobs.submit(user=alice, request=request)
    Job.objects.filter(pk=training.job_id).update(nodes=2)
    training.job.refresh_from_db()

    again = jobs.as_request(training)
    assert (again["nodes"], again["min_nodes"]) == (3, 2)
    shown = TrainingOut(training).data
    assert (shown["nodes"], shown["min_nodes"], shown["max_nodes"]) == (2, 2, 3)


def test_own_code_takes_all_its_machines_and_its_form_has_no_least(alice, cluster, version):
    request = TrainingRequest(name="own", command="true", nodes=2, min_nodes=1, gpus_per_node=0)

    with pytest.raises(Invalid, match=r"Custom code runs on all its nodes or none. Clear the minimum"):
        jobs.submit(user=alice, request=request)

    assert "min_nodes" in SubmitForm(user=alice).fields
    assert "min_nodes" not in OwnCodeForm(user=alice).fields
