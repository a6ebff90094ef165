"""Profiles of real steps: parts that add up, operations, and nothing trained."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.presets.jobs import Job
from tests.presets.test_looks import STEPS, TINY, version_for


@pytest.mark.proof
@pytest.mark.parametrize("preset", ["classify", "detect"])
def test_preset_says_where_the_time_of_a_step_goes(tmp_path, preset):
    job = Job(
        tmp_path / "job", version_for(preset, tmp_path / "version"), preset, {**STEPS, **TINY[preset], "steps": 9}
    )
    job.env |= {"AIP_SHOW": "profile", "AIP_SHOW_STEPS": "4"}

    code, log = job.run()

    assert code == 0, log
    about = json.loads((job.outputs / "profile" / "profile.json").read_text())
    assert sum(about["shares"].values()) == pytest.approx(1, abs=0.002)
    assert all(0 <= share <= 1 for share in about["shares"].values())
    assert about["shares"]["forward"] > 0
    assert about["shares"]["backward"] > 0
    assert (about["steps"], about["kind"], about["batch_size"], about["kernels"]) == (4, "cpu", 4, 0)
    assert about["step_ms"] > 0
    assert {one["step"] for one in about["timeline"]} == {0, 1, 2, 3}
    assert any("conv" in row["name"] for row in about["operations"])
    assert all(row["self_cpu_ms"] <= row["cpu_ms"] + 1e-3 for row in about["operations"])
    with gzip.open(job.outputs / "profile" / "trace.json.gz") as file:
        assert json.load(file)["traceEvents"]
    assert not (job.outputs / "model").exists()
    assert not list(job.checkpoints.glob("*"))
