"""The report as files: one JSON document, and one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from aiplatform.cli.gpu_report.definitions import Status, as_text

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;color:#1c2127;background:#fff;max-width:1100px;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;width:100%;margin:.5em 0 1.5em}th,td{text-align:left;vertical-align:top;
padding:.35em .6em;border-bottom:1px solid #d8dde3}th{font-weight:600}td.n{text-align:right;
font-variant-numeric:tabular-nums}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:1.8em}.s{padding:.1em .5em;
border-radius:.4em;white-space:nowrap;font-size:.9em}.pass{background:#d9f2e0}.fail{background:#fadbd8}
.not{background:#e9ecef}.skipped{background:#e9ecef}.simulated{background:#fff3cd}pre{white-space:pre-wrap;
background:#f4f5f7;padding:.7em;font-size:.85em}.q{color:#5c6670}
@media (prefers-color-scheme:dark){body{background:#16191d;color:#e3e6ea}th,td{border-color:#3a4048}
.pass{background:#1d4d2b}.fail{background:#6b2620}.not,.skipped{background:#343a40}.simulated{background:#5c4a00}
pre{background:#22262b}.q{color:#9aa4af}}
"""


def write(document: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    """Write report.json and report.html; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    as_json, as_html = folder / "report.json", folder / "report.html"
    as_json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    as_html.write_text(page(document), encoding="utf-8")
    return as_json, as_html


def page(document: Mapping[str, Any]) -> str:
    """The HTML page."""
    title = f"GPU report of {document['node']}"
    parts = [
        format_html("<h1>{}</h1><p>{}</p>", title, headline(document)),
        _warnings(document),
        mark_safe("<h2>Results</h2>"),
        _overview(document),
        mark_safe("<h2>Measured values</h2>"),
        format_html_join("", "{}", ((_check(check),) for check in document["checks"] if check["values"])),
        mark_safe("<h2>Node</h2>"),
        _facts(document["facts"]),
    ]
    return format_html(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>{}</title><style>{}</style></head><body>{}</body></html>",
        title, mark_safe(STYLE), format_html_join("", "{}", ((part,) for part in parts)),  # noqa: S308 - ours
    )  # fmt: skip


def headline(document: Mapping[str, Any]) -> str:
    """One sentence of how the checks went."""
    counts = [f"{count} {status}" for status, count in document["summary"].items() if count]
    text = f"{', '.join(counts) or 'Nothing was checked'}. {document['started_at']} to {document['ended_at']}, "
    return text + f"version {document['version']}, limit {document['minutes']:g} min."


def _warnings(document: Mapping[str, Any]) -> SafeString:
    reservation = document["reservation"]
    lines = [*reservation.get("warnings", ()), *filter(None, [reservation.get("problem")])]
    if document["simulated"]:
        lines.insert(0, "The GPUs are simulated (AIP_FAKE_GPUS): all values are examples, nothing was measured.")
    lines.append(f"GPUs reserved by: {reservation.get('how', 'none')}" + _job(reservation))
    return format_html("<ul>{}</ul>", format_html_join("", "<li>{}</li>", ((line,) for line in lines)))


def _job(reservation: Mapping[str, Any]) -> str:
    return f" #{reservation['job']}" if reservation.get("job") else ""


def _overview(document: Mapping[str, Any]) -> SafeString:
    rows = (
        (check["title"], ", ".join(check["lines"]), _badge(check["status"]), check["reason"], f"{check['seconds']:.1f}")
        for check in document["checks"]
    )
    return format_html(
        "<table><tr><th>Check</th><th>Feature lines</th><th>Status</th><th>Reason</th><th>s</th></tr>{}</table>",
        format_html_join(
            "", '<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class="n">{}</td></tr>', rows
        ),
    )  # fmt: skip


def _check(check: Mapping[str, Any]) -> SafeString:
    rows = (
        (
            row["label"], "not measured" if row["value"] is None else as_text(row["value"]), row["unit"],
            row["expectation"], "" if row["met"] is None else _badge(_verdict(check, row)),
        )
        for row in check["values"]
    )  # fmt: skip
    output = format_html("<pre>{}</pre>", check["output"]) if check["output"] else ""
    return format_html(
        '<h3>{} {}</h3><table>'
        "<tr><th>Value</th><th>Measured</th><th>Unit</th><th>Expected</th><th></th></tr>{}</table>{}",
        check["title"], _badge(check["status"]),
        format_html_join("", '<tr><td>{}</td><td class="n">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>', rows),
        output,
    )  # fmt: skip


def _verdict(check: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    if check["status"] == Status.SIMULATED:
        return Status.SIMULATED
    return Status.PASSED if row["met"] else Status.FAILED


def _badge(status: str) -> SafeString:
    return format_html('<span class="s {}">{}</span>', status.split(maxsplit=1)[0], status)


def _facts(facts: Mapping[str, Any]) -> SafeString:
    nvml = facts.get("nvml", {})
    gpus = nvml.get("gpus") or facts.get("devices", [])
    plain = {name: value for name, value in facts.items() if not isinstance(value, list | dict)}
    plain |= {name: nvml[name] for name in ("driver", "cuda_driver") if nvml.get(name)}
    plain |= {f"PyTorch: {name}": value for name, value in facts.get("torch", {}).items()}
    tables = [_pairs(plain), *(_pairs(gpu) for gpu in gpus)]
    if len(gpus) > 1 and nvml.get("links"):
        rows = ((f"GPU {index}", " · ".join(links)) for index, links in enumerate(nvml["links"]))
        tables.append(format_html("<h3>Links</h3>{}", _pairs(dict(rows))))
    return format_html_join("", "{}", ((table,) for table in tables))


def _pairs(values: Mapping[str, Any]) -> SafeString:
    rows = ((name.replace("_", " "), _plain(value)) for name, value in values.items())
    return format_html("<table>{}</table>", format_html_join("", "<tr><th>{}</th><td>{}</td></tr>", rows))


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return as_text(value) if isinstance(value, bool | float) else str(value)
