"""Completed variants of a conversion with their rows, stored in the outputs and in checkpoints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.kit.model_io.tensorrt import SUFFIX
from inference.kit.prediction import selftest
from inference.kit.samples.run import Run, write

LINES, IMAGES = "predictions.jsonl", "images.jsonl"
FILES = ("model.onnx", LINES, IMAGES, selftest.FILE, "row.json")  # of a variant, the row last
MAX_CHECKPOINTS = 2  # checkpoints: a reader that finds the newest damaged takes the one before


@dataclass(frozen=True)
class CompletedVariants:
    """The variants that are done, each in a folder of its own under outputs/targets: its model, answers and row."""

    run: Run

    @property
    def root(self) -> Path:
        return self.run.outputs / "targets"

    def folder(self, name: str) -> Path:
        return self.root / name

    def row(self, name: str) -> dict[str, Any] | None:
        """Return the row of a completed variant; None if it is not completed."""
        try:
            row: dict[str, Any] = json.loads((self.folder(name) / "row.json").read_text())
        except OSError:
            return None
        return row

    def finish(self, name: str, row: Mapping[str, Any]) -> None:
        """Say that a variant is done, and keep it where a further attempt finds it."""
        write(self.folder(name) / "row.json", json.dumps(row))
        self._checkpoint()

    def forget(self, name: str) -> None:
        """Have a variant made once more."""
        (self.folder(name) / "row.json").unlink(missing_ok=True)

    def restore(self) -> None:
        """Copy the variants that an earlier attempt completed."""
        before = self.run.resume_from
        for row in sorted(before.glob("*.row.json")) if before else ():
            name = row.name.removesuffix(".row.json")
            folder = self.folder(name)
            if (folder / "row.json").exists():
                continue
            folder.mkdir(parents=True, exist_ok=True)
            kinds = [path.name.removeprefix(f"{name}.") for path in row.parent.glob(f"{name}.*{SUFFIX}")]
            for kind in (*kinds, *FILES):  # the row last: it says that the others are there
                stored = row.with_name(f"{name}.{kind}")
                if stored.exists():
                    shutil.copyfile(stored, folder / kind)

    def _checkpoint(self) -> None:
        done = sorted(path.parent for path in self.root.glob("*/row.json"))
        parts = {
            f"{folder.name}.{kind}": folder / kind for folder in done for kind in FILES if (folder / kind).exists()
        }
        parts |= {f"{path.parent.name}.{path.name}": path for path in self.root.glob(f"*/*{SUFFIX}")}
        self.run.checkpoint(len(done), {}, parts, limit=MAX_CHECKPOINTS)
