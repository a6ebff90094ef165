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
        known_digests: dict[str, str] | None = None,
        limit: int = 0,
    ) -> Path:
        """Store the results so far; the checkpoint exists once its meta.json does.

        Args:
            copied: name in it → file that may grow further, or text.
            linked: name in it → file that is not written again: a hard link where both are on one file system.
            known_digests: digests of linked files by name; new ones are added.
            limit: how many checkpoints are kept; 0: all.
        """
        final = self.checkpoints / f"step-{step:06d}"
        partial = self.checkpoints / f"step-{step:06d}.tmp"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        digests, known_digests = {}, {} if known_digests is None else known_digests
        for name, part in copied.items():
            if isinstance(part, str):
                write(partial / name, part)
            else:
                shutil.copyfile(part, partial / name)
            digests[name] = _sha256(partial / name)
        for name, file in (linked or {}).items():
            same(file, partial / name)
            if name not in known_digests:
                known_digests[name] = _sha256(file)
            digests[name] = known_digests[name]
        meta = {"format": 1, "step": step, "time": time.time(), "metric": None, "files": digests}
        write(partial / "meta.json", json.dumps(meta))
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        link = self.checkpoints / "latest.tmp"
        link.unlink(missing_ok=True)
        link.symlink_to(final.name)
        link.rename(self.checkpoints / "latest")
        if limit:
            for older in sorted(self.checkpoints.glob("step-*[0-9]"))[:-limit]:
                shutil.rmtree(older, ignore_errors=True)
        return final


def same(source: Path, target: Path) -> None:
    """Link a file that is not written again; copied where both are on different file systems."""
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
