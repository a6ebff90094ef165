"""Event files of presets, read by TensorBoard's own loader; and that the platform counts nothing twice."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import events
from training.presets.events import Events, with_events
from training.presets.run import Run
from workers.jobs.output.reporting.finding import reader_of

PARAMS = {
    "budget_minutes": 0, "steps": 4, "batch_size": 8, "eval_share": 0, "checkpoint_minutes": 1000, "flip_tta": False,
    "architecture": "resnet9", "net_width": 4, "width": 32, "height": 32,
}  # fmt: skip


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of a folder: (step, value) by tag."""
    seen = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    seen.Reload()
    return {tag: [(one.step, one.value) for one in seen.Scalars(tag)] for tag in seen.Tags()["scalars"]}


def test_tensorboard_reads_every_figure_of_every_step(tmp_path):
    recorder = Events(tmp_path)
    for step in range(300):
        recorder.add(step, {"train/loss": 1 / (step + 1), "val/ap50": step / 300, "progress": 0.5, "phase": "learning"})

    seen = scalars(tmp_path)

    assert set(seen) == {"train/loss", "val/ap50"}
    assert [step for step, _value in seen["train/loss"]] == list(range(300))
    assert all(math.isclose(value, 1 / (step + 1), rel_tol=1e-6) for step, value in seen["train/loss"])


def test_file_of_a_process_that_goes_on_takes_the_place_of_later_steps(tmp_path, monkeypatch):
    first = Events(tmp_path)
    for step in (1, 2, 3, 4):
        first.add(step, {"train/loss": float(step)})
    monkeypatch.setattr(events.time, "time", lambda: 4_000_000_000.0)  # a file that sorts behind the first
    Events(tmp_path).add(3, {"train/loss": 30.0})

    assert scalars(tmp_path)["train/loss"] == [(1, 1.0), (2, 2.0), (3, 30.0)]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -0.0, 1e-45, 3.5e38])
def test_odd_numbers_break_no_file(tmp_path, number):
    recorder = Events(tmp_path)
    recorder.add(1, {"train/loss": number})
    recorder.add(2, {"train/loss": 1.0})

    assert scalars(tmp_path)["train/loss"][-1] == (2, 1.0)


def test_full_disk_ends_the_file_and_not_the_training(tmp_path, monkeypatch, capsys):
    recorder = Events(tmp_path)
    recorder.add(1, {"train/loss": 1.0})

    def full(_file, _data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(events.os, "write", full)
    for step in (2, 3):
        recorder.add(step, {"train/loss": 1.0})

    assert capsys.readouterr().out.count("No more is written for TensorBoard: No space left on device.") == 1


def test_views_of_a_training_and_programs_outside_a_job_write_none(tmp_path):
    outside = Run.from_environment({"AIP_OUTPUT_DIR": str(tmp_path)})
    shown = Run.from_environment({"AIP_METRICS_FILE": str(tmp_path / "m"), "AIP_SHOW": "layers"})

    assert with_events(outside).recorder is None
    assert with_events(shown).recorder is None


def test_preset_leaves_its_curves_to_tensorboard_and_the_platform_passes_the_file_over(tmp_path):
    job = Job(tmp_path / "job", versions.shades(tmp_path / "data"), "classify", PARAMS)

    code, log = job.run()

    assert code == 0, log
    folder = job.outputs / events.FOLDER
    (file,) = folder.iterdir()
    seen = scalars(folder)
    assert {"val/loss", "val/accuracy"} <= set(seen)
    for key, points in seen.items():
        assert [value for _step, value in points] == pytest.approx(job.curve(key), rel=1e-6)
    assert reader_of(file.name) == ""
    assert reader_of(file.name.removesuffix(events.MARK)) == "events"
