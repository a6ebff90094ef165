"""The driver's checkpoint calls, one by one, on a program that computes; the report moves whole trainings by them.

`pytest -m gpu` on a node with an NVIDIA GPU, a CUDA build of torch and a driver that can; skipped elsewhere.
"""

from __future__ import annotations

import pytest

from aiplatform.cli.gpu_report import jobs
from aiplatform.cli.gpu_report.definitions import Context
from workers.execution.agent import eviction_probe
from workers.supervisor import cuda_checkpoint, processes

pytestmark = pytest.mark.gpu


@pytest.fixture
def job(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU, or torch was built without CUDA")
    from workers.resources.nodes.telemetry.nvml import find_probe

    cards = find_probe().cards()
    if not cards:
        pytest.skip("the driver names no GPU")
    if code := eviction_probe.check(cards[:1], 0, eviction_probe.host_memory_mib())["code"]:
        pytest.skip(f"this node cannot evict: {code}")
    tmp_path.chmod(0o755)
    job = jobs.start(Context(cards, tmp_path, 120), "share.py", "cuda", 4)
    job.wait_for_line("computing", 120)
    yield job
    job.kill()


def test_cuda_checkpoint_reports_the_state_of_a_process(job):
    driver = cuda_checkpoint.Driver()
    below = processes.descendants(job.supervisor_pid())
    (pid,) = [pid for pid in below if driver.state(pid) is not None]

    states = [driver.state(pid)]
    for act in (driver.lock, driver.checkpoint, driver.restore, driver.unlock):
        act(pid)
        states.append(driver.state(pid))

    assert states == [
        cuda_checkpoint.RUNNING,
        cuda_checkpoint.LOCKED,
        cuda_checkpoint.CHECKPOINTED,
        cuda_checkpoint.LOCKED,
        cuda_checkpoint.RUNNING,
    ]
    assert not job.has_ended()
