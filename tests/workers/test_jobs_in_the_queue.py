"""Submitting, moving, wishing: the rules of one job's life."""

from datetime import timedelta

import pytest

from accounts.models import Role, User
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed
from tests.factories import work
from workers.access.proxy import endpoints
from workers.core.models import Device, Job, VirtualCluster
from workers.core.states import Event, IllegalMove, JobState
from workers.execution import launch, results
from workers.jobs import actions, submission, transitions
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import clusters
from workers.scheduling import placing, preview

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.usefixtures("kind")]


@pytest.fixture
def node(db):
    return work.node(gpus=4)


@pytest.fixture
def queued(alice, cluster, node):
    return submission.submit(owner=alice, cluster=cluster, kind="command", name="a", gpus_per_node=2)


def cards(node, *indices):
    return [(card.pk, 8) for card in node.devices.filter(kind="gpu", index__in=indices).order_by("index")]


def placed(job, node, *indices):
    placing.place(job.pk, [(node.pk, cards(node, *(indices or (0, 1))))])
    job.refresh_from_db()
    return job


def used(node):
    return list(node.devices.filter(kind="gpu").order_by("index").values_list("used", flat=True))


def test_transitions_move_writes_a_whole_life_into_one_event_log(queued, node, kind):
    placed(queued, node)
    for event in (Event.LAUNCHED, Event.STARTED, Event.PAUSED, Event.RESUMED):
        transitions.move(queued.pk, event, attempt=1)
    during = used(node)
    transitions.move(queued.pk, Event.EXITED_OK, attempt=1, exit_code=0)
    results.publish(queued.pk)
    results.publish(queued.pk)
    queued.refresh_from_db()

    attempt = queued.attempts.get()
    assert (queued.state, queued.progress, attempt.state, attempt.exit_code) == ("succeeded", 1.0, "succeeded", 0)
    assert (during, used(node)) == ([8, 8, 0, 0], [0, 0, 0, 0])
    assert [e.event for e in queued.events.all()] == [
        "queued", "placed", "launched", "started", "paused", "resumed", "exited_ok",
    ]  # fmt: skip
    assert kind.ended_attempts == [(queued.pk, 1)]
    assert results.unpublished() == []


def test_transitions_move_refuses_a_report_of_an_older_attempt(queued, node):
    placed(queued, node)
    transitions.move(queued.pk, Event.LOST, attempt=1)
    transitions.move(queued.pk, Event.REQUEUED)
    placed(queued, node, 2, 3)

    with pytest.raises(transitions.StaleReport):
        transitions.move(queued.pk, Event.EXITED_BAD, attempt=1)

    queued.refresh_from_db()
    assert (queued.state, queued.attempt_number, used(node)) == ("assigned", 2, [0, 0, 8, 8])


def test_transitions_move_outside_the_table_changes_nothing(queued):
    with pytest.raises(IllegalMove):
        transitions.move(queued.pk, Event.RESUMED)

    assert queued.events.count() == 1


def test_placing_never_gives_a_full_device_twice(queued, node, alice, cluster):
    placed(queued, node)
    second = submission.submit(owner=alice, cluster=cluster, kind="command", name="b", gpus_per_node=1)

    with pytest.raises(placing.Late):
        placing.place(second.pk, [(node.pk, cards(node, 1))])

    second.refresh_from_db()
    assert (second.state, second.attempt_number, used(node)) == ("queued", 0, [8, 8, 0, 0])
    assert not second.attempts.exists()


def test_placing_asks_the_database_little_and_nudges_the_worker_of_the_first_device(
    queued, node, django_assert_max_num_queries, monkeypatch
):
    sent = []
    monkeypatch.setattr(
        launch, "enqueue_each", lambda task, number, **about: sent.append((task, number, about["queue"]))
    )
    places = [(node.pk, cards(node, 0, 1)[::-1])]

    with django_assert_max_num_queries(15):
        assert placing.place_many([(queued.pk, places)]) == {}

    assert used(node) == [8, 8, 0, 0]
    assert sent == [("workers.start_each", queued.attempts.get().pk, f"{node.name}.gpu0")]


def test_placing_places_a_job_once(queued, node):
    placed(queued, node)

    with pytest.raises(placing.Late):
        placing.place(queued.pk, [(node.pk, cards(node, 2, 3))])

    assert used(node) == [8, 8, 0, 0]


def test_job_stop_ends_a_waiting_job_at_once(queued, alice):
    actions.stop(queued, by=alice)
    queued.refresh_from_db()

    assert (queued.state, queued.reason) == ("stopped", "owner")
    assert queued.ended_at is not None
    with pytest.raises(IllegalMove, match="The job has ended"):
        actions.stop(queued, by=alice)


def test_job_stop_of_a_running_job_is_a_request(queued, node, olga):
    placed(queued, node)
    transitions.move(queued.pk, Event.STARTED, attempt=1)

    actions.stop(queued, by=olga)

    assert (queued.state, queued.desired, queued.reason) == ("running", "stop", "operator")
    assert queued.events.last().by == olga


def test_job_pause_and_resume_are_requests_in_turn(queued, node, alice):
    with pytest.raises(IllegalMove, match="Only a running job"):
        actions.pause(queued, by=alice)
    placed(queued, node)
    transitions.move(queued.pk, Event.STARTED, attempt=1)

    actions.pause(queued, by=alice)
    paused = queued.desired
    with pytest.raises(IllegalMove, match="already paused"):
        actions.pause(queued, by=alice)
    actions.resume(queued, by=alice)

    assert (paused, queued.desired) == ("pause", "run")


def test_job_restore_goes_on_from_the_newest_whole_checkpoint(queued, node, alice):
    placed(queued, node)
    folder = work.run_dir(queued).checkpoints
    for name in ("step-000010", "step-000020", "step-000030"):
        (folder / name).mkdir(parents=True)
    (folder / "step-000020/meta.json").write_text("{}")
    transitions.move(queued.pk, Event.EXITED_BAD, attempt=1)

    actions.restore(queued, by=alice, changes={"lr": 0.1})

    assert (queued.state, queued.spec) == ("queued", {"lr": 0.1})
    assert queued.resume_from == str(folder / "step-000020")
    assert placed(queued, node).attempts.get(number=2).checkpoint_in == str(folder / "step-000020")


def test_job_restore_takes_checkpoints_of_its_own_only(queued, node, alice, tmp_path):
    actions.stop(queued, by=alice)

    for path in ("/etc", "../../1", str(tmp_path)):
        with pytest.raises(Exception, match=r"The path leaves the permitted folder."):
            actions.restore(queued, by=alice, checkpoint=path)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"gpus_per_node": 5}, "gpus_per_node"),
        ({"nodes": 2, "gpus_per_node": 1}, "nodes"),
        ({"cpus": 9.0}, "cpus"),
    ],
)
def test_job_submit_refuses_what_can_never_fit(alice, cluster, node, asked, field):
    with pytest.raises(submission.NeverFits) as refusal:
        submission.submit(owner=alice, cluster=cluster, kind="command", name="big", **asked)

    assert refusal.value.blamed == field
    assert not Job.objects.exists()


def test_job_submit_refuses_every_number_that_can_never_fit_at_once(alice, cluster, node):
    asked = {"nodes": 3, "gpus_per_node": 5, "cpus": 30.0}

    with pytest.raises(DomainError) as refusal:
        submission.submit(owner=alice, cluster=cluster, kind="command", name="big", **asked)
    shown = preview.preview_request(alice, {**asked, "cluster": cluster}, kind="command")

    assert {one.blamed for one in refusal.value.every} == {"nodes", "gpus_per_node", "cpus"}
    assert shown.kind == "never"
    assert shown.sentence == refusal.value.sentences
    for said in ("30 cores requested;", "Requested GPUs per node: 5.", "3 nodes requested"):
        assert said in shown.sentence


def test_job_submit_refuses_what_would_wait_for_ever_for_what_others_are_guaranteed(alice, cluster, node):
    clusters.save(None, name="lab", devices={"gpu": Quota(3)})
    put = {"owner": alice, "cluster": cluster, "kind": "command", "name": "big", "gpus_per_node": 2}

    with pytest.raises(submission.NeverFits, match=r"Requested GPUs: 2. Not guaranteed to a cluster: 1.") as refusal:
        submission.submit(**put, preemptible=False)

    assert refusal.value.blamed == "preemptible"
    assert submission.submit(**put, preemptible=True).state == "queued"


def test_job_submit_refuses_nonsense(alice, cluster, bob):
    VirtualCluster.objects.create(name="closed")
    closed = VirtualCluster.objects.get(name="closed")
    put = {"owner": alice, "kind": "command", "name": "x"}

    for odd in (
        {"cluster": closed},
        {"cluster": cluster, "nodes": 0},
        {"cluster": cluster, "cpus": 0},
        {"cluster": cluster, "gpus_per_node": -1},
        {"cluster": cluster, "priority": Job.URGENT + 1},
        {"cluster": cluster, "priority": -1},
        {"cluster": cluster, "gpus_per_node": 2, "share": 4},
        {"cluster": cluster, "gpus_per_node": 1, "share": 9},
        {"cluster": cluster, "gpus_per_node": 1, "share": 4, "device_kind": "npu"},
        {"cluster": cluster, "max_runtime": timedelta(0)},
    ):
        with pytest.raises(Invalid):
            submission.submit(**put, **odd)


def test_job_endpoint_has_the_port_where_the_service_runs(queued, node):
    assert endpoints.endpoint(queued) is None
    placed(queued, node)
    attempt = queued.attempts.get()
    attempt.allocations.filter(device__index=0).update(port=20_001)

    assert endpoints.endpoint(queued) == ("127.0.0.1", 20_001)
    transitions.move(queued.pk, Event.EXITED_BAD, attempt=1)
    queued.refresh_from_db()
    assert endpoints.endpoint(queued) is None


def test_transitions_move_gives_back_the_shares_of_all_devices(queued, node):
    placed(queued, node)
    transitions.move(queued.pk, Event.STOP_REQUESTED)
    transitions.move(queued.pk, Event.EXITED_BAD, attempt=1)

    assert Job.objects.get().state == JobState.STOPPED
    assert set(Device.objects.values_list("used", flat=True)) == {0}


def test_job_submit_as_urgent_is_a_right_that_any_role_may_hold(alice, bob, cluster, node):
    role = Role.objects.create(name="On call", actions=["jobs.urgent"])
    bob.roles.add(role)
    put = {"cluster": cluster, "kind": "command", "name": "x", "priority": Job.URGENT}

    with pytest.raises(NotAllowed):
        submission.submit(owner=alice, **put)

    assert submission.submit(owner=User.objects.get(pk=bob.pk), **put).priority == Job.URGENT


def test_job_priority_changes_while_waiting_and_the_event_log_says_who(queued, alice, as_alice, api, node):
    page = as_alice.post(f"/jobs/{queued.pk}/priority/", {"priority": 7})
    answer = api.post(f"/api/v1/jobs/{queued.pk}/priority/", {"priority": 9}, format="json")
    urgent = api.post(f"/api/v1/jobs/{queued.pk}/priority/", {"priority": 100}, format="json")

    queued.refresh_from_db()
    assert (page.status_code, answer.status_code, urgent.status_code) == (302, 202, 403)
    assert queued.priority == 9
    told = [(str(line.message), line.by_id) for line in queued.events.filter(event="priority_changed")]
    assert told == [
        ("Priority changed from 0 to 7.", alice.pk),
        ("Priority changed from 7 to 9.", alice.pk),
    ]
    placed(queued, node)
    with pytest.raises(IllegalMove):
        actions.prioritise(queued, 1, by=alice)


def test_job_priority_of_a_strangers_job_cannot_be_changed(queued, as_bob, as_anna):
    assert as_bob.post(f"/jobs/{queued.pk}/priority/", {"priority": 7}).status_code == 404
    assert as_anna.post(f"/jobs/{queued.pk}/priority/", {"priority": 7}).status_code == 403


def test_queue_api_is_complete_without_other_peoples_names(queued, api, bob, cluster):
    work.job(bob, cluster, name="secret", gpus_per_node=1, share=2, priority=Job.URGENT)

    found = api.get("/api/v1/jobs/queue/").json()

    assert found["total"] == 2
    assert {row["name"] for row in found["waiting"]} == {queued.name, None}
    theirs = next(row for row in found["waiting"] if row["name"] is None)
    assert (theirs["asks_for"], theirs["urgent"], theirs["owner"]) == ("2/8 GPU", True, "bob")
    assert api.get("/api/v1/jobs/queue/?mine=1").json()["total"] == 1


def test_c05_job_priority_of_others_urgent_work_needs_the_urgent_right(queued, alice, bob, olga):
    actions.prioritise(queued, Job.URGENT, by=olga)

    with pytest.raises(NotAllowed):
        actions.prioritise(queued, 0, by=bob)

    assert actions.prioritise(queued, 5, by=alice).priority == 5
