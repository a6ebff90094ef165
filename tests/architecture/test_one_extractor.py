"""Archives are opened in one place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ["accounts", "aiplatform", "annotation", "datasets", "inference", "training", "workers"]
#: Layers of images hold links and whiteouts, which no other archive may: their reader refuses all else, see its tests.
LAYERS = ("workers/images/store/archive.py", "workers/images/store/unpacking.py")
#: Beside it, those that pack their own files; bundles are read before anything else of the platform can run, and
#: packages of models on devices where there is no platform, after their sum was found to be the signed one.
PACKERS = (
    "aiplatform/client/", "aiplatform/cli/demo/", "aiplatform/cli/bundle.py", "aiplatform/cli/bundling.py",
    "workers/images/containers/archive.py", "inference/delivery/edge/device/agent.py",
)  # fmt: skip
ALLOWED = ("aiplatform/lib/archives.py", *LAYERS, *PACKERS)


def _imports(path: Path) -> set[str]:
    found = set()
    source = path.read_text()
    if not re.search("zipfile|tarfile|unpack_archive|make_archive", source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Attribute) and node.attr in {"unpack_archive", "make_archive"}:
            found.add("tarfile")
    return found


def test_archives_are_touched_by_the_one_extractor_only():
    guilty = [
        path.relative_to(ROOT).as_posix()
        for app in APPS
        for path in sorted((ROOT / app).rglob("*.py"))
        if _imports(path) & {"zipfile", "tarfile"}
    ]

    assert [path for path in guilty if not path.startswith(ALLOWED)] == []
