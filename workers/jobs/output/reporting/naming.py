"""Which curve the points of a file belong to: one key never has the points of two reports. Pure.

A key belongs to the first that reports it. The program's own `metrics.jsonl` takes it from any file; another reader of
the same folder says the same once more and is left out; another folder is another report, below its own name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from workers.jobs.output.metric_names import key_of
from workers.jobs.output.reporting.harvest import Source

_SPLIT = re.compile(r"(train|val|eval|test)(?:ing|id|idation|uation)?\Z", re.IGNORECASE)
"""Folders whose name says what their figures are of: part of the key where that has no group, as in `train/loss`."""
_PLAIN = re.compile(r"(?:metrics|results|history|progress|logs?|scalars|train(?:ing|_log)?)\Z", re.IGNORECASE)
"""File names that say nothing of what is in them."""


def key(source: Source, name: str, owners: Mapping[str, str]) -> str | None:
    """The key of a metric of a file; None where it is to be left out.

    Args:
        owners: the source of each key that there is, "" for what the program reports itself.
    """
    own_source = str(source)
    label = _label(source)
    match = _SPLIT.match(label.rpartition("/")[2])
    split = match[1].lower() if match else ""
    names = [f"{split}/{name}" if split and "/" not in name else name]
    if label:
        names += [_below(label.rpartition("/")[2], name), f"{label}/{name}"]
    for candidate in map(key_of, names):
        if not candidate:
            return None
        owner = owners.get(candidate)
        if owner is None or owner == own_source:
            return candidate
        if owner == "" or source.shy or _is_same_report(owner, source):
            return None
    return None


def _below(folder: str, name: str) -> str:
    """The name within a folder. `add_scalars("loss", {"val": …})` writes "loss" into `loss_val`: that is loss/val."""
    flat = name.replace("/", "_").replace(" ", "_")
    return f"{name}/{folder.removeprefix(f'{flat}_')}" if folder.startswith(f"{flat}_") else f"{folder}/{name}"


def _label(source: Source) -> str:
    """What tells this report from others: its folder, and its file's name where that says more than what is in it."""
    if source.reader in ("events", "trainer_state"):
        return source.place
    folder, _, file = source.place.rpartition("/")
    stem = file.rpartition(".")[0]
    return folder if _PLAIN.match(stem) else "/".join(filter(None, (folder, stem)))


def _is_same_report(owner: str, source: Source) -> bool:
    """Whether the key belongs to another reader's report of the same folder."""
    reader, _, path = owner.partition(":")
    if reader == source.reader:
        return False
    return _folder(reader, path) == _folder(source.reader, source.place)


def _folder(reader: str, path: str) -> str:
    return path if reader in ("events", "trainer_state") else path.rpartition("/")[0]
