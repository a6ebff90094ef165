"""The run contract as evaluations use it: parameters, control file, metrics, checkpoints."""

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


@dataclass(frozen=True)
class Run:
    """Paths and parameters of this attempt."""

    model: Path
    dataset: Path
    outputs: Path
    checkpoints: Path
    resume_from: Path | None
    metrics: Path
    control: Path
    params: Mapping[str, Any]
    threads: int = 1

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Run:
        params = Path(env["AIP_PARAMS"])
        return cls(
            model=Path(env["AIP_MODEL_DIR"]),
            dataset=Path(env.get("AIP_DATASET_DIR", "")),  # what watches a video has none
            outputs=Path(env["AIP_OUTPUT_DIR"]),
            checkpoints=Path(env["AIP_CHECKPOINT_DIR"]),
            resume_from=Path(env["AIP_RESUME_FROM"]) if env.get("AIP_RESUME_FROM") else None,
            metrics=Path(env["AIP_METRICS_FILE"]),
            control=Path(env["AIP_CONTROL_FILE"]),
            params=json.loads(params.read_text()) if params.exists() else {},
            threads=max(1, int(float(env.get("OMP_NUM_THREADS") or 1))),
        )

    def requested(self) -> str:
        """Return the control command in force: "" (go on), pause, suspend or finish."""
        try:
            return self.control.read_text().strip()
        except OSError:
            return ""

    def paused_s(self) -> float:
        """Return for how many seconds the platform stopped the processes of this attempt, without a present pause."""
        try:
            return max(0.0, float(self.control.with_name("paused").read_text()))
        except (OSError, ValueError):
            return 0.0

    def report(self, step: int, **values: float | str) -> None:
        """Append one line to metrics.jsonl."""
        line = json.dumps({"step": step, "time": time.time(), **values})
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def checkpoint(
        self,
        step: int,
        copied: Mapping[str, Path | str],
        linked: Mapping[str, Path] | None = None,
        *,
        known: dict[str, str] | None = None,
        most: int = 0,
    ) -> Path:
        """Store what was made so far; the checkpoint exists once its meta.json does.

        Args:
            copied: name in it → file that may grow further, or text.
            linked: name in it → file that nobody writes into again: one copy on the disk where both lie on one.
            known: digests of linked files by name; new ones are added.
            most: how many checkpoints stay; 0: all.
        """
        final = self.checkpoints / f"step-{step:06d}"
        making = self.checkpoints / f"step-{step:06d}.tmp"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        digests, known = {}, {} if known is None else known
        for name, part in copied.items():
            if isinstance(part, str):
                write(making / name, part)
            else:
                shutil.copyfile(part, making / name)
            digests[name] = _sha256(making / name)
        for name, file in (linked or {}).items():
            same(file, making / name)
            if name not in known:
                known[name] = _sha256(file)
            digests[name] = known[name]
        meta = {"format": 1, "step": step, "time": time.time(), "metric": None, "files": digests}
        write(making / "meta.json", json.dumps(meta))
        shutil.rmtree(final, ignore_errors=True)
        making.rename(final)
        link = self.checkpoints / "latest.tmp"
        link.unlink(missing_ok=True)
        link.symlink_to(final.name)
        link.rename(self.checkpoints / "latest")
        if most:
            for older in sorted(self.checkpoints.glob("step-*[0-9]"))[:-most]:
                shutil.rmtree(older, ignore_errors=True)
        return final


def same(source: Path, target: Path) -> None:
    """The same file once more: one copy on the disk where both lie on one, as nobody writes into it again."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    making = path.with_name(path.name + ".tmp")
    with making.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    making.rename(path)
