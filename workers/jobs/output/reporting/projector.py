"""Vectors of TensorBoard's projector: `tensors.tsv`, a vector a line, `metadata.tsv` beside it. Pure but for files."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from workers.jobs.output.reporting import vectors
from workers.jobs.output.reporting.harvest import Harvest, Shown, name_of
from workers.jobs.output.reporting.watched import Watched

NAME, LABELS = "tensors.tsv", "metadata.tsv"
MAX_BYTES = 64 * 1024 * 1024


def read(watched: Watched, harvest: Harvest, read_sibling: Callable[[str, int], bytes]) -> None:
    """Ingest the vectors once the file is complete; the folder gives name and step (`00012/default/tensors.tsv`).

    Args:
        beside: the first bytes of a file in the same folder.
    """
    if watched.memory.get("seen") == watched.signature or watched.is_fresh:
        return
    watched.memory["seen"] = watched.signature
    if watched.size > MAX_BYTES:
        harvest.miss("file_too_large")
        return
    rows = os.pread(watched.descriptor, MAX_BYTES, 0).split(b"\n", vectors.MAX_VECTORS + 1)[: vectors.MAX_VECTORS]
    harvest.taken += watched.size
    try:
        rows_of_numbers = [np.array(row.split(b"\t")[: vectors.WIDEST], np.float32) for row in rows if row.strip()]
    except ValueError:
        rows_of_numbers = []
    if len({len(row) for row in rows_of_numbers}) != 1:
        harvest.miss("file_broken")
        return
    labels = [line.decode("utf-8", "replace").rstrip("\r") for line in read_sibling(LABELS, 1024 * 1024).split(b"\n")]
    if labels and "\t" in labels[0]:
        labels = [label.partition("\t")[0] for label in labels[1:]]  # several columns have a head
    parts = watched.folder.rsplit("/", 2)
    step = int(parts[-2]) if len(parts) > 1 and parts[-2].isdigit() and len(parts[-2]) < 18 else 0
    facts, data = vectors.flat(np.stack(rows_of_numbers), labels[: len(rows_of_numbers)])
    harvest.show(Shown("vectors", name_of(parts[-1] or "vectors"), step, watched.changed_at, facts, data))
