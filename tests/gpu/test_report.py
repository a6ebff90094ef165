"""The checks of `manage.py doctor --gpu-report`, one test each: `pytest -m gpu` on a node with GPUs."""

from __future__ import annotations

import pytest

from aiplatform.cli.gpu_report import children, node_facts, runner
from aiplatform.cli.gpu_report.catalog import CHECKS
from aiplatform.cli.gpu_report.definitions import Context, Status
from workers.resources.nodes.telemetry.probe import Card

pytestmark = [pytest.mark.gpu, pytest.mark.sockets("MPS daemons, ranks and model servers answer")]


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """What this node has; read in a process of its own, as CUDA and NVML do not survive a fork."""
    outcome = children.run(node_facts.read, tmp_path_factory.mktemp("facts") / "facts", 120)
    assert not outcome.error, outcome.output
    return outcome.value


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_check_of_the_gpu_report_passes(check, facts, tmp_path):
    devices = [Card(**device) for device in facts["devices"]][:2]
    if not devices:
        pytest.skip("this node has no NVIDIA GPU")
    if obstacle := node_facts.missing(check.needs, facts, len(devices)):
        pytest.skip(obstacle)
    tmp_path.chmod(0o755)

    result = runner.run_check(check, Context(devices, tmp_path / check.id, check.limit_s))

    if result.status == Status.NOT_AVAILABLE:
        pytest.skip(result.reason)
    assert result.status == Status.PASSED, f"{result.reason}\n{result.output}"
