"""A Slurm cluster of two nodes on this machine, for comparisons: Debian's packages slurm-wlm and munge, as root.

Neither systemd nor cgroups are needed: `proctrack/linuxproc`, `task/none`, and a port and a spool folder for each node,
since `slurmd -N NAME` runs twice on one host. The state folder is new each time: one that saw a drained node keeps it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests import ports
from tests.running import wait_for

NODES = 2
#: Slurm waits 2–3 s between two passes by default. These are the shortest intervals that its manual allows.
TUNED = "sched_min_interval=10000,bf_interval=1,batch_sched_delay=0"
MUNGE_KEY = Path("/etc/munge/munge.key")
CONFIGURATION = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
{parameters}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """What is missing for a cluster here, and how to get it; "" where nothing is."""
    programs = [
        name for name in ("slurmctld", "slurmd", "sbatch", "munged") if shutil.which(name, path=_path()) is None
    ]
    if programs:
        return f"{', '.join(programs)} not found. Install them: apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "Slurm's daemons have to be started by root here."


def version() -> str:
    return _run("slurmctld", "-V", environment=os.environ | {"PATH": _path()}).split()[-1]


class Cluster:
    """A running cluster; jobs are submitted by `sbatch`, as people do."""

    def __init__(self, root: Path, *, slots: int, tuned: bool) -> None:
        self.root = root
        self.environment = os.environ | {"SLURM_CONF": str(root / "slurm.conf"), "PATH": _path()}
        own, host = ports.own(), socket.gethostname()
        nodes = [
            f"NodeName=n{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={own.free()} CPUs={slots // NODES} "
            "RealMemory=8000 State=UNKNOWN"
            for n in range(NODES)
        ]
        for n in range(NODES):
            (root / "spool" / f"n{n}").mkdir(parents=True)
        (root / "state").mkdir()
        (root / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=host, port=own.free(), root=root, nodes="\n".join(nodes),
                parameters=f"SchedulerParameters={TUNED}" if tuned else "",
            )
        )  # fmt: skip

    def start(self) -> None:
        _start_munge()
        self._call("slurmctld", "-c")
        for n in range(NODES):
            self._call("slurmd", "-N", f"n{n}")
        wait_for(self._is_idle, 60, "the nodes of Slurm did not become idle", 0.2)

    def stop(self) -> None:
        pids = [int(file.read_text()) for file in self.root.glob("*.pid")]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)

    def submit(self, script: str, output: str = "/dev/null", *, jobs: int = 0) -> None:
        """Submit a shell script: one job, or an array of so many."""
        array = [f"--array=1-{jobs}"] if jobs else []
        self._call("sbatch", "--quiet", f"--output={output}", *array, f"--wrap={script}")

    def is_empty(self) -> bool:
        """Whether no job waits or runs."""
        return not self._call("squeue", "--noheader").strip()

    def _is_idle(self) -> bool:
        with contextlib.suppress(subprocess.CalledProcessError):
            return set(self._call("sinfo", "--noheader", "--Node", "--format=%T").split()) == {"idle"}
        return False

    def _call(self, *command: str) -> str:
        return _run(*command, environment=self.environment)


@contextlib.contextmanager
def cluster(root: Path, *, slots: int, tuned: bool) -> Iterator[Cluster]:
    """A running cluster in an empty folder.

    Args:
        slots: jobs of one core that run at the same time, on all nodes together.
        tuned: with the shortest intervals between two passes instead of Slurm's own.
    """
    made = Cluster(root, slots=slots, tuned=tuned)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def _start_munge() -> None:
    """Start the service that signs Slurm's messages, unless it runs."""
    if subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode == 0:
        return
    if not MUNGE_KEY.exists() or not MUNGE_KEY.stat().st_size:
        MUNGE_KEY.write_bytes(os.urandom(1024))
    shutil.chown(MUNGE_KEY, "munge", "munge")
    MUNGE_KEY.chmod(0o400)
    folder = Path("/run/munge")
    folder.mkdir(exist_ok=True)
    shutil.chown(folder, "munge", "munge")
    subprocess.run(["su", "-s", "/bin/sh", "munge", "-c", "/usr/sbin/munged"], check=True)


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _run(*command: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout
