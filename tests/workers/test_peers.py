"""Ways between the ranks of one job: whom a rank reaches, and that it never reaches anybody else."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.utils.timezone import now

from aiplatform import env
from tests.factories import work
from tests.running import free_port, wait_for
from tests.workers.exec_client import Asked
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.execution import job_users, launch, sandbox_access, tickets
from workers.execution.exec import peers, relay, socket_paths
from workers.execution.exec.channels import ChannelRefused
from workers.execution.exec.peers import NoPeer
from workers.jobs import submission
from workers.scheduling import placing
from workers.supervisor import records

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("relays and jobs")]


@contextmanager
def served():
    """What `exec_relay` keeps for the machines of the test, in a thread of its own, until the end of the block."""
    loop, ready = asyncio.new_event_loop(), threading.Event()

    async def serve(over):
        between, server = peers.Peers(), await relay.listen("127.0.0.1", env.EXEC_PORT)
        keeping = asyncio.create_task(between.maintain())
        ready.set()
        await over.wait()
        broke.extend([keeping.exception()] if keeping.done() else [])
        keeping.cancel()
        between.end()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    broke: list[BaseException | None] = []
    over = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve(over)))
    thread.start()
    assert ready.wait(60)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(60)
        assert broke == []
        loop.close()


@pytest.fixture
def machines(db, settings, monkeypatch):
    """Two machines that are this one; all that they keep lies in one short folder."""
    monkeypatch.setattr(env, "EXEC_PORT", free_port())
    monkeypatch.setattr(peers, "BEGIN_S", 1.0)
    with tempfile.TemporaryDirectory(prefix="aip-p-") as folder:
        settings.RUN_DIR = Path(folder)
        yield [work.node(name, gpus=0) for name in ("node1", "node2")]


@pytest.fixture
def gang(alice, cluster, kind, machines, settings):
    """`gang("sleep 600")`: Alice's job on both machines, running; each rank runs the line."""
    kind.exec_server = True
    begun = []

    def start(line, owner=alice):
        kind.prepare = lambda job, attempt, run: Launch(argv=["sh", "-c", f"echo up; {line}"])
        job = submission.submit(owner=owner, cluster=cluster, kind="command", name="gang", nodes=2, cpus=0.5)
        cores = [(node.pk, [(node.devices.get(kind="cpu").pk, 1)]) for node in machines]
        attempt = placing.place(job.pk, cores)
        for rank, node in enumerate(machines):
            settings.NODE = node.name
            launch.start(attempt.pk, rank)
        settings.NODE = "node1"
        run = RunDir.for_attempt(job.pk, 1)
        begun.extend(tickets.rank_dir(run, rank) for rank in (0, 1))
        for home in begun[-2:]:
            wait_for(lambda home=home: (home / "log.txt").exists() and "up" in (home / "log.txt").read_text())
        job.refresh_from_db()
        return job

    yield start
    for home in begun:
        records.write_request(home, "kill")
        wait_for(lambda home=home: records.read(home / records.EXIT))


def said_by(job, rank=0):
    """What the program of a rank said, without the platform's own lines."""
    text = (tickets.rank_dir(RunDir.for_attempt(job.pk, 1), rank) / "log.txt").read_text()
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("["))


def socket_of(job, rank=0):
    """The socket of a rank, once somebody listens there."""
    path = socket_paths.peers_of(job.pk, 1, rank) / socket_paths.PEERS_SOCKET

    def answers():
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(path)) == 0

    wait_for(answers)
    return path


def asked(of, rank=0, /, **request):
    """A session as a rank asks for it."""
    return Asked(socket_of(of, rank), **request)


def test_rank_starts_programs_in_the_others_with_input_output_and_exit_code(gang):
    line = (
        'if [ "$AIP_NODE_RANK" = 0 ]; then echo told | aip-rsh 1 "cat; echo from rank \\$AIP_NODE_RANK; exit 7"; '
        "echo code $?; aip-rsh node2 'kill -KILL $$'; echo code $?; aip-rsh node7 true; echo code $?; fi; sleep 600"
    )
    with served():
        job = gang(line)
        wait_for(lambda: said_by(job).count("code") == 3, 60, "it does not come to an end")

    said = said_by(job).splitlines()
    assert said[1:5] == ["told", "from rank 1", "code 7", "code 137"]
    assert said[-2:] == [
        ("aip-rsh: node7: This node does not run the job. Nodes of the job: 0 (127.0.0.1), 1 "
"(127.0.0.1)."), "code 255",
    ]  # fmt: skip


def test_rank_reaches_the_others_from_every_rank_and_after_the_relay_was_started_again(gang):
    job = gang("sleep 600")
    for rank in (0, 1):
        with served(), asked(job, rank, to=str(1 - rank), command="echo rank $AIP_NODE_RANK") as session:
            session.finish()

            assert session.said[b"O"] == f"rank {1 - rank}\n".encode()


def test_rank_sees_nothing_of_what_other_jobs_reach_theirs_by(gang):
    other = gang("sleep 600")
    folder = socket_paths.peers()

    job = gang(f"ls {folder}; ls {folder}/{other.pk}-1-0 2>&1; touch {folder}/{other.pk}-1-1/x {folder}/new; sleep 600")

    wait_for(lambda: "new" in said_by(job), 30)
    tier = Attempt.objects.get(job=job).sandbox_tier
    if tier < 2:
        pytest.skip("below tier 2 jobs of one user see each other's folders")
    lines = said_by(job).splitlines()
    assert lines[1] == f"{job.pk}-1-0"
    assert not (folder / "new").exists()
    assert f"{other.pk}-1-0" not in [line for line in lines if ":" not in line]


@pytest.mark.parametrize(
    "more",
    [
        {"job": 1}, {"attempt": 1, "rank": 0, "target": [1, 1, 0]}, {"act": "sftp"}, {"act": "port", "port": 22},
        {"env": {"LC_X": "1"}}, {"cwd": "/"},
    ],
)  # fmt: skip
def test_rank_that_asks_for_more_gets_a_session_in_its_own_job_all_the_same(gang, more):
    with served():
        other = gang("sleep 600")
        job = gang("sleep 600")
        more = {name: other.pk if name == "job" else value for name, value in more.items()}
        with asked(job, to="1", command="echo $AIP_JOB_ID-$AIP_NODE_RANK-$LC_X; pwd", **more) as session:
            session.finish()

    who, folder = session.said[b"O"].decode().splitlines()
    assert who == f"{job.pk}-1-"
    assert folder != "/"


@pytest.mark.parametrize(
    "line",
    [b"\n", b"[]\n", b"x" * 200_000, b"[" * 100_000 + b"\n", b'{"to": 1}\n', b'{"to": "1", "command": 3}\n',
     b'{"to": "1", "pty": 1}\n', b'{"to": "1"', b"\xff\n"],
)  # fmt: skip
def test_relay_survives_what_is_no_request_of_a_rank(gang, line):
    with served():
        job = gang("sleep 600")
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(60)
            stranger.connect(str(socket_of(job)))
            try:
                stranger.sendall(line)
                stranger.shutdown(socket.SHUT_WR)
                assert stranger.recv(100) == b""
            except (ConnectionResetError, BrokenPipeError):
                pass

        with asked(job, to="1", command="echo on") as session:
            session.finish()

    assert session.said[b"O"] == b"on\n"


@pytest.mark.parametrize("to", ["2", "-1", "", "0/../1", "node3", "127.0.0.2", "1\n", "01"])
def test_way_from_a_rank_leads_to_no_machine_beside_its_own(gang, to):
    job = gang("sleep 600")

    with pytest.raises(NoPeer):
        peers.way_from((job.pk, 1, 0), to)


def test_way_from_a_rank_ends_with_its_attempt(gang):
    job = gang("sleep 600")
    other = gang("sleep 600")

    assert peers.way_from((job.pk, 1, 0), "1").target == (job.pk, 1, 1)
    assert peers.way_from((other.pk, 1, 1), "0").target == (other.pk, 1, 0)
    with pytest.raises(NoPeer):
        peers.way_from((job.pk, 2, 0), "1")
    Job.objects.filter(pk=job.pk).update(attempt_number=2)  # queued and placed anew
    with pytest.raises(NoPeer):
        peers.way_from((job.pk, 1, 0), "1")


def test_way_from_a_rank_of_a_paused_job_is_closed(gang):
    job = gang("sleep 600")
    Job.objects.filter(pk=job.pk).update(state="paused")

    with pytest.raises(ChannelRefused) as caught:
        peers.way_from((job.pk, 1, 0), "1")
    assert caught.value.code == "paused"


def test_sweep_takes_folders_of_attempts_that_are_over(gang):
    job, other = gang("sleep 600"), gang("sleep 600")
    Attempt.objects.filter(job=job).update(ended_at=Attempt.objects.get(job=job).assigned_at)
    (socket_paths.peers() / "kept").mkdir()

    peers.sweep()

    left = {path.name for path in socket_paths.peers().iterdir()}
    assert left == {"kept", f"{other.pk}-1-0", f"{other.pk}-1-1"}


def test_folder_of_a_rank_is_for_its_own_user_alone(machines, monkeypatch):
    given = []
    monkeypatch.setattr(os, "chown", lambda path, uid, gid: given.append((path, uid, gid)))

    folder = peers.make((7, 1, 0), 4321)

    assert given == [(folder, -1, 4321)]
    assert folder.stat().st_mode & 0o777 == 0o750
    assert folder.parent.stat().st_mode & 0o777 == 0o711


@pytest.fixture
def strange(machines):
    """The folder of all ranks, made by somebody else before."""
    folder = socket_paths.peers()
    folder.mkdir(mode=0o755)
    (folder / "1-1-0").mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 4321, 4321)
    else:
        folder.chmod(0o777)
    return folder


def test_folder_of_all_ranks_that_somebody_else_made_is_neither_used_nor_swept(strange):
    with pytest.raises(PermissionError, match="not a folder of this user alone"):
        peers.make((7, 1, 0), 0)
    peers.sweep()

    assert [path.name for path in strange.iterdir()] == ["1-1-0"]


def test_folder_of_all_ranks_that_is_a_link_is_not_used(machines, tmp_path):
    socket_paths.peers().symlink_to(tmp_path)

    with pytest.raises(PermissionError):
        peers.make((7, 1, 0), 0)

    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only a root platform has users to give")
@pytest.mark.parametrize(
    ("level", "mode", "tmp_mode", "reaches"),
    [(1, 0o711, 0o700, True), (1, 0o700, 0o1777, True), (1, 0o700, 0o700, False), (2, 0o700, 0o700, True)],
)
def test_rank_goes_a_way_of_its_own_where_the_platforms_folder_is_closed(
    gang, monkeypatch, settings, level, mode, tmp_mode, reaches
):
    """Below tier 2, where a job has a user of its own and no sandbox that shows it the platform's folder."""
    job = gang("sleep 600")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(tmp_mode)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        settings.RUN_DIR.chmod(mode)
        monkeypatch.setattr(job_users, "uid_of", lambda owner: 4321)

        found = sandbox_access.peers(Attempt.objects.get(job=job), 0, level)

        assert bool(found) == reaches
        assert level >= 2 or job_users.closed_to_jobs(found, 4321) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only a root platform has users to give")
def test_rank_below_tier_2_asks_the_relay_on_that_way_and_no_other_user_does(gang, monkeypatch, settings):
    """The relay's socket is there, the program too; who has another user is kept out by the folder."""
    job = gang("sleep 600")
    with tempfile.TemporaryDirectory(prefix="aip-t-") as folder:
        Path(folder).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        earlier = peers.make((job.pk, 1, 0), 0)  # both ways of one rank are kept, whichever is seen first
        settings.RUN_DIR.chmod(0o700)
        monkeypatch.setattr(job_users, "uid_of", lambda owner: 4321)
        [own] = sandbox_access.peers(Attempt.objects.get(job=job), 0, 1)
        with served():
            wait_for((own / socket_paths.PEERS_SOCKET).is_socket, otherwise=lambda: f"there is {list(own.rglob('*'))}")
            wait_for((earlier / socket_paths.PEERS_SOCKET).is_socket)
            said = {user: _answer_to(user, own / socket_paths.PEERS_SOCKET) for user in (4321, 4322)}
        peers.sweep()

        assert said[4321].startswith('{"error"')
        assert "does not run the job" in said[4321]
        assert "Permission denied" in said[4322]
        assert (own / peers.PROGRAM).is_file()
        Attempt.objects.update(ended_at=now())
        peers.sweep()
        assert not own.exists()


def _answer_to(user, path):
    """What the relay tells a program of that user which asks for a machine that is none of the job's."""
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        's.sendall(b\'{"to": "9.9.9.9"}\\n\'); print(s.makefile().readline())'
    )
    command = ["/usr/bin/setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "/usr/bin/env", "python3"]
    done = subprocess.run(
        [*command, "-I", "-c", program, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


def test_job_on_one_machine_has_no_way_to_others(alice, cluster, kind, machines, settings):
    kind.exec_server = True
    settings.NODE = "node1"
    kind.prepare = lambda job, attempt, run: Launch(argv=["true"])
    job = submission.submit(owner=alice, cluster=cluster, kind="command", name="one", cpus=0.5)
    core = machines[0].devices.get(kind="cpu")
    attempt = placing.place(job.pk, [(machines[0].pk, [(core.pk, 1)])])

    launch.start(attempt.pk)

    ticket = json.loads((RunDir.for_attempt(job.pk, 1).path / records.LAUNCH).read_text())
    assert not socket_paths.peers().exists()
    assert "peers" not in ticket["env"]["PATH"]
    wait_for(lambda: records.read(RunDir.for_attempt(job.pk, 1).path / records.EXIT))
