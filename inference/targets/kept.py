"""What of a conversion is done: variants with their rows, kept beside the outputs and in checkpoints."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.evaluator.run import Run, write

LINES = "predictions.jsonl"
KEPT = 2  # checkpoints: a reader that finds the newest damaged takes the one before


@dataclass(frozen=True)
class Kept:
    """The variants that are done, each in a folder of its own under outputs/targets: its model, answers and row."""

    run: Run

    @property
    def root(self) -> Path:
        return self.run.outputs / "targets"

    def folder(self, name: str) -> Path:
        return self.root / name

    def row(self, name: str) -> dict[str, Any] | None:
        """The row of a variant that is done; None of one that is not."""
        try:
            found: dict[str, Any] = json.loads((self.folder(name) / "row.json").read_text())
        except OSError:
            return None
        return found

    def finish(self, name: str, row: Mapping[str, Any]) -> None:
        """Say that a variant is done, and keep it where a further attempt finds it."""
        write(self.folder(name) / "row.json", json.dumps(row))
        self._checkpoint()

    def bring_back(self) -> None:
        """Take over what an earlier attempt finished."""
        before = self.run.resume_from
        for row in sorted(before.glob("*.row.json")) if before else ():
            name = row.name.removesuffix(".row.json")
            folder = self.folder(name)
            if (folder / "row.json").exists():
                continue
            folder.mkdir(parents=True, exist_ok=True)
            for kind in ("model.onnx", LINES, "row.json"):  # the row last: it says that the others are there
                kept = row.with_name(f"{name}.{kind}")
                if kept.exists():
                    shutil.copyfile(kept, folder / kind)

    def _checkpoint(self) -> None:
        done = sorted(path.parent for path in self.root.glob("*/row.json"))
        final = self.run.checkpoints / f"step-{len(done):06d}"
        making = final.with_name(final.name + ".tmp")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        digests = {}
        for folder in done:
            for kind in ("model.onnx", LINES, "row.json"):
                if (folder / kind).exists():
                    kept = making / f"{folder.name}.{kind}"
                    _same(folder / kind, kept)
                    digests[kept.name] = _sha256(kept)
        meta = {"format": 1, "step": len(done), "time": time.time(), "metric": None, "files": digests}
        write(making / "meta.json", json.dumps(meta))
        shutil.rmtree(final, ignore_errors=True)
        making.rename(final)
        link = self.run.checkpoints / "latest.tmp"
        link.unlink(missing_ok=True)
        link.symlink_to(final.name)
        link.rename(self.run.checkpoints / "latest")
        for older in sorted(self.run.checkpoints.glob("step-*[0-9]"))[:-KEPT]:
            shutil.rmtree(older, ignore_errors=True)


def _same(source: Path, target: Path) -> None:
    """The same file once more: one copy on the disk where both lie on one, as nobody writes into it again."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
