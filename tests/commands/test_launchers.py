"""How a command is started: once on each machine, as several processes, or by torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from aiplatform.lib.errors import Invalid
from tests.factories import work
from training.commands import services
from training.commands.kind import CommandKind
from training.programs import launcher, layout
from workers.core.models import Allocation, Attempt, Job
from workers.core.runs import RunDir
from workers.execution import tickets
from workers.scheduling import placing

kind = CommandKind()
SAY = "import os; print(*(os.environ[n] for n in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE')))"


@pytest.fixture
def two(db):
    return [work.node(name, cores=4, address=f"10.0.0.{n}") for n, name in enumerate(("first", "second"), start=1)]


@pytest.fixture
def placed(alice, two):
    """A command on two machines, placed; its launch and run directory."""

    def one(**fields):
        request = services.CommandRequest(**{"command": "true", "nodes": 2, "cpus": 1.0, **fields})
        command = services.submit(user=alice, request=request)
        placing.place(command.pk, [(node.pk, [(node.devices.get().pk, 8)]) for node in two])
        run = RunDir.for_attempt(command.pk, 1)
        run.path.mkdir(parents=True, exist_ok=True)
        attempt = Attempt.objects.select_related("job").get(job=command.pk)
        return kind.prepare(Job.objects.get(pk=command.pk), attempt, run), run

    return one


def ran(launch, run, **env):
    told = {"PATH": os.environ["PATH"]} | launch.env | env
    return subprocess.run(launch.argv, cwd=run.code, env=told, capture_output=True, text=True, check=False, timeout=60)


def test_launcher_gives_each_machine_its_rank_and_the_others_their_own_command(placed):
    launch, run = placed(
        command="echo first $RANK of $WORLD_SIZE", worker_command="echo other $RANK $LOCAL_RANK $MASTER_ADDR"
    )

    said = [ran(launch, run, AIP_NODE_RANK=rank).stdout for rank in ("0", "1")]

    assert said == ["first 0 of 2\n", "other 1 0 10.0.0.1\n"]


def test_launcher_starts_several_processes_and_numbers_them_over_all_machines(placed):
    launch, run = placed(command=f'{sys.executable} -c "{SAY}"', launcher="processes", processes=2)

    said = {rank: sorted(ran(launch, run, AIP_NODE_RANK=rank).stdout.splitlines()) for rank in ("0", "1")}

    assert said == {
        "0": ["[rank0]: 0 0 4 2", "[rank1]: 1 1 4 2"],
        "1": ["[rank2]: 2 0 4 2", "[rank3]: 3 1 4 2"],
    }


PRINTS = r"""
import os, sys, threading
rank = os.environ["RANK"]
for number in range(200):
    print(f"{rank}-{number} " + "x" * 5000)
print(f"[rank{rank}]: said by torch", file=sys.stderr)
sys.stdout.write("10 %\r20 %\r\nlast without an end")
"""


def test_launcher_marks_every_line_with_the_rank_of_its_process(placed, tmp_path):
    """Long ones too, and never in the middle of another process's line."""
    program = tmp_path / "prints.py"
    program.write_text(PRINTS)
    launch, run = placed(command=f"{sys.executable} {program}", launcher="processes", processes=3, nodes=2)

    done = subprocess.run(
        launch.argv, cwd=run.code, env={"PATH": os.environ["PATH"]} | launch.env | {"AIP_NODE_RANK": "1"},
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip

    assert done.stderr == b""
    for rank in (3, 4, 5):
        mark = f"[rank{rank}]: ".encode()
        own = [line.removeprefix(mark) for line in done.stdout.split(b"\n") if line.startswith(mark)]
        assert sorted(line for line in own if b"x" in line) == sorted(
            f"{rank}-{number} {'x' * 5000}".encode() for number in range(200)
        )
        assert b"said by torch" in own
        assert own[-2:] == [b"10 %\r" + mark + b"20 %\r", b"last without an end"]
    assert all(line.startswith(b"[rank") for line in done.stdout.splitlines() if line)


def test_launcher_shows_a_line_that_waits_for_its_end(placed, tmp_path):
    waits = f"for _ in $(seq 300); do [ -e {tmp_path}/go ] && break; sleep 0.1; done"
    launch, run = placed(command=f"printf 'loading ... '; {waits}; echo done", launcher="processes", processes=2)
    env = {"PATH": os.environ["PATH"]} | launch.env

    with subprocess.Popen(launch.argv, cwd=run.code, env=env, stdout=subprocess.PIPE) as process:
        seen = b""
        while seen.count(b"loading") < 2:
            seen += os.read(process.stdout.fileno(), 4096)
        (tmp_path / "go").touch()
        rest = process.stdout.read()

    assert b"done" not in seen
    lines = (seen + rest).decode().splitlines()
    for mark in ("[rank0]: ", "[rank1]: "):
        own = "".join(line.removeprefix(mark) for line in lines if line.startswith(mark))
        assert own == "loading ... done"
    assert all(line.startswith("[rank") for line in lines)


@pytest.mark.parametrize("says", ["echo here", "printf here"])
def test_launcher_does_not_wait_for_what_a_process_left_behind(placed, says):
    launch, run = placed(command=f"sleep 40 & {says}", launcher="processes", processes=2)
    began = time.monotonic()

    done = ran(launch, run)

    assert sorted(done.stdout.splitlines()) == ["[rank0]: here", "[rank1]: here"]
    assert time.monotonic() - began < 30


def test_launcher_ends_all_processes_with_the_code_of_the_one_that_failed(submitted):
    command = submitted(
        command='if [ "$LOCAL_RANK" = 1 ]; then exit 7; fi; sleep 300', launcher="processes", processes=3
    )
    attempt = Attempt.objects.create(job=command.job, number=1)
    run = RunDir.for_attempt(command.pk, 1)
    run.path.mkdir(parents=True, exist_ok=True)

    assert ran(kind.prepare(command.job, attempt, run), run).returncode == 7


def test_launcher_lets_programs_behind_shells_end_in_their_own_time(submitted, tmp_path):
    program = (
        "import signal, sys, time; "
        "end = lambda *_: (time.sleep(1), open('saved' + sys.argv[1], 'w').close(), sys.exit(9)); "
        "signal.signal(signal.SIGTERM, end); "
        "print('ready', flush=True); time.sleep(300)"
    )
    command = submitted(command=f'{sys.executable} -c "{program}" $RANK', launcher="processes", processes=2)
    attempt = Attempt.objects.create(job=command.job, number=1)
    run = RunDir.for_attempt(command.pk, 1)
    run.path.mkdir(parents=True, exist_ok=True)
    launch = kind.prepare(command.job, attempt, run)
    env = {"PATH": os.environ["PATH"]} | launch.env
    started = subprocess.Popen(launch.argv, cwd=run.code, env=env, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    with started.stdout as said:
        for _process in range(2):
            assert said.readline().endswith("]: ready\n")
        started.terminate()
        code = started.wait(timeout=60)

    assert code == 9
    assert {path.name for path in run.code.glob("saved*")} == {"saved0", "saved1"}


def test_launcher_tells_tensorflow_and_mpi_where_the_machines_are(placed):
    launch, run = placed(command='echo "$TF_CONFIG"; cat $AIP_HOSTFILE', launcher="processes", processes=1)

    said = ran(launch, run, AIP_NODE_RANK="1").stdout.splitlines()

    told = json.loads(said[0])
    ports = list(Allocation.objects.order_by("rank").values_list("port", flat=True))
    assert told["task"] == {"type": "worker", "index": 1}
    assert told["cluster"]["worker"] == [f"10.0.0.1:{ports[0]}", f"10.0.0.2:{ports[1]}"]
    assert said[1:] == ["10.0.0.1 slots=1", "10.0.0.2 slots=1"]


def test_launcher_hands_over_to_the_torchrun_of_the_job(placed, tmp_path):
    fake = tmp_path / "torchrun"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    launch, run = placed(command="python train.py", launcher="torchrun", processes=4)
    port = Allocation.objects.get(rank=0).port

    said = ran(launch, run, AIP_NODE_RANK="1", PATH=f"{tmp_path}:{os.environ['PATH']}").stdout

    assert said.startswith(
        f"--nnodes=2 --node-rank=1 --nproc-per-node=4 --master-addr=10.0.0.1 --master-port={port} --no-python /bin/sh"
    )


def test_launcher_takes_the_platforms_torchrun_where_the_job_has_none(placed, monkeypatch):
    started = []

    def become(program, argv, _env):
        started.append(argv[:4])
        raise FileNotFoundError(program)

    monkeypatch.setattr(os, "execvpe", become)
    _launch, run = placed(command="python train.py", launcher="torchrun")
    with pytest.raises(FileNotFoundError):
        launcher.main(str(run.path / layout.LAYOUT))

    assert [argv[0] for argv in started] == ["torchrun", sys.executable]
    assert started[1][:3] == [sys.executable, "-m", "torch.distributed.run"]


def test_launcher_leaves_a_plain_command_on_one_machine_alone(submitted):
    command = submitted()

    assert not layout.is_needed(command)
    assert layout.processes_of(command) == 1


def test_launcher_counts_one_process_for_each_card(alice, db):
    work.node(gpus=4)
    command = services.submit(
        user=alice, request=services.CommandRequest(command="x", gpus_per_node=4, launcher="torchrun", cpus=1.0)
    )

    assert layout.processes_of(command) == 4
    assert "4 processes in total" in {fact.label: fact.value for fact in kind.facts(command.job)}["Launcher"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"launcher": "mpirun"}, "launcher"),
        ({"processes": 4}, "launcher"),
        ({"processes": 1000, "launcher": "torchrun"}, "processes"),
        ({"worker_command": "true"}, "worker_command"),
        ({"worker_command": "a\0b", "nodes": 2}, "worker_command"),
        ({"array": "9-1"}, "array"),
    ],
)
def test_launcher_refuses_what_means_nothing(submitted, two, fields, named):
    with pytest.raises(Invalid) as refused:
        submitted(**fields)

    assert named in {one.blamed for one in refused.value.every}


def test_launcher_leases_a_port_on_every_machine_of_a_gang(placed):
    placed()

    ports = dict(Allocation.objects.values_list("rank", "port"))

    assert all(port in tickets.env.MEETING_PORTS for port in ports.values())
    assert set(ports) == {0, 1}


def test_launcher_needs_nothing_of_the_platform():
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import runpy; runpy.run_path({launcher.__file__!r})"],
        check=True,
        timeout=60,
    )


def test_array_of_commands_is_submitted_by_page_and_api(as_alice, api, machine):
    form = {"command": "true", "gpus_per_node": 0, "cpus": 1, "nodes": 1, "priority": 0, "retries": 2, "array": "0-4%2"}

    page = as_alice.post("/commands/new/", form)
    answer = api.post("/api/v1/commands/", {"command": "true", "array": "7,9", "retries": 1}, format="json").json()

    first = Job.objects.order_by("pk").first()
    assert page["Location"] == f"/arrays/{first.array_id}/"
    assert (first.array.at_once, first.array.jobs.count(), first.retries) == (2, 5, 2)
    assert (answer["array_index"], Job.objects.filter(array=answer["array"]).count()) == (7, 2)


def test_command_that_follows_another_is_submitted_by_page_and_api(as_alice, api, machine, submitted):
    first = submitted()
    form = {"command": "true", "gpus_per_node": 0, "cpus": 1, "nodes": 1, "priority": 0, "after": f"{first.pk}"}

    page = as_alice.post("/commands/new/", form)
    wrong = as_alice.post("/commands/new/", form | {"after": "12 apples"})
    answer = api.post("/api/v1/commands/", {"command": "true", "after": [first.pk, 99_999]}, format="json")

    assert page.status_code == 302
    assert Job.objects.order_by("-pk").first().dependencies.get().on_id == first.pk
    assert (wrong.status_code, "is not a job number" in wrong.content.decode()) == (422, True)
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["after"]
