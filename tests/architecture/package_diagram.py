"""Draw the packages of each app and their dependencies as SVG, from the imports.

Each row depends only on rows below it. An edge that follows from others is left out (transitive reduction).
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from grimp import ImportGraph, build_graph

from tests.architecture.code import ROOT

APPS = ("aiplatform", "inference", "training", "annotation", "datasets", "workers", "accounts")
FOLDER = ROOT / "aiplatform" / "docs" / "packages"
LEFT_OUT = {"migrations", "management", "templatetags", "static"}
BOX_PX, BOX_HEIGHT_PX, GAP_PX, ROW_PX = 132, 30, 18, 78
STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#1f2328}rect{fill:#fff;stroke:#57606a}"
    "line{stroke:#8c959f;stroke-width:1.2}"
)
Graph = Mapping[str, set[str]]


def graph_of_imports() -> ImportGraph:
    """Return the imports of all apps, without those for type checkers."""
    return build_graph(*APPS, exclude_type_checking_imports=True)


def packages_of(app: str, imports: ImportGraph) -> dict[str, set[str]]:
    """Return the packages of an app and the packages of it that each imports."""
    children = {
        child.removeprefix(f"{app}.")
        for child in imports.find_children(app)
        if (ROOT / child.replace(".", "/")).is_dir()
    } - LEFT_OUT
    return {
        one: {
            other
            for other in children - {one}
            if imports.direct_import_exists(importer=f"{app}.{one}", imported=f"{app}.{other}", as_packages=True)
        }
        for one in sorted(children)
    }


def apps(imports: ImportGraph) -> dict[str, set[str]]:
    """Return the apps and the apps that each imports; `aiplatform` is split into its library and the rest."""
    names = {app: app for app in APPS if app != "aiplatform"} | {"aiplatform.lib": "aiplatform.lib"}
    return {
        one: {
            other
            for other in names.values()
            if other != one and imports.direct_import_exists(importer=one, imported=other, as_packages=True)
        }
        for one in sorted(names.values())
    }


def reduced(graph: Graph) -> dict[str, list[str]]:
    """Return the edges of an acyclic graph that do not follow from others, sorted."""

    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += graph[node]
        return found

    return {
        node: sorted(
            target for target in targets if not any(target in reachable(other) for other in targets - {target})
        )
        for node, targets in graph.items()
    }


def levels(graph: Graph) -> dict[str, int]:
    """Return the length of the longest path down from each node: 0 for what depends on nothing."""
    found: dict[str, int] = {}

    def level(node: str) -> int:
        if node not in found:
            found[node] = 1 + max((level(target) for target in graph[node]), default=-1)
        return found[node]

    for node in graph:
        level(node)
    return found


def draw(title: str, graph: Graph) -> str:
    """Return an SVG of an acyclic graph, the same text for the same graph."""
    rank = levels(graph)
    rows = [sorted(node for node in graph if rank[node] == row) for row in range(max(rank.values()) + 1)]
    width = max(len(row) for row in rows) * (BOX_PX + GAP_PX) + GAP_PX
    height = len(rows) * ROW_PX + GAP_PX
    centre = {
        node: (
            round(width / 2 + (place - (len(row) - 1) / 2) * (BOX_PX + GAP_PX)),
            height - ROW_PX * number - ROW_PX // 2 - GAP_PX // 2,
        )
        for number, row in enumerate(rows)
        for place, node in enumerate(row)
    }
    half = BOX_HEIGHT_PX // 2
    lines = [
        f'<line x1="{centre[node][0]}" y1="{centre[node][1] + half}" x2="{centre[to][0]}" y2="{centre[to][1] - half}"/>'
        for node, targets in sorted(reduced(graph).items())
        for to in targets
    ]
    boxes = [
        f'<rect x="{x - BOX_PX // 2}" y="{y - half}" width="{BOX_PX}" height="{BOX_HEIGHT_PX}" rx="4"/>'
        f'<text x="{x}" y="{y + 5}">{escape(node)}</text>'
        for node, (x, y) in sorted(centre.items())
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", *lines, *boxes, "</svg>", ""])


def diagrams() -> dict[Path, str]:
    """Return the text of each file in `aiplatform/docs/packages`."""
    imports = graph_of_imports()
    found = {FOLDER / "apps.svg": draw("Apps; each depends only on rows below it", apps(imports))}
    for app in APPS[1:]:
        graph = packages_of(app, imports)
        found[FOLDER / f"{app}.svg"] = draw(f"Packages of {app}; each depends only on rows below it", graph)
    return found
