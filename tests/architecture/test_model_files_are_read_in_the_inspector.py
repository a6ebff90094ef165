"""Processes of the platform leave the reading of model files to the sandboxed inspector."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READERS = {"survey", "describe", "onnx", "safetensors", "extract"}
#: What runs inside of it, or is what it runs.
INSIDE = (
    "inference/registry/formats/",
    "inference/registry/inspector/",
    "inference/registry/inspector/trial_candidates.py",
)


def test_only_the_inspector_imports_the_readers_of_model_files():
    found = []
    for path in sorted((ROOT / "inference").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(INSIDE):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inference.registry.formats"):
                found += [f"{place}: {name.name}" for name in node.names if name.name in READERS]
            elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("archives.extract", "Files.read"):
                found.append(f"{place}: {ast.unparse(node)}")

    assert found == []
