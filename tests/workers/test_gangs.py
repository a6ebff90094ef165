"""Jobs over several nodes, played by their records: they start from one command and end together."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils.timezone import now

from aiplatform import env
from tests.factories import work
from workers.core.kinds import Capabilities, Launch
from workers.core.models import Allocation, Attempt, Device, Job, Node
from workers.core.runs import RunDir
from workers.core.states import Event
from workers.execution import gang_environment, launch, supervisors, tickets
from workers.execution.agent import gangs, remote_ranks
from workers.execution.agent.attempt_monitor import AttemptMonitor
from workers.execution.agent.loop import Agent
from workers.jobs import actions, submission, transitions
from workers.jobs.output import metrics
from workers.resources.nodes.telemetry.probe import FakeProbe
from workers.scheduling import placing
from workers.supervisor import records

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def gang(alice, cluster, kind):
    """A job that runs on two machines, both parts alive."""
    kind.capabilities_now = Capabilities(pause=True, suspend=True, restore=True)
    nodes = [work.node(name, gpus=1) for name in ("node1", "node2")]
    job = submission.submit(owner=alice, cluster=cluster, kind="command", name="gang", nodes=2, gpus_per_node=1)
    cards = {node: node.devices.get(kind="gpu") for node in nodes}
    placing.place(job.pk, [(node.pk, [(card.pk, 8)]) for node, card in cards.items()])
    job.refresh_from_db()
    run = RunDir.for_attempt(job.pk, 1)
    for rank in (0, 1):
        home = tickets.rank_dir(run, rank)
        home.mkdir(parents=True)
        alive(home)
    run.checkpoints.mkdir()
    transitions.move(job.pk, Event.STARTED, attempt=1)
    return job


def alive(home):
    pid = os.getpid()
    here = {"pid": pid, "start_ticks": records.start_ticks(pid), "boot_id": records.boot_id(), "child": {"pid": pid}}
    records.write(home / records.SUPERVISOR, here)


def gone(home):
    records.write(home / records.SUPERVISOR, {"pid": 1, "start_ticks": 0, "boot_id": records.boot_id()})


def home(job, rank):
    return tickets.rank_dir(RunDir.for_attempt(job.pk, 1), rank)


def ended(job, rank, code=0, **record):
    records.write(home(job, rank) / records.EXIT, {"code": code, "signal": None, "requested": "run", **record})


def keep_checkpoint(job):
    folder = RunDir.for_attempt(job.pk, 1).checkpoints / "step-000003"
    folder.mkdir()
    (folder / "meta.json").write_text("{}")


def first(job, watched=None):
    """One look of the first machine's agent."""
    attempt = Attempt.objects.select_related("job__cluster").get(job=job, number=1)
    watched = watched or AttemptMonitor(attempt)
    if attempt.ended_at is None:
        watched.check(attempt)
    job.refresh_from_db()
    return watched


def test_gang_with_a_lost_rank_ends_the_others_and_queues_whole_again(gang):
    keep_checkpoint(gang)
    gone(home(gang, 1))

    remote_ranks.check_all("node2")
    ended(gang, 1, code=None, signal="SIGKILL")  # what its machine makes of it later changes nothing
    watched = first(gang)
    assert (gang.state, records.read_request(home(gang, 0))) == ("running", "stop")
    ended(gang, 0, code=143, requested="stop")
    first(gang, watched)

    assert (gang.state, gang.queued_at < gang.attempts.get().ended_at) == ("queued", True)
    assert gang.resume_from.endswith("step-000003")
    assert gang.attempts.get().reason == "gang_partner"
    assert set(Device.objects.values_list("used", flat=True)) == {0}


def test_gang_waits_only_so_long_for_a_silent_machine(gang, monkeypatch):
    ended(gang, 0, code=1)
    watched = first(gang)
    assert (gang.state, records.read_request(home(gang, 1))) == ("running", "stop")

    monkeypatch.setattr(gangs, "GATHER_S", 0.0)
    first(gang, watched)
    first(gang, watched)

    assert gang.state == "queued"
    assert str(gang.attempts.get().message) == "The process on node rank 2 exited."


def test_gang_fails_whole_when_one_rank_fails(gang):
    ended(gang, 1, code=3)
    remote_ranks.check_all("node2")
    ended(gang, 0, code=143, requested="stop")

    first(gang)

    said = "The process on node rank 2 exited. The program exited with code 3. See its log."
    assert (gang.state, gang.reason, str(gang.message)) == ("failed", "gang_partner", said)


@pytest.mark.parametrize("beginner", [0, 1])
def test_f44_gang_whose_program_was_killed_starts_again_whole(gang, beginner):
    """The other part's program falls for want of a partner, with a code of its own, and is seen first."""
    other = 1 - beginner
    ended(gang, other, code=1)
    ended(gang, beginner, code=None, signal="SIGKILL", killed=False)
    remote_ranks.check_all("node2")

    first(gang, first(gang))

    assert gang.state == "queued"
    assert str(gang.attempts.get().message) == f"The process on node rank {beginner + 1} was killed."


OVER_DISK = {"signal": "SIGTERM", "limit": "disk", "disk_limit_bytes": 1 << 30, "disk_bytes": 2 << 30}


@pytest.mark.parametrize("how", [{"signal": "SIGSEGV"}, {"signal": "SIGKILL", "oom": True}, OVER_DISK])
def test_gang_fails_whole_when_a_program_fell_by_its_own_fault(gang, how):
    ended(gang, 1, code=None, **how)
    remote_ranks.check_all("node2")
    ended(gang, 0, code=143, requested="stop")

    first(gang)

    assert (gang.state, gang.reason) == ("failed", "disk_limit" if how is OVER_DISK else "gang_partner")
    assert ("Disk limit 1 GiB exceeded" in str(gang.message)) == (how is OVER_DISK)


def test_gang_that_failed_is_restarted_where_requested(gang):
    Job.objects.filter(pk=gang.pk).update(restart="on_failure")
    ended(gang, 1, code=3)
    remote_ranks.check_all("node2")
    ended(gang, 0, code=143, requested="stop")

    first(gang)

    assert (gang.state, gang.not_before is not None) == ("queued", True)


@pytest.mark.parametrize("earlier", [0, 1])
def test_gang_at_its_time_limit_saves_every_rank_and_restores_from_it(gang, earlier):
    """The supervisors began a moment apart; whose clock is first takes the others along, as its programs do."""
    records.write(home(gang, earlier) / records.STATUS, {"state": "suspending", "limit": "max_runtime"})
    watched = first(gang)
    remote_ranks.check_all("node2")
    watched = first(gang, watched)
    assert {records.read_request(home(gang, rank)) for rank in (0, 1)} == {"suspend"}

    ended(gang, 1 - earlier, code=1, requested="run")  # torchrun's code when its program left with 75
    remote_ranks.check_all("node2")
    first(gang, watched)
    assert gang.state == "running"
    assert records.read_request(home(gang, earlier)) == "suspend"  # it may save yet
    ended(gang, earlier, code=75, requested="suspend", limit="max_runtime")
    keep_checkpoint(gang)
    remote_ranks.check_all("node2")
    first(gang, watched)

    assert (gang.state, gang.reason) == ("stopped", "max_runtime")
    assert actions.restore(gang).resume_from.endswith("step-000003")


def test_gang_time_limit_that_ended_all_ranks_between_looks_is_no_failure(gang):
    ended(gang, 1, code=75)
    ended(gang, 0, code=75, requested="suspend", limit="max_runtime")

    remote_ranks.check_all("node2")
    first(gang)

    assert (gang.state, gang.reason) == ("stopped", "max_runtime")


def test_gang_saves_every_rank_and_moves_when_a_machine_goes_down(gang):
    records.write(home(gang, 1) / records.STATUS, {"state": "suspending", "limit": "", "node_down": True})
    remote_ranks.check_all("node2")
    watched = first(gang)
    assert records.read_request(home(gang, 0)) == "suspend"
    keep_checkpoint(gang)
    for rank in (0, 1):
        ended(gang, rank, code=75, requested="suspend", node_down=rank == 1)

    first(gang, watched)

    assert (gang.state, gang.resume_from[-11:]) == ("queued", "step-000003")


def test_gang_makes_room_as_a_whole(gang):
    Attempt.objects.update(started_at=now() - timedelta(hours=1))
    actions.release(gang.pk, for_job=99)
    watched = first(gang)
    remote_ranks.check_all("node2")
    assert {records.read_request(home(gang, rank)) for rank in (0, 1)} == {"suspend"}
    assert gang.state == "preempting"

    keep_checkpoint(gang)
    ended(gang, 0, code=75, requested="suspend")
    first(gang, watched)
    assert (gang.state, records.read_request(home(gang, 1))) == ("preempting", "suspend")  # it has its minute too
    ended(gang, 1, code=1, requested="suspend")
    remote_ranks.check_all("node2")
    first(gang, watched)

    assert (gang.state, gang.desired, gang.resume_from[-11:]) == ("queued", "run", "step-000003")
    assert gangs.cause(RunDir.for_attempt(gang.pk, 1)) is None
    assert set(Device.objects.values_list("used", flat=True)) == {0}


def test_gang_paused_whose_rank_is_lost_comes_back_paused(gang):
    actions.pause(gang)
    transitions.move(gang.pk, Event.PAUSED, attempt=1)
    gone(home(gang, 1))
    remote_ranks.check_all("node2")
    ended(gang, 0, code=143, requested="stop")

    first(gang)

    assert (gang.state, gang.desired) == ("queued", "pause")


@pytest.mark.parametrize(("state", "expected"), [("unreachable", "queued"), ("live", "running")])
def test_gang_with_a_silent_first_machine_is_continued_by_another(gang, monkeypatch, state, expected):
    """The machine of the first part is away with its part; the second falls for want of it."""
    monkeypatch.setattr(gangs, "GATHER_S", 0.0)
    Node.objects.filter(name="node1").update(state=state)
    ended(gang, 1, code=1)

    remote_ranks.check_all("node2")
    remote_ranks.check_all("node2")

    gang.refresh_from_db()
    assert gang.state == expected


def test_gang_end_request_is_not_softened_by_a_later_look(gang):
    gangs.end(RunDir.for_attempt(gang.pk, 1), [1])

    remote_ranks.check_all("node2")

    assert records.read_request(home(gang, 1)) == "stop"


def test_gang_rank_that_ends_well_first_waits_for_the_others(gang):
    ended(gang, 0, code=0)
    watched = first(gang)
    assert (gang.state, records.read_request(home(gang, 1))) == ("running", "run")

    ended(gang, 1, code=0)
    first(gang, watched)

    assert gang.state == "succeeded"


def test_gang_stop_waits_for_every_rank(gang):
    actions.stop(gang)
    watched = first(gang)
    ended(gang, 0, code=143, requested="stop")
    first(gang, watched)
    assert gang.state == "stopping"

    ended(gang, 1, code=143, requested="stop")
    first(gang, watched)

    assert (gang.state, gang.reason) == ("stopped", "owner")


def test_attempt_reason_keeps_the_first_cause(gang):
    run = RunDir.for_attempt(gang.pk, 1)

    gangs.blame(run, 1, gangs.RankEnd.LOST)
    gangs.blame(run, 0, gangs.RankEnd.FAILED)

    cause = gangs.cause(run)
    assert (cause.rank, cause.how) == (1, gangs.RankEnd.LOST)
    assert cause.at <= time.time()


def test_gang_meets_at_a_port_of_its_own(gang, alice, cluster):
    other = submission.submit(owner=alice, cluster=cluster, kind="command", name="gang", nodes=2, cpus=0.5)
    placing.place(
        other.pk, [(d.node_id, [(d.pk, 4)]) for d in Device.objects.filter(kind="cpu").order_by("node__name")]
    )

    ports = {
        rank: list(Allocation.objects.filter(rank=rank).values_list("port", flat=True).order_by("pk"))
        for rank in (0, 1)
    }

    assert len(set(ports[0])) == 2
    assert len(set(ports[1])) == 2
    assert all(port in env.MEETING_PORTS for port in (*ports[0], *ports[1]))


def test_gang_first_rank_is_the_one_that_torchrun_counts_first(alice, cluster, kind):
    """c10d numbers nodes in the order of their addresses, as text."""
    nodes = [work.node(name, address=address) for name, address in (("a", "10.0.0.9"), ("b", "10.0.0.10"))]
    job = submission.submit(owner=alice, cluster=cluster, kind="command", name="gang", nodes=2, cpus=0.5)

    placing.place(job.pk, [(node.pk, [(node.devices.get().pk, 4)]) for node in nodes])

    assert dict(Allocation.objects.values_list("rank", "node__name")) == {0: "b", 1: "a"}


def test_gang_first_rank_prepares_and_the_others_take_over(gang, kind, monkeypatch, settings):
    prepared = []
    monkeypatch.setattr(kind, "prepare", lambda *_: prepared.append(1) or Launch(argv=["train"], env={"X": "1"}))
    monkeypatch.setattr(
        supervisors, "StartRequest", lambda home: SimpleNamespace(wait=lambda: alive(home), close=lambda: None)
    )
    attempt = gang.attempts.get()
    for rank in (0, 1):
        (home(gang, rank) / records.SUPERVISOR).unlink()

    settings.NODE = "node2"
    launch.start(attempt.pk, 1)
    assert not (home(gang, 1) / records.LAUNCH).exists()
    settings.NODE = "node1"
    launch.start(attempt.pk, 0)
    settings.NODE = "node2"
    launch.start(attempt.pk, 1)

    told = [records.read(home(gang, rank) / records.LAUNCH) for rank in (0, 1)]
    assert prepared == [1]
    assert [one["argv"] for one in told] == [["train"], ["train"]]
    assert [one["env"]["AIP_NODE_RANK"] for one in told] == ["0", "1"]
    assert [one["env"]["PET_RDZV_CONF"] for one in told] == ["is_host=true", "is_host=false"]
    assert (RunDir.for_attempt(gang.pk, 1).path / launch.COMMAND).stat().st_mode & 0o077 == 0


def test_gang_environment_hands_over_the_cards_of_fast_networks(tmp_path):
    for name in ("uverbs0", "uverbs1", "rdma_cm", "umad0", "issm0"):  # the last two manage the network
        (tmp_path / name).touch()

    assert gang_environment.rdma_files(tmp_path) == [str(tmp_path / name) for name in ("rdma_cm", "uverbs0", "uverbs1")]
    assert gang_environment.rdma_files(tmp_path / "none") == []


def test_gang_alone_opens_the_cards_of_fast_networks(gang, monkeypatch):
    monkeypatch.setattr(gang_environment, "rdma_files", lambda: ["/dev/infiniband/uverbs0"])
    attempt = Attempt.objects.select_related("job").get(job=gang)
    held = launch.by_rank(attempt)[0]
    together = tickets.make(attempt, 0, held, Launch(argv=["true"])).devices
    attempt.job.nodes = 1

    alone = tickets.make(attempt, 0, held, Launch(argv=["true"])).devices
    assert together == [*alone, "/dev/infiniband/uverbs0"]


def test_gang_environment_finds_the_network_by_its_address():
    assert gang_environment.interface_of("127.0.0.1") == "lo"
    assert gang_environment.interface_of("203.0.113.9") == ""
    assert gang_environment.network_of("lo") == "127.0.0.0/8"
    assert gang_environment.network_of("") == ""


def test_gang_ranks_are_measured_on_their_machines_and_held_to_their_share(gang, monkeypatch):
    Job.objects.filter(pk=gang.pk).update(share=2)
    Allocation.objects.update(share=2)
    agent = Agent("node2", clock=iter([0.0, 0.0, 31.0]).__next__)
    agent.probe = agent.sampler.probe = FakeProbe(1, lambda index: 40.0)
    readings = [replace(one, processes={os.getpid(): 5000.0}) for one in agent.probe.read()]
    monkeypatch.setattr(agent.probe, "read", lambda: readings)
    Attempt.objects.update(busy_at=now() - timedelta(hours=5))

    agent.beat()
    agent.beat()

    gang.refresh_from_db()
    own = metrics.curves(gang).series["system/node2/gpu0_own_mib"]
    assert [value for _step, value in own] == [5000.0, 5000.0]
    assert gang.attempts.get().busy_at > now() - timedelta(minutes=1)
    assert (gang.desired, gang.reason) == ("stop", "out_of_memory")
