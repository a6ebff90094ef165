"""The table of a conversion's variants as its page shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from inference.conversion import results
from inference.conversion.converter import variant_catalog
from inference.conversion.labels import STATE_LABELS, label
from inference.conversion.models import Conversion
from inference.kit.task_kinds import TASKS
from inference.registry import hardware_speeds


def metric_word(task: str, metric: str) -> str:
    """What the figure is called by which variants are judged."""
    figures = TASKS[task].pages.figures if task in TASKS else ()
    return next((_(figure.label) for figure in figures if figure.key == metric), metric)


def build_context(conversion: Conversion) -> dict[str, Any]:
    """Return the rows of the variants, also of those not created yet, and the conditions of their measurement."""
    document = results.load(conversion)
    by_name = {row["target"]: row for row in document["rows"]}
    source, stored = (
        by_name.get(variant_catalog.SOURCE),
        {variant.target: variant for variant in conversion.variants.all()},
    )
    names = [variant_catalog.SOURCE, *conversion.params.get("targets", [])]
    rows = [_row(name, by_name.get(name), source, document.get("metric", "")) for name in names]
    for row in rows:
        row["variant"] = stored.get(row["target"])
        ends = row["variant"].figures if row["variant"] else {}
        if ends.get("loss_high") is not None:
            row["gain_low"], row["gain_high"] = -ends["loss_high"], -ends["loss_low"]
        row["is_fastest"] = bool(document.get("fastest")) and row["target"] == document["fastest"]
    if conversion.job.is_live:
        current = next((row for row in rows if not row["state"]), None)
        if current is not None:
            current["is_current"] = True
    return {
        "rows": rows,
        "fastest": next((row for row in rows if row["is_fastest"] and not row["is_source"]), None),
        "metric": document.get("metric", ""),
        "looks": document.get("looks", 0),
        "tools": document.get("tools", {}),
        "complete": document.get("complete", False),
        "none_faster": document.get("complete", False) and not document.get("fastest"),
        "uncertain": any(
            row["state"] == "accepted" and row["speed"] and row["speed"]["faster"] is None for row in rows
        ),
        "speed": next((row["speed"] for row in rows if row["speed"]), None),
        "busy": max((row["speed"]["busy"] or 1.0 for row in rows if row["speed"]), default=1.0),
        "sensitive": [row | entry for row in rows for entry in row.get("sensitive", ())],
        "engines": [row | {"precisions": _precisions(row["layers"])} for row in rows if row.get("engine")],
        "without": max((len(row.get("without", ())) for row in rows), default=0),
        "classes": _classes(by_name, names, document.get("metric", "")),
    }


def on_hardware(conversion: Conversion) -> dict[str, Any] | None:
    """Return the median ms per image on each kind of hardware, for the source and the variants that are versions.

    None where none of them was timed on any.
    """
    versions = {variant_catalog.SOURCE: conversion.version_id} | {
        variant.target: variant.made_id for variant in conversion.variants.all()
    }
    version_ids = {name: pk for name, pk in versions.items() if pk is not None}
    speeds = hardware_speeds.for_versions(version_ids.values())
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    for name, pk in version_ids.items():
        for speed in speeds.get(pk, ()):
            key = (speed.hardware, speed.machine, speed.threads)
            row = rows.setdefault(key, {"kind": speed, "devices": 0, "nodes": set(), "ms": {}})
            row["devices"] = max(row["devices"], speed.devices)
            row["nodes"] |= set(speed.nodes)
            row["ms"][name] = min(speed.p50_ms, row["ms"].get(name, speed.p50_ms))
    if not rows:
        return None
    for row in rows.values():
        row["nodes"], row["ms"] = sorted(row["nodes"]), [row["ms"].get(name) for name in version_ids]
    return {
        "variants": [label(name) for name in version_ids],
        "rows": list(rows.values())[: hardware_speeds.MAX_KINDS],
    }


def _row(name: str, row: Mapping[str, Any] | None, source: Mapping[str, Any] | None, metric: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "target": name,
        "label": label(name),
        "is_source": name == variant_catalog.SOURCE,
        "speed": None,
        "faster": None,
    }
    if row is None:
        return shown | {"state": ""}
    shown |= dict(row) | {"state_word": STATE_LABELS[row["state"]]}
    widest = max(
        (entry for entry in row["differences"].values() if entry["largest"] is not None), key=_share, default=None
    )
    shown["apart"], shown["apart_share"] = (widest["largest"], _share(widest)) if widest else (None, None)
    if source and row is not source:
        shown["smaller"] = _times(source["size_bytes"], row["size_bytes"])
        if row["speed"]:
            shown["faster"], shown["more"] = row["speed"]["faster"], row["speed"]["more"]
        if row["speed"] and source["speed"] and not shown["faster"]:  # too noisy for an interval: the plain ratios
            shown["about_faster"] = _times(source["speed"]["p50_ms"], row["speed"]["p50_ms"])
            shown["about_more"] = _times(row["speed"].get("images_per_s"), source["speed"].get("images_per_s"))
    return shown


def _precisions(layers: list[dict[str, str]]) -> list[dict[str, Any]]:
    """How many layers compute in which numbers, the most common first."""
    counted = Counter(layer["precision"] for layer in layers)
    return [{"precision": precision, "count": count} for precision, count in counted.most_common()]


def _share(apart: Mapping[str, float | None]) -> float:
    """The largest difference as a share of the range of the output."""
    largest, span = apart["largest"] or 0.0, apart["range"] or 0.0
    return largest / span if span else 0.0


def _times(value: float | None, other: float | None) -> float | None:
    return value / other if value and other else None


def _classes(rows: Mapping[str, Mapping[str, Any]], names: list[str], metric: str) -> dict[str, Any] | None:
    """What each class scored in each variant; None where the task scores no classes."""
    judged = [name for name in names if rows.get(name, {}).get("classes")]
    if not judged:
        return None
    key = next((key for key in (metric, "ap", "f1") if key in rows[judged[0]]["classes"][0]), "")
    if not key:
        return None
    first = rows[judged[0]]["classes"]
    values = {name: {entry.get("id"): entry.get(key) for entry in rows[name]["classes"]} for name in judged}
    return {
        "key": key,
        "variants": [label(name) for name in judged],
        "rows": [
            {"name": entry.get("name", ""), "values": [values[name].get(entry.get("id")) for name in judged]}
            for entry in first
        ],
    }
