"""Predictions that have run: the real program, alone in its run as a job has it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from inference.batch import predictions, results
from inference.batch.kind import PredictionKind
from inference.batch.models import Prediction
from inference.kit.model_io.requested import Requested
from inference.kit.models import composed, model_json
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.inference import programs
from workers.core.runs import RunDir


def submitted(user, model, data=None, **options: object) -> Prediction:
    """Queued with one core."""
    return predictions.submit(user=user, model_version=model, version=data, **{"cpus": 1.0} | options)


def begun(user, model, data) -> Prediction:
    """One that waits, though its first picture was answered already."""
    prediction = submitted(user, model, data)
    chunks = results.outputs(prediction) / "chunks"
    chunks.mkdir(parents=True)
    path = data.assets.order_by("pk").values_list("path", flat=True)[0]
    lines = [{}, {"n": 0, "path": path, "width": 8, "height": 8, "predictions": []}]
    (chunks / "0000000.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (chunks.parent / "summary.json").write_text(json.dumps({"done": 1, "total": 1}))
    return prediction


def program(prediction: Prediction, attempt: int = 1, **env: str) -> tuple[list[str], dict[str, str], RunDir]:
    """Command, environment and run directory of an attempt, as the kind prepares it."""
    return programs.prepared(PredictionKind(), prediction.job, attempt, **env)


def ran(prediction: Prediction) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    log = programs.ran(PredictionKind(), prediction.job)
    prediction.refresh_from_db()
    return log


def answers(prediction: Prediction) -> list[dict]:
    """All that it answered, in the order of the pictures."""
    return list(results.lines(prediction))


def listing(folder: Path, names: list[str], *, name: str = "list.txt") -> Path:
    """A file of names."""
    file = folder / name
    file.write_text("\n".join(names))
    return file


def chunks_of(run: RunDir) -> list[str]:
    return sorted(path.name for path in (run.outputs / "chunks").glob("*.jsonl"))


def heads_of(run: RunDir) -> list[dict]:
    return [json.loads(path.open().readline()) for path in sorted((run.outputs / "chunks").glob("*.jsonl"))]


async def _served(folder: Path, sent: list[bytes], options: dict) -> list[list[dict]]:
    spec = model_json.load(folder)
    service = Service(Settings(model_dir=folder, max_batch=8), spec, composed.load(folder, spec))
    service.start()
    try:
        requested = Requested.from_values(options)
        call = Call(time.monotonic() + 60)
        return [(await service.predict(data, requested, call, lambda: None))["predictions"] for data in sent]
    finally:
        await service.stop()


def served(folder: Path, sent: list[bytes], **options: object) -> list[list[dict]]:
    """What a service with the model of a folder answers to pictures."""
    return asyncio.run(_served(folder, sent, options))
