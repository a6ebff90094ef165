"""Environments on several machines: JupyterLab runs on the first, the others wait for what is started on them.

Programs are started there by `aip-rsh`, or by whatever launcher uses it, from terminals and notebooks.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from training.programs import layout
from workers.core.kinds import Launch
from workers.core.models import Allocation, Attempt, Job
from workers.core.runs import RunDir


def launched(launch: Launch, attempt: Attempt, run: RunDir, home: Path) -> Launch:
    """Return what is started on all nodes: `launch` on the first only. For a single node, `launch` itself.

    Its machines have to reach each other, so the network is the machines' own. What is installed lies in the home,
    where each of them finds it: a writable layer would lie on the disk of one.

    Raises:
        CannotRun: its machines have no place to meet.
    """
    job = attempt.job
    if job.nodes == 1:
        return launch
    slots = max(1, job.gpus_per_node)
    argv, layout_env = layout.written(attempt, run, how="first", slots=slots, argv=launch.argv)
    return replace(launch, argv=argv, env=layout_env | launch.env | _packages(launch, home, job), own_network=False)


def machines(job: Job) -> list[tuple[int, str, str]]:
    """Return rank, name and address of each node of a workspace on several nodes; [] otherwise."""
    if job.nodes == 1 or job.is_final:
        return []
    rows = Allocation.objects.filter(attempt__job=job, attempt__number=job.attempt_number, released_at=None)
    by_rank = {row.rank: (row.rank, row.node.name, row.node.address) for row in rows.select_related("node")}
    return [by_rank[rank] for rank in sorted(by_rank)]


def _packages(launch: Launch, home: Path, job: Job) -> dict[str, str]:
    """Return where pip installs and where Python looks: a folder of the home for each workspace."""
    folder = home / ".packages" / str(job.pk)
    before = "AIP_" if launch.container else ""  # the PATH of a container image is known inside alone
    search_paths = {f"{before}PYTHONPATH": str(folder), f"{before}PATH": str(folder / "bin")}
    below = {name: os.pathsep.join(filter(None, [own, launch.env.get(name)])) for name, own in search_paths.items()}
    return {"PIP_TARGET": str(folder)} | below
