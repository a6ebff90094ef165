"""Random kills of a running platform: nothing lost, nothing twice, nothing left behind. `pytest -m chaos`."""

import os
import subprocess
import sys

import pytest

KILLS = int(os.environ.get("AIP_CHAOS_KILLS", "60"))


@pytest.mark.chaos
def test_platform_under_random_kills_loses_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--kills", str(KILLS), "--seconds", str(0.9 * KILLS)],
        capture_output=True, text=True, timeout=900 * KILLS / 60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
