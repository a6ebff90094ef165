"""Sixty random kills: nothing lost, nothing twice, nothing left behind. `pytest -m chaos`."""

import subprocess
import sys

import pytest


@pytest.mark.chaos
def test_sixty_kills_lose_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--kills", "60", "--pause", "0.9"],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
