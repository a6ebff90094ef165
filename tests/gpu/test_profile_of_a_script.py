"""What a script's profile says of a card: what that computes belongs to the part that gave it out.

`pytest -m gpu` on a machine with one NVIDIA GPU and a CUDA build of torch; skipped with a word elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from training.programs import sdk_files

pytestmark = pytest.mark.gpu

LOOP = """
import sys, time, torch
from aip import profile
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
def batches():
    images = torch.randn(2048, 4096, device="cuda")
    for _ in range(40):
        time.sleep(float(sys.argv[1]))
        yield images
for images in profile(batches(), steps=6, skip=4):
    optimizer.zero_grad()
    model(images).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture
def profiled(tmp_path):
    """`profiled(0.1)`: the profile of a loop whose loader sleeps so many seconds."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA card, or torch was built without CUDA")
    sdk_files.write(tmp_path)

    def run(sleep_s: float):
        env = os.environ | {"AIP_METRICS_FILE": str(tmp_path / "metrics"), "AIP_OUTPUT_DIR": str(tmp_path / "outputs")}
        words = [sys.executable, "-c", LOOP, str(sleep_s)]
        done = subprocess.run(words, check=False, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / "outputs" / "profile" / "profile.json").read_text())

    return run


def test_work_of_a_card_is_told_by_the_part_that_gave_it_out(profiled):
    about = profiled(0)

    shares = about["shares"]
    assert sum(shares.values()) == pytest.approx(1, abs=1e-6)
    assert (about["kind"], about["precision"]) == ("cuda", "float32")
    assert about["kernels"] >= 24
    assert about["memory_mib"] > 512
    # twice the products of forward, and launched long before they are computed
    assert 1.4 < shares["backward"] / shares["forward"] < 2.8
    assert shares["forward"] + shares["backward"] > 0.6
    assert shares["wait"] < 0.2


def test_waiting_counts_where_the_card_has_nothing_to_do(profiled):
    shares = profiled(0.5)["shares"]

    assert shares["wait"] > 0.5
    assert shares["forward"] > 0
