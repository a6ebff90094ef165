"""The demo: upload, annotate, train, evaluate and serve over the REST API."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiplatform.cli.demo import verdict
from aiplatform.cli.demo.digits import Drawing
from aiplatform.client import download, tus, waiting
from aiplatform.client.config import Config
from aiplatform.client.errors import ClientError
from aiplatform.client.http import Client


@dataclass
class MainJob:
    """One run of the demo. `facts` collects what the summary prints; `say` prints progress.

    Every step raises ClientError with the platform's own sentence when it refuses.
    """

    client: Client
    folder: Path  # scratch for archives
    say: Callable[[str], None]
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def step(self, name: str, work: Callable[[], Any], text: str) -> Any:
        """Run one step, timed, with a line of progress."""
        self.say(text)
        started = time.monotonic()
        result = work()
        self.seconds[name] = round(time.monotonic() - started, 1)
        return result

    def bring_in(self, name: str, intro: str, folder: Path) -> dict[str, Any]:
        """Zip a folder, upload it resumably, check it, import it; returns the finished import."""
        archive = Path(shutil.make_archive(str(self.folder / name), "zip", folder))
        upload = tus.upload(self.client, archive, quiet=True)
        dataset = self.client.post("datasets/", {"name": name, "intro": intro}, once=True)
        started = self.client.post(f"datasets/{dataset['id']}/import/", {"upload": upload}, once=True)
        done = self._until(f"datasets/{dataset['id']}/imports/{started['id']}/", waiting.GOOD, what="The import")
        return dict(done) | {"dataset": dataset["id"]}

    def annotate(self, version: int, truth: list[Drawing], *, project_name: str) -> dict[str, Any]:
        """Draw the known boxes on unannotated images as an annotator would, and convert them to a version."""
        project = self.client.post(
            "annotation/projects/",
            {"name": project_name, "intro": "Handwritten digits, created by the demo"},
            once=True,
        )
        base = f"annotation/projects/{project['id']}"
        names = sorted({box[0] for drawing in truth for box in drawing.boxes})
        labels = [{"name": name, "supercategory": "digit", "shape": "bbox"} for name in names]
        fields = {"name": "plain digits", "intro": "Created by the demo", "source": version, "labels": labels}
        made = self.client.post(f"{base}/datasets/", fields, once=True)
        ids = {row["name"]: row["id"] for row in self.client.pages(f"{base}/datasets/{made['id']}/labels/")}
        boxes = {drawing.name: drawing.boxes for drawing in truth}
        tasks = self._tasks(base, made["id"], len(truth))
        drawn = 0
        for task in tasks:
            events = [_box(ids[name], x, y, w, h) for name, x, y, w, h in boxes[Path(task["name"]).name]]
            self.client.post(f"{base}/tasks/{task['id']}/shapes/", {"events": events}, once=True)
            self.client.post(f"{base}/tasks/{task['id']}/submit/", {})
            drawn += len(events)
        export = self.client.post(f"{base}/exports/", {"dataset": made["id"], "make_version": True}, once=True)
        done = self._until(f"{base}/exports/{export['id']}/", {"success", "succeeded"}, what="The conversion")
        target = self.folder / "annotations.json"
        download.fetch(self.client, f"{base}/exports/{export['id']}/download/", target, quiet=True)
        return {"project": project["id"], "images": len(tasks), "shapes": drawn, "version": done["version"]} | {
            "coco": str(target)
        }

    def train(
        self, version: int, name: str, params: dict[str, Any], *, cpus: float, minutes: float = float("inf")
    ) -> dict[str, Any]:
        """Train the detector and wait for its end; report once if it will take much longer than `minutes`."""
        fields = {"name": name, "version": version, "preset": "detect", "params": params, "cpus": cpus}
        job = self.client.post("training/jobs/", fields, once=True)
        started, reported = time.monotonic(), set[str]()

        def heard(row: dict[str, Any]) -> None:
            for word in (row.get("phase"), verdict.lateness(row, time.monotonic() - started, minutes)):
                kind = "late" if word and " " in word else word
                if word and kind not in reported:
                    reported.add(str(kind))
                    self.say(f"  {word}")

        route = f"training/jobs/{job['id']}/"
        return dict(self._until(route, waiting.OVER, what="The training", good=waiting.GOOD, heard=heard))

    def model_of(self, training: dict[str, Any]) -> dict[str, Any]:
        """The registered version a training made."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for model in self.client.pages("models/"):
                for version in self.client.pages(f"models/{model['id']}/versions/"):
                    if training["job"] in (version.get("job"), (version.get("lineage") or {}).get("job")):
                        return dict(version)
            time.sleep(0.5)
        raise ClientError("The training completed but no model was registered within a minute.")

    def evaluate(self, model: int, version: int, *, split: str) -> dict[str, Any]:
        """Evaluate a model on a split."""
        fields = {"model_version": model, "version": version, "split": split}
        row = self.client.post("evaluations/", fields, once=True)
        return dict(self._until(f"evaluations/{row['id']}/", waiting.OVER, what="The evaluation", good=waiting.GOOD))

    def serve(self, model: int, name: str) -> dict[str, Any]:
        """Start a service and wait until it answers."""
        row = self.client.post("services/", {"name": name, "model_version": model}, once=True)
        self._until(f"services/{row['id']}/", {"ready"}, what="The endpoint")
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client.open("GET", f"/serve/{row['slug']}/v2/health/ready").close()
                return dict(row)
            except ClientError as exc:
                if exc.status not in (502, 503) or time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    def predict(self, slug: str, image: Path, *, threshold: float | None = None) -> dict[str, Any]:
        """Post one image to a service; answers below `threshold` (None: the model's own) are left out."""
        data, route = image.read_bytes(), f"/serve/{slug}/predict"
        route += f"?score_threshold={threshold:g}" if threshold else ""
        answer = self.client.open("POST", route, data=data, headers={"Content-Type": "image/jpeg"})
        try:
            return dict(answer.json())
        finally:
            answer.close()

    def _tasks(self, base: str, annotation_set: int, count: int) -> list[dict[str, Any]]:
        """Return the images to draw on, once the platform has listed the version."""
        deadline = time.monotonic() + 60
        while True:
            tasks = [dict(task) for task in self.client.pages(f"{base}/tasks/", dataset=annotation_set)]
            if len(tasks) >= count or time.monotonic() > deadline:
                return tasks
            time.sleep(0.3)

    def _until(
        self,
        route: str,
        wanted: set[str],
        *,
        what: str,
        good: set[str] | None = None,
        heard: Callable[[dict[str, Any]], None] = lambda row: None,
    ) -> Any:
        """Read `route` until its state is in `wanted`; any other end is an error with its message."""
        shown = ""
        while True:
            row = self.client.get(route)
            heard(row)
            state = waiting.state_of(row)
            line = (row.get("wait_sentence") if state == "queued" else "") or row.get("sentence") or ""
            if line and line != shown:
                self.say(f"  {line}")
                shown = line
            if state in wanted and (state not in waiting.OVER or waiting.is_over(row)):
                if good is not None and state not in good:
                    raise ClientError(f"{what} ended in state {state}: {line}")
                return row
            if (state in waiting.OVER and state not in wanted) or state == "cancelled":
                raise ClientError(f"{what} ended in state {state}: {line or row.get('detail') or ''}")
            time.sleep(0.5)


def connect(url: str, token: str) -> Client:
    """A client of the platform at `url`."""
    return Client(Config(url.rstrip("/"), token))


def _box(label: int, x: float, y: float, w: float, h: float) -> dict[str, Any]:
    ring = [x, y, x + w, y, x + w, y + h, x, y + h]
    ids = {"id": str(uuid.uuid4()), "shape": str(uuid.uuid4())}
    return ids | {"op": "put", "base": 0, "kind": "bbox", "label": label, "rings": [ring]}
