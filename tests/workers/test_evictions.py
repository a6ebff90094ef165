"""Evictions in the rows: who may be asked, what the cards and the story say, and every way it can end."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils.timezone import now

from tests.conftest import signed_in
from tests.factories import work
from workers.core.kinds import Capabilities
from workers.core.models import Attempt, Device, Job, Node
from workers.core.states import Desired, Event, IllegalMove
from workers.execution import evictions
from workers.execution.agent import eviction_probe
from workers.execution.agent.attempt_monitor import UNHEARD_S, AttemptMonitor
from workers.jobs import actions, buttons, submission, transitions
from workers.planning import planner_input
from workers.resources.monitoring import usage
from workers.resources.nodes import eviction_policy
from workers.resources.nodes.telemetry.probe import Card
from workers.scheduling import overdue, reading
from workers.scheduling.loop import Scheduler
from workers.supervisor import records

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kind")]

CAN = {"driver": "580.65.06", "tier": 2, "code": "", "detail": ""}
SEEN = {"code": "text", "facts": {"text": "Seen."}}
PROOF = {
    "driver": "580.65.06",
    "tier": 2,
    "ok": True,
    "message": SEEN,
    "at": "",
    "seconds": 1.0,
}


@pytest.fixture
def node(db):
    """A machine with two cards of 16 GiB and 100 GiB of its own, where evictions were proven and allowed."""
    facts = {"memory_total_mib": 102_400, "memory_used_mib": 10_240, "at": now().isoformat()}
    return work.node(gpus=2, facts=facts, evicts=True, evict_can=CAN, evict_proof=PROOF)


@pytest.fixture
def running(alice, cluster, node):
    """An unwilling job on both cards that has run for an hour."""
    job = work.job(alice, cluster, state="running", gpus_per_node=2)
    work.hold(job, *node.devices.filter(kind="gpu"))
    Attempt.objects.filter(job=job).update(started_at=now() - timedelta(hours=1))
    me = {"pid": 1, "start_ticks": records.start_ticks(1), "boot_id": records.boot_id(), "child": {"pid": 1}}
    records.write(work.run_dir(job).path / records.SUPERVISOR, me)
    return job


@pytest.fixture
def urgent(olga, cluster):
    return submission.submit(
        owner=olga, cluster=cluster, kind="command", name="urgent", gpus_per_node=2, priority=Job.URGENT
    )


def look(job, state=None, **more):
    """The agent looks; the supervisor says `state`."""
    if state:
        records.write(work.run_dir(job).path / records.STATUS, {"state": state, **more})
    seen = Attempt.objects.select_related("job__cluster").get(job=job, number=job.attempt_number)
    AttemptMonitor(seen).check(seen)
    job.refresh_from_db()
    return job


def used():
    return list(Device.objects.filter(kind="gpu").order_by("index").values_list("used", flat=True))


def evicted(job):
    evictions.evict(job.pk, for_job=99, why="urgent")
    look(job, "evicted")
    return job


def test_eviction_gives_the_cards_to_urgent_work_and_back(running, urgent):
    scheduler = Scheduler()
    scheduler.tick()
    look(running)
    wished = records.read_request(work.run_dir(running).path)
    look(running, "evicting")
    assert (wished, running.state, used()) == ("evict", "running", [8, 8])

    look(running, "evicted")
    assert (running.state, running.reason, used()) == ("paused", "evicted", [0, 0])
    scheduler.tick()
    urgent.refresh_from_db()
    assert (urgent.state, used()) == ("assigned", [8, 8])
    scheduler._planned = float("-inf")
    scheduler.tick()
    running.refresh_from_db()
    assert (running.desired, used()) == ("evict", [8, 8])  # not while somebody is there

    transitions.move(urgent.pk, Event.STARTED, attempt=1)
    transitions.move(urgent.pk, Event.EXITED_OK, attempt=1)
    scheduler.tick()
    look(running)
    assert records.read_request(work.run_dir(running).path) == "run"
    look(running, "running")
    assert (running.state, running.desired, running.attempt_number, used()) == ("running", "run", 1, [8, 8])
    told = list(running.events.values_list("event", flat=True))
    assert told == ["room_requested", "evicted", "coming_back", "resumed"]
    attempt = running.attempts.get()
    assert (attempt.evicted_at, attempt.returned_at is not None, attempt.evicted_s > 0) == (None, True, True)


def test_eviction_that_cannot_happen_runs_on_and_is_not_repeated(running, urgent):
    Scheduler().tick()

    look(running, "kept", why="cuCheckpointProcessLock says CUDA_ERROR_NOT_SUPPORTED (801)")

    assert (running.state, running.desired, used()) == ("running", "run", [8, 8])
    assert "CUDA_ERROR_NOT_SUPPORTED" in str(running.events.get(event="stayed").message)
    seen = reading.snapshot(now(), ({}, {}), 60.0)
    assert not seen.running[0].evictable
    with pytest.raises(IllegalMove):
        evictions.evict(running.pk, for_job=urgent.pk, why="urgent")


def test_eviction_unknown_to_an_old_supervisor_keeps_its_job(running, urgent):
    Scheduler().tick()
    records.write(work.run_dir(running).path / records.STATUS, {"state": "running"})
    seen = Attempt.objects.select_related("job__cluster").get(job=running)
    watched = AttemptMonitor(seen)
    watched.check(seen)
    running.refresh_from_db()
    asked = running.desired

    watched.eviction_requested -= UNHEARD_S + 1
    watched.check(Attempt.objects.select_related("job__cluster").get(job=running))

    running.refresh_from_db()
    assert (asked, running.desired, running.state) == ("evict", "run", "running")


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"evicts": False}, {}),
        ({"evict_proof": {}}, {}),
        ({"evict_proof": {**PROOF, "ok": False}}, {}),
        ({"evict_can": {**CAN, "driver": "590.01"}}, {}),
        ({"evict_can": {**CAN, "code": "mps"}}, {}),
        ({}, {"memory_used_mib": 62_000}),
        ({}, {"at": (now() - timedelta(minutes=5)).isoformat()}),
    ],
)
def test_eviction_is_refused_where_not_allowed_proven_or_affordable(running, urgent, node, changes, facts):
    Node.objects.filter(pk=node.pk).update(facts={**node.facts, **facts}, **changes)

    Scheduler().tick()

    running.refresh_from_db()
    assert running.desired == "run"
    with pytest.raises(IllegalMove):
        evictions.evict(running.pk, for_job=urgent.pk, why="urgent")


def test_eviction_policy_counts_job_limits_and_moved_memory_of_the_host(running, node):
    whole = eviction_policy.spare_mib(now())[node.pk]
    Job.objects.filter(pk=running.pk).update(memory_mib=40_960)
    bound = eviction_policy.spare_mib(now())[node.pk]
    evicted(running)

    assert whole == 102_400 - 10_240 - 10_240
    assert bound == 102_400 - 40_960 - 10_240
    assert eviction_policy.spare_mib(now())[node.pk] == bound - 2 * 16_384


def test_eviction_spares_jobs_with_checkpoints_and_ready_services(running, kind):
    def may():
        return reading.snapshot(now(), ({}, {}), 60.0).running[0].evictable

    unwilling = may()
    Job.objects.filter(pk=running.pk).update(preemptible=True)
    kind.capabilities_now = Capabilities(suspend=True)
    leaves_a_checkpoint = may()
    kind.capabilities_now = Capabilities(suspend=False)
    leaves_none = may()
    kind.evictable = False

    assert (unwilling, leaves_a_checkpoint, leaves_none, may()) == (True, False, True, False)


def test_eviction_stop_ends_the_job_without_touching_others_cards(running, alice, cluster, node):
    evicted(running)
    other = work.job(alice, cluster, state="running", gpus_per_node=2)
    work.hold(other, *node.devices.filter(kind="gpu"))

    actions.stop(running)
    look(running)
    assert running.state == "stopping"
    records.write(work.run_dir(running).path / records.EXIT, {"code": None, "signal": "SIGKILL", "requested": "stop"})
    look(running)

    assert (running.state, used()) == ("stopped", [8, 8])


def test_eviction_buttons_say_why_they_are_disabled(running):
    evicted(running)

    shut = {button.verb: button.why for button in buttons.list_buttons(running) if not button.allowed}

    assert set(shut) == {"pause", "continue", "suspend", "finish", "restore"}
    assert "left its GPUs" in shut["continue"]


@pytest.mark.parametrize("boot", ["same", "another"])
def test_eviction_after_loss_of_supervisor_or_machine_uses_the_checkpoint(running, boot):
    evicted(running)
    saved = work.run_dir(running).checkpoints / "step-000007"
    saved.mkdir(parents=True)
    (saved / "meta.json").write_text("{}")
    gone = {"pid": 1, "start_ticks": -1, "boot_id": records.boot_id() if boot == "same" else boot, "child": {"pid": 2}}
    records.write(work.run_dir(running).path / records.SUPERVISOR, gone)

    look(running)

    assert (running.state, running.desired, running.resume_from) == ("queued", "run", str(saved))
    assert used() == [0, 0]


def test_eviction_return_that_fails_queues_the_job_again_and_says_why(running):
    evicted(running)
    evictions.come_back(running.pk)
    record = {"code": None, "signal": "SIGKILL", "requested": "run", "limit": "stranded", "stranded": "no memory"}
    records.write(work.run_dir(running).path / records.EXIT, record)

    look(running)

    assert (running.state, used()) == ("queued", [0, 0])
    assert "no memory" in str(running.message)


def test_eviction_returns_to_its_own_cards_or_not_at_all(running, alice, cluster, node):
    evicted(running)
    other = work.job(alice, cluster, state="running", gpus_per_node=1)
    work.hold(other, node.devices.get(kind="gpu", index=1))

    with pytest.raises(IllegalMove):
        evictions.come_back(running.pk)

    running.refresh_from_db()
    assert (running.desired, used()) == (Desired.EVICT, [0, 8])


def test_eviction_stops_the_run_time_and_counts_no_card_hours(running, olga):
    Job.objects.filter(pk=running.pk).update(max_runtime=timedelta(hours=2))
    evicted(running)
    Attempt.objects.filter(job=running).update(
        assigned_at=now() - timedelta(hours=4), started_at=now() - timedelta(hours=4),
        evicted_at=now() - timedelta(hours=3),
    )  # fmt: skip
    running.events.filter(event="evicted").update(at=now() - timedelta(hours=3))

    assert overdue.over_time(now()) == []
    assert sum(planner_input.read_usage(now())[0].values()) == pytest.approx(2, rel=0.02)
    begin = now() - timedelta(days=1)
    assert usage.report(olga, begin=begin, end=now()).total.gpu_hours == pytest.approx(2, rel=0.02)


def test_eviction_policy_is_allowed_by_operators_only_where_proven(node, olga):
    Node.objects.filter(pk=node.pk).update(evicts=False, evict_proof={})
    node.refresh_from_db()
    with pytest.raises(eviction_policy.NotProven):
        eviction_policy.allow(node, by=olga)

    eviction_policy.keep_proof(node, PROOF)
    node.refresh_from_db()
    eviction_policy.allow(node, by=olga)

    assert eviction_policy.in_effect(node)
    eviction_policy.forbid(node, by=olga)
    assert not eviction_policy.in_effect(node)
    assert set(node.events.values_list("event", flat=True)) == {
        "eviction_proof", "evictions_allowed", "evictions_forbidden",
    }  # fmt: skip


def test_eviction_probe_says_what_the_driver_can(tmp_path):
    card = Card(index=0, uuid="GPU-1", name="Card", memory_mib=16_000)

    assert eviction_probe.check([], 2, 64_000)["code"] == "no_card"
    assert eviction_probe.check([Card(0, "x", "Card", 1, simulated=True)], 2, 64_000)["code"] == "simulated"
    assert eviction_probe.check([card], 4, 64_000)["code"] == "container"
    assert eviction_probe.check([card], 2, 8_000)["code"] == "little_memory"
    said = eviction_probe.check([card], 2, 64_000, library=str(tmp_path / "missing.so"))
    assert (said["code"], "no CUDA driver" in said["detail"]) == ("no_driver", True)


def test_eviction_probe_reads_the_driver_version_from_the_kernel(tmp_path):
    about = tmp_path / "version"
    about.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 13"
    )

    assert (eviction_probe.driver_version(about), eviction_probe.driver_version(tmp_path / "none")) == ("580.65.06", "")


def test_eviction_policy_is_the_same_on_page_api_and_command(node, olga):
    browser = signed_in(olga)
    page = f"/cluster/nodes/{node.pk}/"
    Node.objects.filter(pk=node.pk).update(evicts=False, evict_proof={})
    before = browser.get(page).content.decode()
    refused = browser.post(f"/api/v1/nodes/{node.pk}/evict/")

    eviction_policy.keep_proof(node, PROOF)
    proven = browser.get(page).content.decode()
    browser.post(f"{page}do/evict/")
    allowed = browser.get(page).content.decode()
    api = browser.get(f"/api/v1/nodes/{node.pk}/").json()
    call_command("node", "keep", node.name)

    assert "prove_eviction" in before
    assert "Allow evictions" not in before
    assert (refused.status_code, refused.json()["code"]) == (409, "eviction_not_proven")
    assert ("Allow evictions" in proven, "Forbid evictions" in allowed) == (True, True)
    assert (api["evicts"], api["evicts_not"]) == (True, "")
    assert not Node.objects.get(pk=node.pk).evicts
