"""`python -m inference.evaluation.evaluator`: predict, compute figures, write outputs/evaluation.json."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from inference.evaluation.evaluator import robust
from inference.evaluation.evaluator.preview import Preview
from inference.kit.contracts.served_task import Scoring
from inference.kit.model_io.memory import keep_freed
from inference.kit.model_io.spec import TENSOR
from inference.kit.models import composed, model_json
from inference.kit.prediction import selftest
from inference.kit.prediction.predictor import Predictor, Suspended
from inference.kit.samples import facts, ground_truth, learned
from inference.kit.samples.run import Run, write
from inference.kit.task_kinds import TASKS
from training.presets import groups

SUSPENDED = 75


def main() -> int:
    """Return the exit code: 0 evaluated (also after "finish"), 75 suspended, 1 refused (the message is printed)."""
    keep_freed()
    try:
        evaluate(Run.from_env())
    except Suspended:
        print("Suspended; the predictions made so far are kept.", flush=True)
        return SUSPENDED
    except (ground_truth.Unfit, model_json.BadModel, groups.NoGroups) as exc:
        print(exc, flush=True)
        return 1
    return 0


def evaluate(run: Run) -> dict[str, Any]:
    """Predict what is missing and return the content of outputs/evaluation.json.

    Raises:
        NoGroups: the model says of what it learned that it was divided by groups which are not there.
        Unfit: model and data do not belong together.
        Suspended: a suspend was requested.
    """
    started = time.monotonic()
    run.report(0, phase="loading")
    spec = model_json.load(run.model)
    if spec.task == TENSOR:
        raise ground_truth.Unfit("This model came without model.json, so its answers cannot be understood.")
    split = str(run.params.get("split") or "")
    training = run.params.get("learned")  # {"dir", "train", "evaluate", "folds", "fold"}: what the model was trained on
    division = {name: value for name, value in training.items() if name != "dir"} if training else {}
    keys = learned.keys(Path(training["dir"]), **division) if training else set()
    data = ground_truth.read(run.dataset, split, keys)
    task = TASKS[spec.task]
    if data.task not in task.data:
        raise ground_truth.Unfit(f"A {spec.task} model cannot be judged on a {data.task} dataset.")
    mapping, notes = ground_truth.match_classes(spec.classes, data.classes, strangers=task.strangers)
    for note in notes:
        print(note, flush=True)
    engine = composed.load(run.model, spec, threads=run.threads)
    run.outputs.mkdir(parents=True, exist_ok=True)
    file = run.outputs / "predictions.jsonl"
    if run.resume_from and not file.exists():
        for previous in run.resume_from.glob("*.jsonl"):
            shutil.copyfile(previous, run.outputs / previous.name)
        print(f"Going on from {run.resume_from.name}.", flush=True)
    print(f"Judging {len(data.samples)} images on {engine.provider}.", flush=True)
    if data.trained_on:
        print(f"The model learned from {data.trained_on} of them.", flush=True)
    scoring = cast(Scoring, import_module(task.scoring))
    predictor = Predictor(run, spec, engine, data, scoring, mapping)
    altered = int(run.params.get("altered_images") or 0)
    if altered:
        predictor.later = min(altered, len(data.samples)) * len(robust.passes(data))
    predictor.kept[file.name] = file
    predictor.phase = "predicting"
    preview = Preview(run.outputs, data, scoring)
    lines = predictor.all(file, newest=preview.show)
    if not lines:
        raise ground_truth.Unfit("Not one image was judged.")
    inference_s = predictor.inference_s
    if not altered:
        predictor.report_computing(len(lines))
    judged, images = scoring.evaluate(data, lines)
    facts_by_path = facts.by_path(data, {line["path"]: line.get("light") for line in lines})
    images = [{**image, "about": facts_by_path[image["path"]]} for image in images]
    if altered:
        judged["robustness"] = robust.judge(
            predictor, scoring, lines, task=spec.task, count=altered, outputs=run.outputs
        )
    if altered:
        predictor.report_computing(predictor.step + predictor.whole)
    for name, text in scoring.files(lines).items():
        write(run.outputs / name, text)
    notes += [f"{path} cannot be read and was skipped." for path in predictor.unreadable]
    evaluation = {
        "format": 1,
        "task": spec.task,
        "split": split,
        "images": len(lines),
        "images_total": len(data.samples),
        "complete": len(lines) + len(predictor.unreadable) == len(data.samples),
        "seen": data.trained_on if training else None,  # images that the model learned from; None: not known
        "notes": notes,
        "parameters": {
            **asdict(predictor.limits),
            "batch": predictor.batch,
        },
        "speed": {
            "provider": engine.provider,
            "inference_ms": round(1000 * inference_s / len(lines), 3),
            "seconds": round(time.monotonic() - started, 2),
        },
        **judged,
    }
    selftest.leave(run, spec, engine, [data.image(sample) for sample in data.samples])
    write(run.outputs / "images.jsonl", "".join(json.dumps(image) + "\n" for image in images))
    write(run.outputs / "evaluation.json", json.dumps(evaluation))
    preview.remove()
    figures = {k: v for k, v in evaluation["summary"].items() if v is not None}
    write(run.outputs / "metrics.json", json.dumps(figures))
    run.report(
        predictor.step + predictor.whole,
        **{f"test/{name}": value for name, value in figures.items()},
    )
    for name, value in figures.items():
        print(f"{name} {value:.4f}", flush=True)
    return evaluation


if __name__ == "__main__":
    sys.exit(main())
