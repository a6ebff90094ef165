"""Jobs whose processes start each other on two machines, each in a network of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import nodes, postgresql
from tests.running import HERE, MANAGE, wait_for

STUB = HERE / "tests" / "fakes" / "jupyter.py"
OVER = ("succeeded", "failed", "stopped", "lost")
ADD_UP = """\
import ctypes, os, socket
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
known = lambda name: ctypes.byref(ctypes.c_char.in_dll(mpi, name))
world, double, total = known("ompi_mpi_comm_world"), known("ompi_mpi_double"), known("ompi_mpi_op_sum")
mpi.MPI_Init(None, None)
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
count = 1 << 20
mine, sums = (ctypes.c_double * count)(*[rank.value + 1.0] * count), (ctypes.c_double * count)()
mpi.MPI_Allreduce(mine, sums, count, double, total, world)
said = f"rank {rank.value} of {size.value} on {socket.gethostname()} sum {set(sums)}\\n"
os.write(1, said.encode())  # in one piece: four processes share the log
mpi.MPI_Finalize()
"""
GLOO = """\
import datetime, os, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=120))
told = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(told)
print("sum", told.item(), "of", dist.get_world_size(), "on", os.uname().nodename, flush=True)
dist.destroy_process_group()
"""


class Stage:
    """A server that gives no work to itself, two machines that joined, and Alice, whose jobs run on both."""

    def __init__(self, cluster: nodes.Cluster) -> None:
        from accounts.services import tokens
        from tests.factories import people
        from workers.core.models import Node, VirtualCluster
        from workers.resources.nodes import lifecycle

        self.cluster = cluster
        for name in ("node2", "node3"):
            cluster.join(name)
        lifecycle.drain(Node.objects.get(name="server"))
        self.owner = people.user("alice", cluster=VirtualCluster.objects.get(name="default"))
        self.token = tokens.issue(user=self.owner, name="test")[1]

    def submit(self, command: str, **fields: Any) -> Any:
        """Alice's command on two machines."""
        from training.commands import services

        request = services.CommandRequest(command=command, nodes=2, cpus=0.5, **fields)
        return services.submit(user=self.owner, request=request).job

    def log(self, job: Any, attempt: int = 1) -> str:
        """What the programs of all its parts said, the first one first; no line of the platform's, "[program] …"."""
        run = self.cluster.root / "shared" / "jobs" / str(job.pk) / str(attempt)
        logs = [run / "log.txt", *sorted(run.glob("ranks/*/log.txt"))]
        lines = [line for path in logs if path.exists() for line in path.read_text(errors="replace").splitlines()]
        return "\n".join(line for line in lines if not line.startswith("["))

    def call(self, route: str, fields: dict[str, Any] | None = None) -> Any:
        """What the server's API answers Alice: it alone has the key that seals what an environment keeps secret."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if fields is None else json.dumps(fields).encode()
        request = urllib.request.Request(f"{self.cluster.address}/api/v1/{route}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def is_in(self, job: Any, *states: str) -> bool:
        job.refresh_from_db()
        return job.state in states

    def places(self, job: Any) -> dict[int, str]:
        """The machines of a job by rank."""
        from workers.core.models import Allocation

        rows = Allocation.objects.filter(attempt__job=job, released_at=None)
        return dict(rows.values_list("rank", "node__name"))

    def ssh(self, job: Any, rank: int, line: str) -> str:
        """What a line says that OpenSSH's client runs on one machine of a job, by a one-time password of Alice's."""
        from workers.access.ssh import passwords

        ask = self.cluster.root / "ask"
        ask.write_text(f"#!/bin/sh\necho {passwords.make(job, by=self.owner)[1]}\n")
        ask.chmod(0o700)
        words = ["ssh", "-p", "8022", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
        words += ["-o", "LogLevel=ERROR", f"job-{job.pk}.{rank}@{self.cluster.server.address}", line]
        env = os.environ | {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ended(self, job: Any, seconds: float = 60, attempt: int = 1) -> str:
        """Its log, once it has ended well."""

        def over() -> bool:
            job.refresh_from_db()
            return job.state in OVER

        wait_for(over, seconds, f"job {job.pk} does not end: {job.state} {job.message}")
        assert job.state == "succeeded", (job.state, str(job.message), self.log(job, attempt)[-3000:])
        return self.log(job, attempt)


def script(text: str, program: str = sys.executable) -> str:
    """A command that writes a program into its folder and says how it is started."""
    return f"#!{program}\n{text}"


def mpirun_meets(stage: Stage) -> str:
    """The platform starts four processes by mpirun, two on each machine; they add up by MPI."""
    job = stage.submit(script(ADD_UP), launcher="mpi", processes=2)
    said = stage.ended(job)
    lines = sorted(line for line in said.splitlines() if line.startswith("rank"))
    assert [line.split()[1] for line in lines] == ["0", "1", "2", "3"], said
    assert sorted(line.split()[5] for line in lines) == ["node2", "node2", "node3", "node3"], said
    assert all(line.endswith("sum {10.0}") for line in lines), said
    return "4 processes on 2 machines added up 1,048,576 numbers by MPI"


def own_mpirun_line(stage: Stage) -> str:
    """A person's own mpirun line finds hosts and agent; aip-rsh carries input, output and exit code."""
    lines = [
        "mpirun hostname",
        "echo told | aip-rsh 1 cat",
        "aip-rsh 1 'echo $AIP_NODE_RANK; exit 7' || echo code $?",
        "aip-rsh 9 true || echo refused $?",
        "aip-rsh 1 'kill -KILL $$' || echo killed $?",
    ]
    said = stage.ended(stage.submit("\n".join(lines), launcher="first", processes=2))
    words = said.splitlines()
    assert sorted(words[:4]) == ["node2", "node2", "node3", "node3"], said
    assert words[4:7] == ["told", "1", "code 7"], said
    assert "This node does not run the job." in said, said
    assert words[-2:] == ["refused 255", "killed 137"], said
    return "4 slots on 2 machines, input, output and exit code by aip-rsh"


def gloo_meets(stage: Stage) -> str:
    """Processes that begin with env:// alone, and by torchrun, over two machines."""
    jobs = [
        stage.submit(script(GLOO), launcher=how, processes=processes)
        for how, processes in (("once", 0), ("torchrun", 2))
    ]
    for job, (total, count) in zip(jobs, ((3, 2), (10, 4)), strict=True):
        said = stage.ended(job, 120)
        assert said.count(f"sum {total} of {count} on node") == count, said
    return "gloo added up by env:// and by torchrun"


def distributed_environment(stage: Stage) -> str:
    """An environment over two machines: JupyterLab answers on the first, terminals and SSH reach the second.

    One machine loses its power: all of it is lost and started again whole, as a command of that time is.
    """
    from workers.core.models import Allocation, Job
    from workers.execution.exec import channels, programs
    from workers.jobs import actions

    made = stage.call("environments/", {"name": "together", "nodes": 2, "cpus": 0.5})
    command = stage.submit('[ "$AIP_ATTEMPT" = 2 ] || sleep 600; mpirun hostname', launcher="first", processes=1)
    job = Job.objects.get(pk=made["id"])

    def is_ready() -> bool:
        job.refresh_from_db()
        assert job.state not in OVER, (job.state, str(job.message), stage.log(job))
        return bool(stage.call(f"environments/{job.pk}/")["condition"] == "ready")

    wait_for(is_ready, 60, "JupyterLab does not respond")
    in_first = programs.run(
        channels.way_to(job), "aip-rsh 1 'echo rank $AIP_NODE_RANK of $AIP_NODES'; mpirun hostname", patience_s=60
    )
    assert (in_first.code, sorted(in_first.output.split("\n"))) == (0, ["", "node2", "node3", "rank 1 of 2"]), in_first
    assert stage.ssh(job, 1, "hostname; echo $AIP_NODE_RANK").split() == [stage.places(job)[1], "1"]

    wait_for(lambda: stage.is_in(command, "running"), 60, "the command does not run")
    lost = stage.cluster.machines[stage.places(job)[1]]
    lost.cut_power()
    stage.cluster.wait_state(lost.name, "lost", seconds=60)
    for one in (job, command):
        ended = one.attempts.filter(number=1, ended_at__isnull=False)
        wait_for(ended.exists, 60, f"nobody noticed that {one} is lost")
        assert ended.get().reason in ("node_lost", "gang_partner"), ended.get().reason
    lost.boot()
    lost.start("join", sys.executable, MANAGE, "join")
    stage.cluster.wait_state(lost.name, "live", seconds=60)
    said = stage.ended(command, 90, attempt=2)
    assert sorted(said.split()[-2:]) == ["node2", "node3"], said
    wait_for(is_ready, 90, "JupyterLab does not respond again")
    assert job.attempt_number == 2
    actions.stop(job, by=stage.owner)
    wait_for(lambda: stage.is_in(job, "stopped"), 60, "the environment does not stop")
    assert not Allocation.objects.filter(released_at=None).exists()
    return "JupyterLab on one of two, the other by aip-rsh, mpirun and ssh; whole again after a power cut"


CHAPTERS: tuple[Callable[[Stage], str], ...] = (own_mpirun_line, mpirun_meets, gloo_meets, distributed_environment)


def why_not() -> str:
    """What this machine lacks; empty where everything is there."""
    if why := nodes.why_not():
        return why
    for program, package in (("mpirun", "openmpi-bin"), ("ssh", "openssh-client")):  # 22 MiB, and a few
        if shutil.which(program) is None:
            postgresql.apt(package)
        if shutil.which(program) is None:
            return f"{package} cannot be had here"
    return ""


def play(root: Path) -> None:
    """Play all chapters on one cluster and say what came out."""
    program = root / "engine" / "bin" / "jupyter-lab"
    program.parent.mkdir(parents=True)
    program.write_text(STUB.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
    program.chmod(0o755)
    with nodes.cluster(root, AIP_JUPYTER=str(program)) as cluster:
        stage = Stage(cluster)
        for chapter in CHAPTERS:
            begun = time.monotonic()
            print(f"  {chapter.__name__:<20} {chapter(stage)} ({time.monotonic() - begun:.1f} s)", flush=True)
