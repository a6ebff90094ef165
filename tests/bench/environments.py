"""Fifty environments at once: python -m tests.bench.environments [--many 50] [--real].

Real processes on this machine, sixteen simulated cards of which each takes an eighth. They run a stand-in for
JupyterLab that costs almost nothing, so that what is measured is the platform's; with `--real` they run the jupyter-lab
that AIP_JUPYTER names. Memory is PSS: what processes share is divided among them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.running import environment, platform, wait_for
from workers.supervisor import processes

STUB = Path(__file__).parents[1] / "fakes" / "jupyter.py"
CARDS = 16


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--many", type=int, default=50)
    parser.add_argument("--real", action="store_true", help="the jupyter-lab that AIP_JUPYTER names")
    args = parser.parse_args(argv)
    root = Path(tempfile.mkdtemp(prefix="aip-bench-"))
    os.environ.update(environment(root / "data", gpus=CARDS))
    os.environ["AIP_CPU_OVERCOMMIT"] = "32"
    if not args.real:
        os.environ["AIP_JUPYTER"] = str(stub_in(root))
    import django

    django.setup()
    try:
        with platform(root / "data", gpus=CARDS):
            measure(args.many)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


def stub_in(root: Path) -> Path:
    """The stand-in, installed as a program of its own."""
    program = root / "engine" / "bin" / "jupyter-lab"
    program.parent.mkdir(parents=True)
    program.write_text(STUB.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
    program.chmod(0o755)
    return program


def measure(many: int) -> None:
    """Start so many, wait until all answer, weigh them while they are idle, stop them."""
    from tests.factories import people
    from training.environments import lifecycle, services
    from training.environments.models import Environment
    from training.environments.services import EnvironmentRequest
    from workers.core.models import Job, VirtualCluster
    from workers.execution import tickets
    from workers.jobs import actions

    cluster = VirtualCluster.objects.get_or_create(name="default")[0]
    owners = [people.user(f"bench{number}", cluster=cluster) for number in range(min(many, 10))]
    time.sleep(5)  # Celery workers take a few seconds to import
    begun = time.monotonic()
    asked = {}
    for number in range(many):
        request = EnvironmentRequest(gpus_per_node=1, share=1, cpus=0.1)
        row = services.submit(user=owners[number % len(owners)], request=request)
        asked[row.pk] = time.monotonic()
    submitted = time.monotonic() - begun
    answered: dict[int, float] = {}

    def all_answer() -> bool:
        for row in Environment.objects.awaited().select_related("job__owner", "job__cluster"):
            if lifecycle.is_ready(lifecycle.see_ready(row)):
                answered[row.pk] = time.monotonic() - asked[row.pk]
        ready = Environment.objects.filter(ready_at__isnull=False)
        for pk in ready.exclude(pk__in=answered).values_list("pk", flat=True):  # the sweep was faster
            answered[pk] = time.monotonic() - asked[pk]
        return len(answered) == many

    wait_for(all_answer, 300, f"{len(answered)} of {many} answered")
    spans = sorted(answered.values())
    time.sleep(5)
    weights = sorted(pss_mib(pid) for pid in supervisors(set(asked)))
    looked = time.monotonic()
    lifecycle.look_at_all()
    looked = time.monotonic() - looked
    for job in Job.objects.filter(pk__in=asked):
        actions.stop(job)
    wait_for(lambda: not Environment.objects.unfinished().exists(), 120, "they did not end")
    print(f"{many} environments on {os.cpu_count()} cores, tier {tickets.tier()[0]}, load {os.getloadavg()[0]:.1f}")
    print(f"  submitted within                 {submitted:.1f} s")
    print(f"  request → answers                p50 {statistics.median(spans):.1f} s, last {spans[-1]:.1f} s")
    print(f"  memory of an idle one (PSS)      p50 {statistics.median(weights):.1f} MiB, most {weights[-1]:.1f} MiB")
    print(f"  asking and judging all of them   {looked:.2f} s")


def supervisors(jobs: set[int]) -> list[int]:
    """Processes that keep these jobs, one for each."""
    from workers.core.models import Attempt
    from workers.core.runs import RunDir
    from workers.supervisor import records

    live = Attempt.objects.filter(job__in=jobs, ended_at=None).values_list("job", "number")
    kept = [records.read(RunDir.for_attempt(job, number).path / records.SUPERVISOR) or {} for job, number in live]
    return [int(one["pid"]) for one in kept if "pid" in one]


def pss_mib(pid: int) -> float:
    """Memory of a process and all that it started."""
    total = 0
    for each in [pid, *processes.descendants(pid)]:
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:  # it ended meanwhile
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
