"""A page with nothing but the pipeline editor on it, and a server of drafts behind it, without any port.

Requests of the page are answered here: static files from the rooms, the API by `Drafts`. For tests and the bench.
"""

from __future__ import annotations

import json
import mimetypes
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://editor.test"
ROOMS = [path for path in sorted(ROOT.glob("*/static")) if path.is_dir()]
SHEETS = [f"base/{name}.css" for name in ("tokens", "base", "controls", "components", "notices", "frame")]
OWN_SHEETS = [f"pipelines/{name}.css" for name in ("canvas", "steps", "editor", "forms")]
GROUPS = ("data", "people", "train", "judge", "ship", "other")
TYPES = ("dataset", "model", "figures", "list", "service", "file", "signal")


def port(name: str, type_: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "label": name.capitalize(), "type": type_, "optional": False, "many": False} | more


def param(name: str, form: str = "text", **more: Any) -> dict[str, Any]:
    usual = {"default": None, "required": False, "choices": None, "low": None, "high": None, "help": ""}
    return {"name": name, "label": name.capitalize(), "form": form} | usual | more


def kind(name: str, group: str, inputs: str = "", outputs: str = "", *params: dict[str, Any]) -> dict[str, Any]:
    """Ports are written `name:type`, with ? for one that may be left open and * for one that takes many."""

    def ports(text: str) -> list[dict[str, Any]]:
        parts = [one.split(":") for one in text.split()]
        return [port(name.strip("?*"), type_, optional="?" in name, many="*" in name) for name, type_ in parts]

    label = name.capitalize()
    return {
        "name": name, "label": label, "about": f"{label} something.", "group": group, "icon": "box",
        "inputs": ports(inputs), "outputs": ports(outputs), "params": list(params),
    }  # fmt: skip


CATALOGUE = {
    "types": {name: {"label": name.capitalize()} for name in TYPES},
    "groups": [{"name": name, "label": name.capitalize()} for name in GROUPS],
    "kinds": [
        kind(
            "dataset", "data", "", "data:dataset",
            param("dataset", required=True), param("version", default="latest"),
        ),
        kind("filter", "data", "data:dataset", "data:dataset", param("words", "long")),
        kind(
            "split", "data", "data:dataset", "train:dataset test:dataset",
            param("share", "number", default=0.2, low=0, high=1),
        ),
        kind("merge", "data", "data*:dataset", "data:dataset"),
        kind("items", "data", "", "items:list", param("values", "json", default=[])),
        kind("annotate", "people", "data:dataset model:model", "data:dataset"),
        kind("approve", "people", "", "passed:signal refused:signal", param("people")),
        kind(
            "train", "train", "data:dataset weights?:model", "model:model figures:figures",
            param("preset", "choice", default="fcos", choices=[["fcos", "FCOS"], ["classify_small", "Small"]]),
            param("epochs", "whole", default=10, low=1, high=1000), param("augment", "yesno", default=True),
            param("params", "json", default={}), param("token", "secret"),
        ),
        kind("study", "train", "data:dataset", "model:model figures:figures"),
        kind("evaluate", "judge", "model:model data:dataset", "figures:figures"),
        kind("compare", "judge", "figures:figures champion:figures", "figures:figures"),
        kind("gate", "judge", "figures*:figures", "passed:signal refused:signal", param("rule", required=True)),
        kind("condition", "judge", "", "yes:signal no:signal"),
        kind("convert", "ship", "model:model", "model:model", param("to", "choice", choices=[["int8", "int8"]])),
        kind("serve", "ship", "model:model", "service:service", param("service", required=True)),
        kind("edge", "ship", "model:model", "model:model"),
        kind("predict", "ship", "model:model data:dataset", "file:file"),
        kind("command", "other", "input?:any", "file:file items:list", param("command", "long", required=True)),
        kind("notify", "other", "", "", param("text", "long", required=True)),
        kind("webhook", "other", "", "", param("address", required=True)),
    ],
}  # fmt: skip

SPEC = {
    "format": 1,
    "parameters": {"preset": {"default": "classify_small", "note": "which"}},
    "steps": {
        "cells": {"kind": "dataset", "with": {"dataset": "BCCD"}},
        "train": {
            "from": {"data": "cells.data"}, "kind": "train", "retries": 1,
            "with": {"params": {"epochs": 3}, "preset": "${preset}"},
        },
        "judge": {"from": {"data": "cells.data", "model": "train.model"}, "kind": "evaluate", "later": {"key": 1}},
        "better": {
            "from": {"figures": ["judge.figures", "train.figures"]}, "kind": "gate", "with": {"rule": "AP50 >= 0.85"},
        },
        "serve": {
            "after": ["tell"], "from": {"model": "train.model"}, "kind": "serve", "note": "the one people call",
            "when": "better.passed", "with": {"service": "cells"},
        },
        "tell": {"after": ["train"], "kind": "notify", "rule": "any_failed", "with": {"text": "it failed"}},
        "things": {"kind": "items", "with": {"values": [1, 2]}},
        "many": {
            "each": "things.items", "kind": "command", "tolerate": 0.5, "with": {"command": "echo ${item} $${HOME}"},
        },
    },
}  # fmt: skip


def long_spec(count: int) -> dict[str, Any]:
    """A pipeline of `count` steps in branches of ten, each link to an earlier step."""
    steps: dict[str, Any] = {"dataset": {"kind": "dataset", "with": {"dataset": "BCCD"}}}
    last = {"data": "dataset.data", "model": "", "figures": ""}
    for n in range(1, count):
        name = f"{('split', 'train', 'evaluate', 'convert')[n % 4]}_{n}"
        match n % 4:
            case 0:
                steps[name] = {"kind": "split", "from": {"data": last["data"] if n % 40 else "dataset.data"}}
                last["data"] = f"{name}.train"
            case 1:
                steps[name] = {"kind": "train", "from": {"data": last["data"]}}
                last["model"] = f"{name}.model"
            case 2:
                steps[name] = {"kind": "evaluate", "from": {"data": last["data"], "model": last["model"]}}
            case _:
                steps[name] = {"kind": "convert", "from": {"model": last["model"]}, "with": {"to": "int8"}}
    return {"format": 1, "steps": steps}


@dataclass
class Drafts:
    """The server's side: one draft with a revision, answers as the API gives them."""

    spec: dict[str, Any] = field(default_factory=lambda: json.loads(json.dumps(SPEC)))
    layout: dict[str, Any] = field(default_factory=dict)
    revision: int = 1
    versions: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, Any]] = field(default_factory=list)
    away: bool = False  # no answer comes

    def given(self, **more: Any) -> dict[str, Any]:
        """What the page is made with."""
        urls = {"draft": "/draft/", "check": "/check/", "versions": "/versions/", "run": "/run/"}
        state = {"spec": self.spec, "layout": self.layout, "revision": self.revision}
        return {"catalogue": CATALOGUE, "urls": urls} | state | more

    def answer(self, method: str, path: str, body: Any, match: str) -> tuple[int, Any]:
        if path == "/check/":
            return 200, {"problems": self.problems}
        if path == "/versions/":
            self.versions.append(body)
            self.spec, self.layout, self.revision = body["spec"], body["layout"], 0  # it takes the draft's place
            return 201, {"number": len(self.versions), "sha256": "0" * 64}
        state = {"revision": self.revision, "spec": self.spec, "layout": self.layout}
        if method != "PUT":
            return 200, state
        if match != f'"{self.revision}"':
            return 412, state
        self.spec, self.layout, self.revision = body["spec"], body["layout"], self.revision + 1
        return 200, {"revision": self.revision}


PAGE = """<!doctype html><html lang="{language}" data-zone="UTC"><head><meta charset="utf-8"><title>Editor</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{sheets}</head>
<body style="display:flex;flex-direction:column;height:100vh">
<main style="display:flex;flex-direction:column;flex:1;min-height:0"><h1 class="sr-only">Pipeline</h1>
<div id="root" style="flex:1;min-height:0"></div></main>
<script>{texts}</script><script type="module">{script}</script></body></html>"""

EDITOR = """import {{ mount }} from "/static/pipelines/mount.js"; const given = {given};
const began = performance.now(); globalThis.editor = mount(document.getElementById("root"), given);
globalThis.opened = performance.now() - began;"""
VIEW = """import {{ View }} from "/static/pipelines/view.js"; const given = {given};
const root = document.getElementById("root"); root.style.display = "grid"; globalThis.steps = [];
globalThis.view = new View(root, given.catalogue, given.spec, given.layout);
view.addEventListener("step", ({{ detail }}) => steps.push(detail.step));"""


def serve(
    page: Any,
    drafts: Drafts,
    *,
    script: str = EDITOR,
    texts: str = "",
    language: str = "en",
    dark: bool = False,
    **more: Any,
) -> None:
    """Answer every request of a Playwright page; it is opened by `page.goto(ADDRESS)`."""

    def html() -> str:
        sheets = SHEETS + ["base/dark.css"] * dark + OWN_SHEETS
        links = "".join(f'<link rel="stylesheet" href="/static/{name}">' for name in sheets)
        code = script.format(given=json.dumps(drafts.given(**more)))
        return PAGE.format(language=language, sheets=links, script=code, texts=texts)

    def route(request: Any) -> None:
        asked, path = request.request, urlsplit(request.request.url).path
        if path.startswith("/static/"):
            found = next((room / path[8:] for room in ROOMS if (room / path[8:]).is_file()), None)
            kind = mimetypes.guess_type(path)[0] or "text/plain"
            request.fulfill(status=200 if found else 404, body=found.read_bytes() if found else b"", content_type=kind)
        elif path == "/":
            request.fulfill(status=200, body=html(), content_type="text/html; charset=utf-8")
        elif drafts.away:
            request.abort()
        elif path == "/favicon.ico":
            request.fulfill(status=204)
        else:
            body = json.loads(asked.post_data) if asked.post_data else None
            status, said = drafts.answer(asked.method, path, body, asked.headers.get("if-match", ""))
            request.fulfill(status=status, json=said)

    page.route("**/*", route)
