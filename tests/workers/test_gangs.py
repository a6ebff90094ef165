"""Jobs over several nodes, played by their records: they start from one command and end together."""

from __future__ import annotations

import os
import time

import pytest

from tests.factories import work
from workers.agent import gangs, partners
from workers.agent.watch import Watched
from workers.kinds import Capabilities, Launch
from workers.models import Allocation, Attempt, Device
from workers.runs import RunDir
from workers.services import jobs, launching, placing, tickets, transitions
from workers.states import Event
from workers.supervisor import records

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def gang(alice, cluster, kind):
    """A job that runs on two machines, both parts alive."""
    kind.capabilities_now = Capabilities(suspend=True)
    nodes = [work.node(name, gpus=1) for name in ("node1", "node2")]
    job = jobs.put(owner=alice, cluster=cluster, kind="command", name="gang", nodes=2, gpus_per_node=1)
    cards = {node: node.devices.get(kind="gpu") for node in nodes}
    placing.place(job.pk, [(node.pk, [(card.pk, 8)]) for node, card in cards.items()])
    job.refresh_from_db()
    run = RunDir.of(job.pk, 1)
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
    return tickets.rank_dir(RunDir.of(job.pk, 1), rank)


def ended(job, rank, code=0, **record):
    records.write(home(job, rank) / records.EXIT, {"code": code, "signal": None, "wish": "run", **record})


def first(job, watched=None):
    """One look of the first machine's agent."""
    attempt = Attempt.objects.select_related("job__cluster").get(job=job, number=1)
    watched = watched or Watched(attempt)
    if attempt.ended_at is None:
        watched.look(attempt)
    job.refresh_from_db()
    return watched


def test_a_lost_part_ends_the_others_and_queues_the_whole_again(gang):
    (RunDir.of(gang.pk, 1).checkpoints / "step-000003").mkdir()
    (RunDir.of(gang.pk, 1).checkpoints / "step-000003" / "meta.json").write_text("{}")
    gone(home(gang, 1))

    partners.look("node2")
    ended(gang, 1, code=None, signal="SIGKILL")  # what its machine makes of it later changes nothing
    watched = first(gang)
    assert (gang.state, records.read_wish(home(gang, 0))) == ("running", "stop")
    ended(gang, 0, code=143, wish="stop")
    first(gang, watched)

    assert (gang.state, gang.queued_at < gang.attempts.get().ended_at) == ("queued", True)
    assert gang.resume_from.endswith("step-000003")
    assert gang.attempts.get().reason == "gang_partner"
    assert set(Device.objects.values_list("used", flat=True)) == {0}


def test_a_part_whose_machine_does_not_answer_is_waited_for_only_so_long(gang, monkeypatch):
    ended(gang, 0, code=1)
    watched = first(gang)
    assert (gang.state, records.read_wish(home(gang, 1))) == ("running", "stop")

    monkeypatch.setattr(gangs, "GATHER_S", 0.0)
    first(gang, watched)
    first(gang, watched)

    assert gang.state == "queued"
    assert gang.attempts.get().sentence == "The part on its node 2 ended."


def test_a_part_that_fails_fails_the_whole(gang):
    ended(gang, 1, code=3)
    partners.look("node2")
    ended(gang, 0, code=143)

    first(gang)

    assert (gang.state, gang.reason, gang.sentence) == ("failed", "gang_partner", "The part on its node 2 ended.")


def test_the_first_that_ends_well_waits_for_the_others(gang):
    ended(gang, 0, code=0)
    watched = first(gang)
    assert (gang.state, records.read_wish(home(gang, 1))) == ("running", "run")

    ended(gang, 1, code=0)
    first(gang, watched)

    assert gang.state == "succeeded"


def test_a_stop_waits_for_every_part_too(gang):
    jobs.stop(gang)
    watched = first(gang)
    ended(gang, 0, code=143, wish="stop")
    first(gang, watched)
    assert gang.state == "stopping"

    ended(gang, 1, code=143, wish="stop")
    first(gang, watched)

    assert (gang.state, gang.reason) == ("stopped", "owner")


def test_the_first_cause_counts(gang):
    run = RunDir.of(gang.pk, 1)

    gangs.blame(run, 1, lost=True)
    gangs.blame(run, 0, lost=False)

    assert (gangs.cause(run)["rank"], gangs.cause(run)["lost"]) == (1, True)
    assert gangs.cause(run)["at"] <= time.time()


def test_a_gang_meets_at_a_port_of_its_own(gang, alice, cluster):
    other = jobs.put(owner=alice, cluster=cluster, kind="command", name="gang", nodes=2, cpus=0.5)
    placing.place(
        other.pk, [(d.node_id, [(d.pk, 4)]) for d in Device.objects.filter(kind="cpu").order_by("node__name")]
    )

    ports = list(Allocation.objects.filter(rank=0).values_list("port", flat=True))

    assert len(set(ports)) == 2
    assert all(port in tickets.MEETINGS for port in ports)
    assert not Allocation.objects.filter(rank=1, port__isnull=False).exists()


def test_the_first_part_is_the_one_that_torchrun_counts_first(alice, cluster, kind):
    """c10d numbers nodes in the order of their addresses, as text."""
    nodes = [work.node(name, address=address) for name, address in (("a", "10.0.0.9"), ("b", "10.0.0.10"))]
    job = jobs.put(owner=alice, cluster=cluster, kind="command", name="gang", nodes=2, cpus=0.5)

    placing.place(job.pk, [(node.pk, [(node.devices.get().pk, 4)]) for node in nodes])

    assert dict(Allocation.objects.values_list("rank", "node__name")) == {0: "b", 1: "a"}


def test_only_the_first_part_prepares_and_the_others_take_over(gang, kind, monkeypatch, settings):
    prepared = []
    monkeypatch.setattr(kind, "prepare", lambda *_: prepared.append(1) or Launch(argv=["train"], env={"X": "1"}))
    monkeypatch.setattr(launching, "_spawn", lambda attempt, home: (alive(home), True)[1])
    attempt = gang.attempts.get()
    for rank in (0, 1):
        (home(gang, rank) / records.SUPERVISOR).unlink()

    settings.NODE = "node2"
    launching.start(attempt.pk, 1)
    assert not (home(gang, 1) / records.LAUNCH).exists()
    settings.NODE = "node1"
    launching.start(attempt.pk, 0)
    settings.NODE = "node2"
    launching.start(attempt.pk, 1)

    told = [records.read(home(gang, rank) / records.LAUNCH) for rank in (0, 1)]
    assert prepared == [1]
    assert [one["argv"] for one in told] == [["train"], ["train"]]
    assert [one["env"]["AIP_NODE_RANK"] for one in told] == ["0", "1"]
    assert [one["env"]["PET_RDZV_CONF"] for one in told] == ["is_host=true", "is_host=false"]
    assert (RunDir.of(gang.pk, 1).path / launching.COMMAND).stat().st_mode & 0o077 == 0


def test_the_network_interface_is_found_by_its_address():
    assert tickets.interface_of("127.0.0.1") == "lo"
    assert tickets.interface_of("203.0.113.9") == ""
