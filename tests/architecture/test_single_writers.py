"""Rules a linter cannot say."""

import ast

from tests.architecture.code import APPS, ROOT, modules, modules_with, text, tree, where

WRITER = ROOT / "workers/jobs/transitions.py"


def writes_state(parsed: ast.AST):
    """Lines that assign a job's or attempt's `state`."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and target.attr == "state":
                    owner = ast.unparse(target.value).rsplit(".", 1)[-1]
                    if owner in {"job", "attempt"}:
                        yield target.lineno
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"update", "create"}:
            source = ast.unparse(node.func)
            if source.startswith(("Job.", "Attempt.", "jobs.", "attempts.")):
                yield from (node.lineno for keyword in node.keywords if keyword.arg == "state")


def test_job_state_is_written_by_transitions_only():
    paths = modules_with(r"\.state\b|\bstate=")
    found = [where(p, line) for p in paths if p != WRITER for line in writes_state(tree(p))]

    assert found == []


def test_modules_stay_readable():
    long = {str(p.relative_to(ROOT)): n for p in modules(*APPS, "aiplatform") if (n := len(text(p).splitlines())) > 400}

    assert long == {}
