"""F44: a training over two machines, each in its own network; one part is killed and the whole goes on.

Two parts of the classifier meet over TCP, learn together by gloo and keep checkpoints. When the supervisor of the
second part is killed, no process of the attempt may live for longer than 30 s, nothing may hold half of what it
held, and the next attempt starts with both parts from the newest checkpoint.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from tests import nodes, running
from tests.chaos.cast import Cast
from tests.running import MANAGE, wait_for

TOGETHER_S = 30.0
BOTH = {"node2", "node3"}


def gang_loses_a_part(cluster: nodes.Cluster, cast: Cast) -> str:
    """44: one part of a training over two machines is killed: all end, and it starts again whole."""
    from tests.factories import datasets, people
    from training.runs import jobs
    from training.runs.drafts import TrainingRequest
    from workers.core.models import Allocation, Device, Job
    from workers.jobs import actions as queue

    owner = people.user("alice", cluster=cast.vc)
    data = datasets.version(datasets.dataset(owner, "shades"), images=48, task="classification")
    params = {"budget_minutes": 20, "checkpoint_minutes": 0.02, "net_width": 4, "batch_size": 8, "keep_ms": 50}
    request = TrainingRequest(
        name="gang", version=data, preset="classify", params=params, nodes=2, gpus_per_node=0, cpus=0.5
    )
    job: Job = jobs.submit(user=owner, request=request).job
    shared = cluster.root / "shared"

    def folder(attempt: int) -> Path:
        return shared / "jobs" / str(job.pk) / str(attempt)

    def log(attempt: int) -> str:
        path = folder(attempt) / "log.txt"
        return running.printed(path) if path.exists() else ""

    def is_in(*states: str) -> bool:
        job.refresh_from_db()
        return job.state in states

    def places(attempt: int) -> dict[int, str]:
        rows = Allocation.objects.filter(attempt__job=job, attempt__number=attempt)
        return dict(rows.values_list("rank", "node__name"))

    wait_for(lambda: is_in("running", "failed"), 60, "the gang did not start")
    assert is_in("running"), (str(job.message), log(1)[-3000:])
    assert set(places(1).values()) == BOTH
    saved = lambda: sorted(path.name for path in (folder(1) / "checkpoints").glob("step-*/meta.json"))  # noqa: E731 - a name for one line
    wait_for(lambda: saved() or is_in("failed"), 120, f"no checkpoint: {log(1)[-3000:]}")
    assert is_in("running"), (str(job.message), log(1)[-3000:])
    assert len(running.processes_of(shared)) >= 4  # torchrun and a worker on each machine

    second = cluster.machines[places(1)[1]]
    assert second.signal(signal.SIGKILL, "supervisor/__main__.py", f"/jobs/{job.pk}/1/ranks/1") == 1
    killed = time.monotonic()
    wait_for(lambda: job.attempts.filter(number=1, ended_at__isnull=False).exists(), 60, "nobody noticed")
    together_s = time.monotonic() - killed
    left = [line for line in running.processes_of(shared).values() if f"/jobs/{job.pk}/1/" in line]
    assert not left, left
    first = job.attempts.get(number=1)
    assert (first.state, first.reason) == ("lost", "gang_partner"), (first.state, first.reason, str(first.message))
    wait_for(lambda: job.attempts.filter(number=2).exists() and is_in("running", "failed"), 60, "not started again")
    assert is_in("running"), (str(job.message), log(2)[-3000:])
    again_s = time.monotonic() - killed
    assert set(places(2).values()) == BOTH
    assert job.attempts.get(number=2).checkpoint_in.split("/")[-1].startswith("step-")
    wait_for(lambda: "step" in log(2), 120, f"it says nothing: {log(2)[-3000:]}")
    assert together_s < TOGETHER_S * running.PATIENCE

    queue.finish(job, by=owner)
    wait_for(lambda: is_in("finished_early", "failed"), 120, f"it did not finish: {log(2)[-3000:]}")
    assert is_in("finished_early"), (str(job.message), log(2)[-3000:])
    assert (folder(2) / "outputs" / "model" / "model.onnx").exists()
    wait_for(lambda: not running.processes_of(shared), 30, "something was left behind")
    assert not Allocation.objects.filter(released_at=None).exists()
    assert not Device.objects.filter(used__gt=0).exists()
    return f"all parts ended after {together_s:.1f} s, running whole again after {again_s:.1f} s"


def gang_goes_on_with_fewer(cluster: nodes.Cluster, cast: Cast) -> str:
    """45: a training that wants two machines and takes one loses one to a power cut, goes on with the other,
    and takes both the next time it begins."""
    from tests.factories import datasets
    from training.runs import jobs
    from training.runs.drafts import TrainingRequest
    from workers.core.models import Allocation, Job
    from workers.jobs import actions as queue

    owner = cast.owner
    data = datasets.version(datasets.dataset(owner, "tones"), images=48, task="classification")
    params = {"budget_minutes": 20, "checkpoint_minutes": 0.02, "net_width": 4, "batch_size": 8, "keep_ms": 50}
    wanted = {"nodes": 2, "min_nodes": 1, "gpus_per_node": 0, "cpus": 0.5}
    request = TrainingRequest(name="elastic", version=data, preset="classify", params=params, **wanted)
    job: Job = jobs.submit(user=owner, request=request).job
    folder = cluster.root / "shared" / "jobs" / str(job.pk)

    def places(attempt: int) -> list[str]:
        rows = Allocation.objects.filter(attempt__job=job, attempt__number=attempt)
        return list(rows.order_by("rank").values_list("node__name", flat=True))

    def log(attempt: int) -> str:
        path = folder / str(attempt) / "log.txt"
        return running.printed(path) if path.exists() else ""

    def is_in(*states: str) -> bool:
        job.refresh_from_db()
        return job.state in states

    saved = lambda: list((folder / "1" / "checkpoints").glob("step-*/meta.json"))  # noqa: E731 - a name for one line
    wait_for(saved, 120, lambda: f"no checkpoint: {log(1)[-3000:]}")
    assert set(places(1)) == BOTH
    gone, stays = cluster.machines[places(1)[1]], places(1)[0]
    cut = time.monotonic()
    gone.cut_power()
    cluster.wait_state(gone.name, "lost", seconds=60)
    wait_for(lambda: "restored from" in log(2), 90, lambda: f"not started again: {log(2)[-3000:]}")
    seconds = time.monotonic() - cut
    job.refresh_from_db()
    assert (job.nodes, job.min_nodes, job.max_nodes) == (1, 1, 2)
    assert places(2) == [stays]

    gone.boot()
    gone.start("join", sys.executable, MANAGE, "join")
    cluster.wait_state(gone.name, "live")
    assert (is_in("running"), places(2)) == (True, [stays])  # what runs is not made to begin again for a second machine
    queue.suspend(job, by=owner)
    wait_for(lambda: is_in("queued", "failed"), 120, lambda: f"it did not save and wait: {log(2)[-3000:]}")
    queue.resume(job, by=owner)
    wait_for(lambda: "restored from" in log(3) or is_in("failed"), 90, lambda: f"not with both: {log(3)[-3000:]}")
    assert is_in("running"), (str(job.message), log(3)[-3000:])
    assert (job.nodes, set(places(3))) == (2, BOTH)

    queue.finish(job, by=owner)
    wait_for(lambda: Job.objects.get(pk=job.pk).is_final, 120, lambda: f"it did not finish: {log(3)[-3000:]}")
    job.refresh_from_db()
    assert job.state == "finished_early", (str(job.message), log(3)[-3000:])
    assert (folder / "3" / "outputs" / "model" / "model.onnx").exists()
    return (
        f"went on with one of two machines {seconds:.1f} s after the power cut, with both again once it was continued"
    )
