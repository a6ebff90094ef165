"""An evaluation that has run: real outputs of the real evaluator."""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from accounts.models import User
from datasets.models import Dataset, DatasetVersion
from inference.evaluation import evaluations, results
from inference.evaluation.evaluator.__main__ import evaluate
from inference.evaluation.models import Evaluation
from inference.kit.samples.run import Run
from inference.registry.models import ModelVersion
from tests.factories import models as factory
from tests.inference import versions
from tests.inference.running import set_state
from workers.core.runs import RunDir


def dataset_version(
    owner: User, root: Path, *, task: str = "detection", seed: int = 0, made: Path | None = None, **fields: object
) -> DatasetVersion:
    """A version whose files lie at `root`, or as `made` there; `seed` deals out the boxes of a detection."""
    if made is None:
        made = versions.classification(root) if task == "classification" else versions.detection(root, seed=seed)
    facts = json.loads((made / "dataset.json").read_text())
    dataset, _ = Dataset.objects.get_or_create(owner=owner, name=f"colours_{task}"[:25], defaults={"intro": "squares"})
    return DatasetVersion.objects.create(
        dataset=dataset,
        **{
            "number": 1,
            "state": "ready",
            "task": task,
            "annotated": True,
            "root": str(made),
            "classes": facts["classes"],
            "splits": facts["splits"],
            "image_count": facts["images"],
            **fields,
        },
    )


def evaluation(
    owner: User, tmp_path: Path, *, task: str = "detection", seed: int = 0, params: dict[str, float] | None = None
) -> Evaluation:
    """Of a tiny model of this task, on a version made for it."""
    model = factory.model_version(owner, tmp_path, name=f"net_{task}", task=task)
    carried = "classification" if task in ("classification", "embedding") else "detection"
    root = tmp_path / f"data-{task}"
    made = versions.keypoints(root, seed=seed) if task == "keypoints" else None
    return judged(owner, model, dataset_version(owner, root, task=carried, seed=seed, made=made), params)


def evaluate_once(model: Path, data: Path, run_dir: RunDir, params: dict[str, Any]) -> None:
    """Run the evaluator, or copy what it wrote for the same model, data and parameters earlier in this process."""
    cached = _results() / _digest(model, data, params)
    if not cached.exists():
        for folder in (run_dir.outputs, run_dir.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)
        evaluate(
            Run(
                model=model,
                dataset=data,
                outputs=run_dir.outputs,
                checkpoints=run_dir.checkpoints,
                resume_from=None,
                metrics=run_dir.metrics,
                control=run_dir.control,
                params=params,
            )
        )
        cached.mkdir()
        _copy_results(run_dir.path, cached)
    else:
        _copy_results(cached, run_dir.path)


def _copy_results(source: Path, target: Path) -> None:
    for name in ("outputs", "checkpoints"):
        shutil.copytree(source / name, target / name, dirs_exist_ok=True)
    if (source / "metrics.jsonl").exists():
        shutil.copyfile(source / "metrics.jsonl", target / "metrics.jsonl")


@cache
def _results() -> Path:
    folder = tempfile.mkdtemp(prefix="aip-evaluated-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _digest(model: Path, data: Path, params: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(params, sort_keys=True).encode())
    for root in (model, data):
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def judged(
    owner: User, model: ModelVersion, data: DatasetVersion, params: dict[str, float] | None = None
) -> Evaluation:
    """Submitted, run by hand in its run directory, published."""
    made = evaluations.submit(user=owner, model_version=model, version=data, split="test", params=params)
    run_dir = RunDir.for_attempt(made.job_id, 1)
    evaluate_once(model.path, data.path, run_dir, {**made.params, "split": "test"})
    set_state(made.job, "succeeded")
    evaluations.publish(made.job, made.job.attempts.get())
    made.refresh_from_db()
    return made


def rewrite(evaluation: Evaluation, right: list[bool]) -> None:
    """Let a classifier's images be right or wrong as the list says."""
    entries = [
        {"path": f"{n}.png", "width": 8, "height": 8, "truth": 1, "answers": [[1, 0.9]], "right": is_right,
         "badness": 0.0 if is_right else 1.0, "cells": ["0,0" if is_right else "0,1"]}
        for n, is_right in enumerate(right)
    ]  # fmt: skip
    folder = results.folder(evaluation)
    assert folder is not None
    (folder / "images.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
