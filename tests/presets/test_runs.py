"""Presets as jobs: started, steered, killed and restored from outside, by files alone."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import checkpoints, nets

pytestmark = pytest.mark.proof

STEPS = {"budget_minutes": 0, "show_steps": True, "checkpoint_minutes": 1000, "eval_share": 0, "batch_size": 16}
SMALL = {**STEPS, "net_width": 4, "flip_tta": False}
KILLS = int(os.environ.get("AIP_KILLS", "2"))


@pytest.fixture(scope="module")
def shades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.shades(tmp_path_factory.mktemp("versions") / "shades")


def until(job: Job, process: Any, words: str) -> str:
    """Read the log up to a line with `words`."""
    seen = ""
    for line in process.stdout:
        seen += line
        if words in line:
            return seen
    raise AssertionError(f"never said {words!r}:\n{seen}")


def weights(job: Job) -> dict[str, torch.Tensor]:
    newest = checkpoints.newest(job.checkpoints)
    assert newest is not None
    state = torch.load(newest / "state.pt", weights_only=True)
    return {**state["model"], **{f"average.{key}": value for key, value in state["average"].items()}}


def test_preset_run_of_thirty_steps_equals_fifteen_a_kill_and_fifteen(tmp_path, shades):
    straight = Job(tmp_path / "straight", shades, "classify", {**SMALL, "steps": 30})
    assert straight.run()[0] == 0

    cut = Job(tmp_path / "cut", shades, "classify", {**SMALL, "steps": 30})
    with cut.start() as process:
        until(cut, process, "step 14 ")
        cut.request("suspend")
        until(cut, process, "suspended")
    with cut.start() as process:  # goes a few steps beyond its checkpoint, then dies
        cut.request("")
        until(cut, process, "restored")
        until(cut, process, "step 20 ")
        process.kill()
    code, log = cut.run()

    assert code == 0, log
    one, other = weights(straight), weights(cut)
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_preset_run_by_two_ranks_learns_what_one_does(tmp_path, shades):
    alone = Job(tmp_path / "alone", shades, "classify", {**SMALL, "steps": 12, "amp": False})
    both = Job(tmp_path / "both", shades, "classify", {**SMALL, "steps": 12, "amp": False}, ranks=2)

    assert alone.run()[0] == 0
    code, log = both.run()

    assert code == 0, log
    assert both.curve("train/loss") == pytest.approx(alone.curve("train/loss"), rel=2e-3)
    assert both.curve("val/accuracy") == pytest.approx(alone.curve("val/accuracy"), abs=0.07)


def test_preset_run_is_paused_continued_and_finished_by_control_file(tmp_path, shades):
    job = Job(tmp_path / "job", shades, "classify", {**SMALL, "steps": 100_000})

    with job.start() as process:
        until(job, process, "step 3 ")
        job.request("pause")
        until(job, process, "paused at step")
        job.request("")
        until(job, process, "continued at step")
        job.request("finish")
        rest = process.communicate()[0]

    assert process.returncode == 0, rest
    about = json.loads((job.outputs / "model" / "model.json").read_text())
    assert (job.outputs / "model" / "model.onnx").exists()
    assert (job.outputs / "model" / "model.safetensors").exists()
    assert about["verify"]["max_abs_diff"] < 1e-4
    assert about["task"] == "classification"
    assert job.curve("phase")[-1] == "exporting"
    assert max(job.curve("progress")) < 1


@pytest.mark.long
def test_preset_run_of_which_nobody_needs_a_result_ends_without_scores_and_model(tmp_path, shades):
    job = Job(tmp_path / "job", shades, "classify", {**SMALL, "steps": 100_000, "eval_share": 0})

    with job.start() as process:
        until(job, process, "step 3 ")
        job.request("finish quick")
        rest = process.communicate()[0]

    assert process.returncode == 0, rest
    assert not (job.outputs / "model").exists()
    assert set(json.loads((job.outputs / "metrics.json").read_text())) == {"steps", "seconds", "history"}
    assert job.curve("val/accuracy") == []


def test_preset_run_saves_and_ends_at_sigterm(tmp_path, shades):
    job = Job(tmp_path / "job", shades, "classify", {**SMALL, "steps": 100_000}, forked=False)  # as on the platform

    with job.start() as process:
        until(job, process, "step 3 ")
        process.send_signal(signal.SIGTERM)
        process.communicate()

    assert process.returncode == 143
    assert checkpoints.newest(job.checkpoints) is not None


def test_checkpoints_survive_kills_while_they_are_written(tmp_path, shades):
    job = Job(tmp_path / "job", shades, "classify", {**SMALL, "steps": 100_000, "checkpoint_minutes": 0})
    reached = 0

    for turn in range(KILLS):
        with job.start() as process:
            until(job, process, f"step {reached + 3 + turn % 3} ")
            process.kill()
        found = checkpoints.newest(job.checkpoints)
        assert found is not None
        step = json.loads((found / "meta.json").read_text())["step"]
        assert torch.load(found / "state.pt", weights_only=True)["position"]["step"] == step
        assert all(checkpoints.meta(path) for path in job.checkpoints.glob("step-??????"))
        assert step > reached
        reached = step


def test_preset_run_names_the_parts_of_a_loss_that_is_no_number(tmp_path, shades):
    broken = tmp_path / "broken.pth"
    net = nets.build("resnet9", classes=2, channels=3, net_width=4, width=16, height=16)
    torch.save(net.state_dict() | {"fc.weight": torch.full((2, 32), float("nan"))}, broken)

    code, log = Job(tmp_path / "job", shades, "classify", {**SMALL, "steps": 5, "weights": str(broken)}).run()

    assert code == 1
    assert "The loss is no longer a number at step 0: class nan." in log
    assert "Traceback" not in log


def test_detect_preset_learns_and_its_export_answers_like_torch(tmp_path):
    version = versions.squares(tmp_path / "squares", train=8, val=3)
    params = {
        **STEPS,
        "architecture": "lite0-scratch",
        "steps": 2,
        "batch_size": 4,
        "strides": "8,16",
        "head_width": 16,
    }

    job = Job(tmp_path / "job", version, "detect", params)
    code, log = job.run()

    assert code == 0, log
    about = json.loads((job.outputs / "model" / "model.json").read_text())
    assert about["verify"] == {"samples": 3, "max_abs_diff": pytest.approx(0, abs=1e-2)}
    assert [entry["name"] for entry in about["classes"]] == ["bright", "dark"]
    figures = json.loads((job.outputs / "metrics.json").read_text())
    assert set(figures) >= {"val/ap", "val/ap50", "seconds"}
    last = checkpoints.newest(job.checkpoints)
    assert checkpoints.meta(last)["metric"] == figures["val/ap"]  # scored after it was written
    assert (job.checkpoints / "best").resolve() == last.resolve()


@pytest.mark.long
def test_detect_preset_goes_on_with_more_time_at_the_size_it_began_with(tmp_path):
    version = versions.squares(tmp_path / "squares", train=8, val=4, enlarged=6)
    params = {"architecture": "lite0-scratch", "batch_size": 4, "head_width": 16, "eval_share": 0}
    code, log = Job(tmp_path / "job", version, "detect", {**params, "steps": 1, "budget_minutes": 0}).run()
    assert code == 0, log

    code, log = Job(tmp_path / "job", version, "detect", {**params, "steps": 2, "budget_minutes": 600}).run()

    assert code == 0, log
    assert "restored from step-000001" in log
    assert "4 to score on (val), 320×208" in log


@pytest.mark.long
def test_detect_preset_goes_on_with_the_layers_that_learned_before(tmp_path):
    version = versions.squares(tmp_path / "squares", train=8, val=4)
    params = {"budget_minutes": 0, "batch_size": 4, "head_width": 16, "eval_share": 0}
    code, log = Job(tmp_path / "job", version, "detect", {**params, "steps": 1, "frozen_filters": False}).run()
    assert code == 0, log

    code, log = Job(tmp_path / "job", version, "detect", {**params, "steps": 2, "frozen_filters": True}).run()

    assert code == 0, log
    assert "restored from step-000001" in log


@pytest.mark.long
def test_detect_preset_scores_a_sample_without_objects(tmp_path):
    version = versions.squares(tmp_path / "squares", train=8, val=4)
    annotations = json.loads((version / "annotations.json").read_text())
    annotations["annotations"] = [one for one in annotations["annotations"] if one["image_id"] <= 8]
    (version / "annotations.json").write_text(json.dumps(annotations))

    code, log = Job(
        tmp_path / "job", version, "detect", {**STEPS, "architecture": "lite0-scratch", "steps": 2, "batch_size": 4}
    ).run()

    assert code == 0, log


@pytest.mark.long
def test_detect_preset_learns_what_the_demo_shows_within_few_steps(tmp_path):
    version = versions.digits_demo(tmp_path / "digits")
    params = {"steps": 200, "budget_minutes": 0, "flip": 0, "eval_split": "test", "eval_share": 0}

    job = Job(tmp_path / "job", version, "detect", params, threads=2)
    code, log = job.run()

    assert code == 0, log
    assert json.loads((job.outputs / "metrics.json").read_text())["val/ap50"] >= 0.6, log
    lines = [json.loads(line) for line in job.metrics.read_text().splitlines()]
    assert list(dict.fromkeys(line["phase"] for line in lines if "phase" in line)) == [
        "packing", "learning", "scoring", "exporting"
    ]  # fmt: skip
    learning = [line["progress"] for line in lines if line.get("phase") == "learning" and "progress" in line]
    assert learning == sorted(learning)
    assert max(line.get("progress", 0.0) for line in lines) <= 0.99
    assert lines[-1]["phase_times"].keys() == {"packing", "learning", "scoring", "exporting"}


def test_preset_run_refuses_with_a_sentence(tmp_path):
    version = versions.squares(tmp_path / "squares", train=2, val=1, boxes=False)

    code, log = Job(tmp_path / "job", version, "detect", {}).run()

    assert code == 1
    assert "squares has no boxes yet. Annotate some images, then train." in log
    assert "Traceback" not in log
