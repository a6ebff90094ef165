"""What only a card can prove of MPS: a sandboxed job becomes a client, is held to its memory, and several gain by it.

`pytest -m gpu` on a machine with one NVIDIA GPU in its default compute mode, nvidia-cuda-mps-control and a CUDA build
of torch; skipped with a word elsewhere.
"""

from __future__ import annotations

import pytest

from workers.execution.mps import daemon as daemons
from workers.execution.mps import gain, joining
from workers.execution.mps.daemon import Unavailable
from workers.models import Device
from workers.supervisor import sandbox

pytestmark = [pytest.mark.gpu, pytest.mark.django_db, pytest.mark.sockets("the daemon answers at a socket")]

CLIENTS, SECONDS = 4, 5.0
# Takes memory by the driver's own limit alone: torch is told nothing of a share.
GREEDY = """
import pathlib, sys, time, torch
held = []
try:
    while True:
        held.append(torch.ones(16 << 20, device="cuda"))
except torch.OutOfMemoryError:
    pass
print("ready", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
total = torch.cuda.get_device_properties(0).total_memory >> 20
assert 64 * len(held) <= total // 4, (len(held), total)
print("steps", len(held), flush=True)
"""


@pytest.fixture(scope="module")
def card():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA card, or torch was built without CUDA")
    if not daemons.program():
        pytest.skip(f"{daemons.PROGRAM} is not installed")
    from workers.machines.telemetry.nvml import find_probe

    found = find_probe().cards()
    if not found:
        pytest.skip("the driver tells of no card")
    about = found[0]
    row = Device(kind="gpu", index=about.index, uuid=about.uuid, memory_mib=about.memory_mib, parent=about.parent)
    try:
        joining.judged(row, sandbox.BUBBLEWRAP)
    except Unavailable as why:
        pytest.skip(str(why))
    return about


def test_mps_gains_for_programs_of_small_kernels(card, tmp_path):
    """Fails where a program in the sandbox does not become a client: `measure` counts them."""
    tmp_path.chmod(0o755)

    seen = gain.measure(card, clients=CLIENTS, seconds=SECONDS, folder=tmp_path)

    print(f"taking turns {seen.alone:.0f}/s, by MPS {seen.together:.0f}/s, ratio {seen.ratio:.2f}")
    assert seen.ratio > 1.2


def test_mps_holds_a_program_to_the_memory_of_its_share(card, tmp_path):
    tmp_path.chmod(0o755)

    with gain.daemon_for(card) as daemon:
        steps = gain.together(tmp_path / "mps", card, CLIENTS, SECONDS, GREEDY, daemon)

    assert steps > 0
