"""A card that fails is offered no more and ends its job with the reason; a stranger on a card is told, never killed."""

import subprocess
import sys

import pytest

from tests.factories import work
from workers.core.models import Device, Job, Node
from workers.execution.agent import cards
from workers.execution.agent.loop import Agent
from workers.resources.nodes.telemetry.probe import FakeProbe, Fault, Reading

pytestmark = pytest.mark.django_db


@pytest.fixture
def node():
    return work.node(gpus=3)


@pytest.fixture
def on_card(alice, cluster, node):
    def put(index):
        job = work.job(alice, cluster, name=f"on {index}", state="running")
        work.hold(job, node.devices.get(kind="gpu", index=index))
        return job

    return put


def health(node):
    return list(node.devices.filter(kind="gpu").order_by("index").values_list("health", flat=True))


@pytest.mark.parametrize(
    ("fault", "state", "word"),
    [(Fault.VANISHED, "gone", "fell off the bus"), (Fault.ECC, "sick", "memory error"), (Fault.HUNG, "sick", "hangs")],
)
def test_card_that_failed_is_drained_and_its_job_fails_with_the_reason(node, on_card, fault, state, word):
    mine, others, memory = on_card(1), on_card(0), cards.Memory()
    readings = [Reading(0, 10.0), Reading(1, fault=fault), Reading(2)]

    cards.watch(node, readings, memory)
    first = health(node)
    cards.watch(node, readings, memory)

    mine.refresh_from_db()
    assert first == ["ok", state, "ok"]  # offered no more, at once
    assert (mine.state, mine.reason) == ("failed", "device_failed")
    assert word in str(mine.message)
    assert "GPU 1 of node1" in str(mine.message)
    assert Job.objects.get(pk=others.pk).state == "running"
    assert list(node.events.values_list("event", "device__index")) == [(f"device_{state}", 1)]


def test_card_watch_fails_no_job_for_one_slow_answer_of_the_driver(node, on_card):
    job, memory = on_card(0), cards.Memory()

    cards.watch(node, [Reading(0, fault=Fault.HUNG)], memory)
    cards.watch(node, [Reading(0, 5.0)], memory)
    cards.watch(node, [Reading(0, 5.0)], memory)

    assert Job.objects.get(pk=job.pk).state == "running"
    assert health(node) == ["ok", "ok", "ok"]
    assert list(node.events.values_list("event", flat=True)) == ["device_ok", "device_sick"]


def test_card_watch_reports_a_foreign_process_and_leaves_it_alone(node, on_card):
    job, memory = on_card(0), cards.Memory()
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        readings = [Reading(0, processes={stranger.pid: 500.0})]
        cards.watch(node, readings, memory)
        first = health(node)
        cards.watch(node, readings, memory)

        device = node.devices.get(kind="gpu", index=0)
        assert (first, device.health) == (["ok"] * 3, "external")  # a process that ends is no stranger
        assert str(stranger.pid) in str(device.health_message)
        assert stranger.poll() is None
        assert Job.objects.get(pk=job.pk).state == "running"
    finally:
        stranger.communicate(b"\n")

    for _ in range(2):
        cards.watch(node, [Reading(0, processes={stranger.pid: 500.0})], memory)
    assert health(node)[0] == "ok"


def test_cards_is_ours_knows_a_jobs_own_process(node, settings):
    ours = subprocess.Popen(
        [sys.executable, "-c", "print('here', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"AIP_OUTPUT_DIR": f"{settings.DATA_ROOT}/jobs/1/1/outputs"},
    )
    try:
        assert ours.stdout is not None
        ours.stdout.readline()  # before a program has begun it has no environment
        assert cards.is_ours(ours.pid)
        assert cards.is_ours(2**22 + 1)  # nobody here: the driver may name what exists only outside
    finally:
        ours.communicate(b"\n")


def test_agent_health_reports_a_changed_number_of_cards():
    agent = Agent("n1")
    for probe in (FakeProbe(2), FakeProbe(2), FakeProbe(1)):
        agent.probe = probe
        agent.register()

    node = Node.objects.get()
    assert [str(event.message) for event in node.events.all()] == ["Had 2 GPUs, now has 1."]
    assert health(node) == ["ok", "gone"]


def test_agent_registers_simulated_npus_as_devices_of_their_kind():
    agent = Agent("n1")
    agent.probe = agent.sampler.probe = FakeProbe(1, npus=8)
    agent.register()
    agent.beat()

    npus = Device.objects.filter(kind="npu")
    assert list(npus.values_list("group", flat=True)) == [0] * 4 + [1] * 4
    assert set(npus.values_list("simulated", "health")) == {(True, "ok")}


def test_card_watch_keeps_the_newest_checkpoint_of_a_job_making_room(node, on_card):
    job = on_card(1)
    Job.objects.filter(pk=job.pk).update(state="preempting", desired="release")
    newest = work.run_dir(job).checkpoints / "step-7"
    newest.mkdir(parents=True)
    (newest / "meta.json").write_text("{}")

    cards.watch(node, [Reading(1, fault=Fault.VANISHED)], cards.Memory())

    job.refresh_from_db()
    assert (job.state, job.resume_from) == ("queued", str(newest))
