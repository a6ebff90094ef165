"""Results of the newest images while the others are predicted, for the page of the running evaluation."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from inference.kit.contracts.served_task import Line, Scoring
from inference.kit.samples.ground_truth import Truth
from inference.kit.samples.run import write

NAME = "preview.json"
COUNT = 12  # images, as a part of the gallery has
EVERY_S = 2.0
MAX_SHARE = 0.05  # of the time that goes by


class Preview:
    """Scores the newest lines now and then, at a small share of the time of the evaluation."""

    def __init__(self, outputs: Path, truth: Truth, scoring: Scoring) -> None:
        self.file, self.truth, self.scoring = outputs / NAME, truth, scoring
        self.newest: deque[Line] = deque(maxlen=COUNT)
        self.next = 0.0

    def show(self, lines: Sequence[Line]) -> None:
        """Write the results of the newest images, unless that was done just now."""
        self.newest.extend(lines)
        began = time.monotonic()
        if not self.newest or began < self.next:
            return
        judged, images = self.scoring.evaluate(self.truth, list(self.newest))
        summary = {"threshold": judged["summary"].get("threshold")}
        classes = [{"id": row["id"], "name": row["name"]} for row in judged.get("classes", ())]
        write(self.file, json.dumps({"summary": summary, "classes": classes, "images": images}))
        ended = time.monotonic()
        self.next = ended + max(EVERY_S, (ended - began) / MAX_SHARE)

    def remove(self) -> None:
        """Remove the file: the results of all images take its place."""
        self.file.unlink(missing_ok=True)
