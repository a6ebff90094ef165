"""Shares of a card by CUDA MPS: what jobs are given, and how daemons live, with a stand-in for NVIDIA's program."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import call_command

from aiplatform import env
from tests.conftest import signed_in
from tests.factories import work
from tests.fakes.mps_control import FakeControl
from tests.running import wait_for
from workers.core.kinds import Launch
from workers.core.models import Allocation, Node, NodeEvent
from workers.execution import launch, measurement_jobs, mps_gain, tickets
from workers.execution.agent import cards
from workers.execution.agent.mps import MpsWatch
from workers.execution.mps import daemon as daemons
from workers.execution.mps.daemon import Daemon
from workers.management.commands import measure_mps
from workers.resources.nodes import eviction_policy, mps_policy
from workers.resources.nodes.telemetry import nvml
from workers.resources.nodes.telemetry.probe import Card, Sharing
from workers.supervisor import records, sandbox

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("kind"),
    pytest.mark.sockets("the daemon answers at a socket"),
]
MAIN = Path(records.__file__).with_name("__main__.py")
SHOW = """
import json, os
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
seen = {"env": dict(os.environ), "pipe": sorted(os.listdir(pipe))}
open("/dev/shm/mine", "w").close()
open(os.path.join(os.environ["AIP_OUTPUT_DIR"], "seen.json"), "w").write(json.dumps(seen))
"""


@pytest.fixture
def control(monkeypatch):
    """The stand-in, first on the path, with folders of daemons in a short place; none of them outlives the test."""
    top = Path(tempfile.mkdtemp(prefix="mps-"))
    top.chmod(0o755)
    (top / "bin").mkdir()
    fake = FakeControl(top / "bin")
    monkeypatch.setenv("PATH", str(top / "bin"), prepend=os.pathsep)
    monkeypatch.setattr(env, "MPS_DIR", str(top / "d"))
    monkeypatch.setattr(nvml, "sharing", lambda uuid: Sharing((8, 0), "default"))
    yield fake
    for owner in daemons.owners():
        with Daemon(owner).locked():
            Daemon(owner).end()
    shutil.rmtree(top)


@pytest.fixture
def node(db):
    """A machine with two cards of 16 GiB whose shares go by MPS."""
    return work.node(gpus=2, mps=True)


@pytest.fixture
def share(alice, cluster, node):
    """Makes running jobs on two eighths of a card."""

    def make(owner=alice, card=0, eighths=2):
        job = work.job(owner, cluster, state="running", gpus_per_node=1, share=eighths)
        work.hold(job, node.devices.get(kind="gpu", index=card), share=eighths)
        return job.attempts.get()

    return make


def ticket_of(attempt, argv=("true",)):
    return tickets.make(attempt, 0, launch.by_rank(attempt)[0], Launch(argv=list(argv)))


def allocation(attempt):
    return attempt.allocations.get()


def over(attempt):
    """Its end, as far as daemons look at it."""
    attempt.allocations.update(released_at=attempt.assigned_at)


def daemon_pid(owner):
    return records.read(Daemon(owner.pk).home / "record.json")["pid"]


def test_mps_off_changes_nothing(control, share, node):
    Node.objects.update(mps=False)

    ticket = ticket_of(share())

    assert not any(name.startswith("CUDA_MPS") for name in ticket.env)
    assert (ticket.shm, control.calls(), daemons.owners()) == ("", [], [])
    assert not Allocation.objects.exclude(mps=False, mps_refusal={}).exists()


def test_mps_job_truly_gets_the_daemon_and_its_limits(control, share, alice):
    attempt = share()
    ticket = ticket_of(attempt, [sys.executable, "-c", SHOW])
    home = work.run_dir(attempt.job).path
    records.write(home / records.LAUNCH, ticket.to_json())
    subprocess.run([sys.executable, "-I", "-S", str(MAIN), str(home)], check=True, timeout=90)
    ended = wait_for(lambda: records.read(home / records.EXIT))

    assert ended["code"] == 0, (ended, (home / records.LOG).read_text())
    seen = json.loads((home / "outputs" / "seen.json").read_text())
    assert seen["env"]["CUDA_MPS_PIPE_DIRECTORY"] == str(Daemon(alice.pk).pipe)
    assert seen["env"]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
    assert seen["env"]["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=4096M"
    assert seen["pipe"] == ["control", "nvidia-cuda-mps-control.pid"]
    if ticket.tier >= sandbox.BUBBLEWRAP:  # where the daemon and this job have one folder of shared memory
        assert [entry.name for entry in Daemon(alice.pk).shm.iterdir()] == ["mine"]
    Path("/dev/shm/mine").unlink(missing_ok=True)  # of a job without a sandbox


def test_mps_daemon_runs_once_per_person_as_the_user_of_the_jobs(control, share, alice, bob):
    tickets_made = [ticket_of(share()), ticket_of(share(card=1)), ticket_of(share(bob))]

    starts = control.starts()
    assert len(starts) == 2
    assert [start["uid"] for start in starts] == [
        tickets_made[0].uid or os.geteuid(),
        tickets_made[2].uid or os.geteuid(),
    ]
    assert starts[0]["env"]["CUDA_VISIBLE_DEVICES"] == "node1-0,node1-1"
    assert starts[0]["env"]["CUDA_MPS_LOG_DIRECTORY"] == str(Daemon(alice.pk).log)
    assert cards.is_ours(daemon_pid(alice))  # a card it computes on is not taken for somebody else's


def test_mps_whole_cards_have_no_daemon(control, share):
    ticket = ticket_of(share(eighths=8))

    assert "CUDA_MPS_PIPE_DIRECTORY" not in ticket.env
    assert control.calls() == []


@pytest.mark.parametrize(
    ("about", "code"),
    [
        (Sharing((3, 0), "default"), "mps.old_card"),
        (Sharing((8, 0), "exclusive"), "mps.exclusive"),
        (Sharing((8, 0), "prohibited"), "mps.exclusive"),
        (None, "mps.silent"),
    ],
)
def test_mps_card_that_cannot_be_shared_leaves_the_job_without(control, share, monkeypatch, about, code):
    monkeypatch.setattr(nvml, "sharing", lambda uuid: about)
    attempt = share()

    ticket = ticket_of(attempt)

    assert "CUDA_MPS_PIPE_DIRECTORY" not in ticket.env
    assert ticket.env["AIP_GPU_MEMORY_MIB"] == "4096"
    assert (allocation(attempt).mps, allocation(attempt).mps_refusal.code) == (False, code)
    assert control.starts() == []


def test_mps_without_the_program_or_with_one_that_fails_leaves_the_job_without(control, share, monkeypatch):
    first, second, third = share(), share(card=1), share()
    control.fails("Cannot find MPS control daemon process")

    ticket_of(first)
    monkeypatch.setattr(daemons, "program", lambda: "")
    ticket_of(second)
    monkeypatch.setattr(env, "MPS_DIR", "/dev/null/none")
    ticket_of(third)

    refusals = [allocation(attempt).mps_refusal for attempt in (first, second, third)]
    assert [refusal.code for refusal in refusals] == ["mps.not_started", "mps.no_program", "mps.no_folder"]
    assert "Cannot find MPS control daemon process" in str(refusals[0])


def test_mps_refuses_simulated_cards_slices_and_containers(share, control, node, monkeypatch):
    simulated, slice_ = share(), share(card=1)
    node.devices.filter(kind="gpu", index=0).update(simulated=True)
    node.devices.filter(kind="gpu", index=1).update(parent=0)

    for attempt in (simulated, slice_):
        ticket_of(attempt)

    assert allocation(simulated).mps_refusal.code == "mps.simulated"
    assert allocation(slice_).mps_refusal.code == "mps.slice"


def test_mps_before_volta_has_no_limits_and_fewer_clients(control, share, monkeypatch):
    monkeypatch.setattr(nvml, "sharing", lambda uuid: Sharing((6, 1), "default"))
    first, second = share(), share()

    told = ticket_of(first).env
    control.clients(*((pid, "node1-0") for pid in range(100, 116)))
    ticket_of(second)

    assert "CUDA_MPS_PIPE_DIRECTORY" in told
    assert not {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"} & set(told)
    assert allocation(second).mps_refusal.code == "mps.full"


def test_mps_counts_clients_by_card(control, share):
    control.clients(*((pid, "node1-0") for pid in range(100, 148)))
    crowded, beside = share(), share(card=1)

    ticket_of(crowded)
    ticket_of(beside)

    assert allocation(crowded).mps_refusal.facts == {"card": 0, "most": 48}
    assert allocation(beside).mps


def test_mps_watch_starts_a_dead_daemon_again_and_says_so_once(control, share, alice, node):
    attempt = share()
    ticket_of(attempt)
    before, watch = daemon_pid(alice), MpsWatch()
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: not Daemon(alice.pk).is_alive())

    watch.check(node.name)
    watch.check(node.name)

    assert daemon_pid(alice) != before
    assert Daemon(alice.pk).is_alive()
    assert len(control.starts()) == 2
    assert control.starts()[1]["uid"] == control.starts()[0]["uid"]
    assert NodeEvent.objects.get(event="mps_ended").message.facts == {"jobs": [str(attempt.job_id)]}
    assert attempt.job.events.get(event="mps_lost").attempt == 1
    attempt.refresh_from_db()
    assert attempt.ended_at is None


def test_mps_watch_finds_a_daemon_again_and_ends_it_with_its_last_client(control, share, alice, node):
    attempt = share()
    ticket_of(attempt)
    pid = daemon_pid(alice)
    (Daemon(alice.pk).home / "record.json").unlink()  # the agent was killed before it wrote that down
    control.clients((101, "node1-0"))

    after_restart = MpsWatch()
    after_restart.check(node.name)
    assert (daemon_pid(alice), len(control.starts())) == (pid, 1)
    assert after_restart.facts["daemons"] == [{"owner": alice.pk, "programs": 1}]

    over(attempt)
    after_restart.check(node.name)

    assert {"told": "quit"} in control.calls()
    assert records.start_ticks(pid) is None
    assert not Daemon(alice.pk).has_folders()
    assert not Daemon(alice.pk).shm.parent.exists()
    assert after_restart.facts["daemons"] == []


def test_mps_daemon_that_does_not_quit_is_killed(control, share, alice, node, monkeypatch):
    attempt = share()
    ticket_of(attempt)
    pid = daemon_pid(alice)
    monkeypatch.setattr(daemons, "END_S", 0.1)
    monkeypatch.setattr(daemons, "ASK_S", 0.1)
    os.kill(pid, signal.SIGSTOP)
    over(attempt)

    MpsWatch().check(node.name)

    assert wait_for(lambda: records.start_ticks(pid) is None)


def test_mps_daemon_trusts_no_process_id_that_jobs_wrote(control, share, alice):
    ticket_of(share())
    daemon = Daemon(alice.pk)
    with daemon.locked():
        daemon.end()
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        daemon.pipe.mkdir()
        (daemon.pipe / "nvidia-cuda-mps-control.pid").write_text(str(sleeper.pid))

        with daemon.locked():
            assert not daemon._rediscover()
            daemon.end()

        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_mps_watch_reports_obstacles_also_while_mps_is_off(node, control, monkeypatch):
    monkeypatch.setattr(nvml, "sharing", lambda uuid: Sharing((8, 0), "exclusive" if uuid == "node1-1" else "default"))
    watch = MpsWatch()

    watch.check(node.name)
    allowed = watch.facts
    Node.objects.update(mps=False)
    watch.check(node.name)

    assert [why["code"] for why in allowed["obstacles"]] == ["mps.exclusive"]
    assert watch.facts == allowed
    Node.objects.update(facts={"mps": watch.facts})
    with pytest.raises(mps_policy.MpsImpossible):
        mps_policy.allow(Node.objects.get(pk=node.pk))


COUNTS = """
import pathlib, sys, time
print("ready", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
import os
print("steps", 300 if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else 100, flush=True)
"""


def test_mps_gain_is_the_ratio_of_both_rounds_in_the_sandbox(control, node, settings, monkeypatch, capsys):
    settings.NODE = node.name
    card = Card(0, "node1-0", "Test card", 16_384)
    monkeypatch.setattr(measure_mps, "find_probe", lambda: SimpleNamespace(cards=lambda: [card]))
    monkeypatch.setattr(mps_gain.measure, "__kwdefaults__", {**mps_gain.measure.__kwdefaults__, "program": COUNTS})
    control.clients((1, "node1-0"), (2, "node1-0"))

    call_command("measure_mps", "--clients", "2", "--seconds", "1")

    assert "ratio 3.00 with 2 programs on GPU 0" in capsys.readouterr().out
    node.refresh_from_db()
    assert (node.mps_gain["alone"], node.mps_gain["together"]) == (200.0, 600.0)
    assert {"told": "quit"} in control.calls()
    assert not Daemon(measurement_jobs.OWNER).has_folders()


def test_mps_gain_is_not_claimed_where_no_program_became_a_client(control, tmp_path):
    tmp_path.chmod(0o755)

    with pytest.raises(mps_gain.Failed, match="0 of 2 programs became clients"):
        mps_gain.measure(Card(0, "node1-0", "Card", 16_384), clients=2, seconds=1, folder=tmp_path, program=COUNTS)


def test_mps_policy_is_the_same_on_page_api_and_command(control, share, node, olga, alice):
    Node.objects.update(mps=False)
    attempt = share()
    browser, page = signed_in(olga), f"/cluster/nodes/{node.pk}/"
    before = browser.get(page).content.decode()
    browser.post(f"{page}do/mps-on/")
    allowed = browser.get(f"/api/v1/nodes/{node.pk}/").json()
    ticket_of(attempt)
    watch = MpsWatch()
    watch.check(node.name)
    Node.objects.update(facts={"mps": watch.facts}, mps_gain={"card": 0, "clients": 4, "alone": 100, "together": 250})
    running = browser.get(page).content.decode()
    browser.post(f"/api/v1/nodes/{node.pk}/mps-off/")
    off = browser.get(f"/api/v1/nodes/{node.pk}/").json()
    call_command("node", "mps-on", node.name)

    assert "time slicing" in before
    assert (allowed["mps"], off["mps"], allowed["mps_not"]) == (True, False, [])
    assert "1 daemon is running, 0 programs." in running
    assert "25 %" in running
    assert "2.50 times as many steps" in running
    assert "Disable MPS" in running
    assert list(node.events.order_by("pk").values_list("event", flat=True)) == [
        "mps_allowed",
        "mps_forbidden",
        "mps_allowed",
    ]
    assert signed_in(alice).post(f"{page}do/mps-off/").status_code == 403


def test_mps_view_shows_jobs_of_others_without_their_names(control, share, node, alice, bob):
    ticket_of(share())

    (client,) = mps_policy.view(node, bob).clients

    assert (client.job, client.percent, client.memory_mib) == (None, 25.0, 4096)
    assert mps_policy.view(node, alice).clients[0].job is not None


def test_mps_forbids_evictions_whose_clients_cannot_be_moved(node):
    can = {"driver": "580.65.06", "tier": 2, "code": "", "detail": ""}
    node.evict_can, node.evict_proof = can, {**can, "ok": True}

    assert "MPS" in eviction_policy.obstacle(node)
    node.mps = False
    assert eviction_policy.obstacle(node) == ""
