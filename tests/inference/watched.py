"""Analyses of videos that have run: the real program, alone in its run as a job has it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from accounts.models import User
from inference.models import ModelVersion
from inference.services import models as registry
from inference.video import analyses, films
from inference.video.kind import VideoKind
from inference.video.tables import VideoAnalysis, VideoFile
from tests.factories import models as factory
from tests.inference import clips, tiny
from tests.inference.running import bring
from workers.runs import RunDir

DOOR = {"name": "door", "points": [[0, 0.5], [1, 0.5]]}
YARD = {"name": "yard", "points": [[0, 0.55], [0.5, 0.55], [0.5, 1], [0, 1]], "loiter_s": 1}
PLACES = {"lines": [DOOR], "zones": [YARD]}


def follower(folder: Path, size: int = 64, cell: int = 8) -> Path:
    """A box of `cell` pixels around the middle of what is of each colour, scored by how much of the box that fills."""
    rows, columns = np.mgrid[:size, :size] + 0.5
    weights = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(-1, 3).astype(np.float32)
    half = np.float32([[-cell / 2, -cell / 2, cell / 2, cell / 2]])
    nodes = [
        helper.make_node("Sub", ["images", "dim"], ["less"]),
        helper.make_node("Relu", ["less"], ["bright"]),
        helper.make_node("Reshape", ["bright", "by_colour"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["sums"]),
        helper.make_node("Slice", ["sums", "zero", "two", "axis"], ["places"]),
        helper.make_node("Slice", ["sums", "two", "three", "axis"], ["mass"]),
        helper.make_node("Max", ["mass", "little"], ["some"]),
        helper.make_node("Div", ["places", "some"], ["middle"]),
        helper.make_node("Concat", ["middle", "middle"], ["twice"], axis=2),
        helper.make_node("Add", ["twice", "half"], ["boxes"]),
        helper.make_node("Div", ["mass", "full"], ["share"]),
        helper.make_node("Mul", ["share", "own"], ["scores"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    outputs = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["n", 3, 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3, 3]),
    ]
    numbers = {"by_colour": [0, 3, size * size], "zero": [0], "two": [2], "three": [3], "axis": [2]}
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    constants += [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.float32([0.5]), "dim"),
        numpy_helper.from_array(np.float32([0.001]), "little"),
        numpy_helper.from_array(half, "half"),
        numpy_helper.from_array(np.float32([0.5 * cell * cell]), "full"),
        numpy_helper.from_array(np.eye(3, dtype=np.float32)[None], "own"),
    ]
    given = tiny.input_of(size, mean=[0, 0, 0], std=[255, 255, 255])
    tiny.describe(
        folder,
        task="detection",
        classes=tiny.COLOURS,
        input={**given, "resize": "letterbox"},
        output={"boxes": "boxes", "scores": "scores"},
    )
    return tiny.write(folder, helper.make_graph(nodes, "follower", [images], outputs, constants))


def detector(owner: User, tmp_path: Path, name: str = "walkers") -> ModelVersion:
    """A version of the follower."""
    archive = factory.zipped(follower(tmp_path / name), tmp_path / f"{name}.zip")
    return registry.register_upload(user=owner, archive=archive, filename=archive.name, name=name)


def video(owner: User, tmp_path: Path, *, seconds: float = 12.0, name: str = "walk.mp4") -> VideoFile:
    """An uploaded film of the two walkers."""
    made = clips.clip(tmp_path / name, clips.walkers, seconds=seconds)
    return films.keep(user=owner, source=made, filename=name)


def submitted(owner: User, model: ModelVersion, source: VideoFile, **asked: object) -> VideoAnalysis:
    return analyses.submit(user=owner, model_version=model, video=source, **{"places": PLACES, "cpus": 1.0} | asked)


def program(analysis: VideoAnalysis, attempt: int = 1, **env: str) -> tuple[list[str], dict[str, str], RunDir]:
    """Command, environment and run directory of an attempt, as the kind prepares it."""
    run = RunDir.of(analysis.job_id, attempt)
    for folder in (run.code, run.outputs, run.checkpoints):
        folder.mkdir(parents=True, exist_ok=True)
    launch = VideoKind().prepare(analysis.job, analysis.job.attempts.get(number=attempt), run)
    paths = {
        "AIP_PARAMS": run.params, "AIP_OUTPUT_DIR": run.outputs, "AIP_CHECKPOINT_DIR": run.checkpoints,
        "AIP_METRICS_FILE": run.metrics, "AIP_CONTROL_FILE": run.path / "control",
    }  # fmt: skip
    given = {name: str(path) for name, path in paths.items()} | {"OMP_NUM_THREADS": "1", **env}
    return launch.argv, {"PATH": os.environ["PATH"], **launch.env, **given}, run


def ran(analysis: VideoAnalysis) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    bring(analysis.job, "running")
    argv, env, run = program(analysis)
    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    VideoKind().ended(analysis.job, analysis.job.attempts.get(number=1))
    bring(analysis.job, "succeeded" if done.returncode == 0 else "failed")
    analysis.refresh_from_db()
    return done.stdout + done.stderr
