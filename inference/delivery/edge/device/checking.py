"""Does a package work here: it answers a picture, or those that came along as the platform answered them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from .about import gradient_png
from .durable import Json, write

TEST_S = 120
FAILED, DIFFER = "failed_self_test", "answers_differ"
DIFFERS = 3  # exit code of run.py
FACTS = ("sample", "samples", "kind", "largest", "tolerance")

#: A code for the server ("" where it works), what a tool said of it, and which answer differs by how much.
Found = tuple[str, str, Json]


def self_test(folder: Path, root: Path) -> Found:
    """Run the self-test of a package in a separate process.

    Args:
        folder: of the package.
        root: of the agent.
    """
    with_answers = (folder / "selftest" / "answers.json").is_file()
    if with_answers:
        args = ["--check"]
    else:
        sample = root / "sample.png"
        if not sample.exists():
            write(sample, gradient_png())
        args = [str(sample)]
    command = [sys.executable, "-I", str(folder / "run.py"), *args]
    try:
        process = subprocess.run(command, timeout=TEST_S, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return FAILED, f"no answer within {TEST_S} s", {}
    if process.returncode and not (with_answers and process.returncode == DIFFERS):
        return FAILED, process.stderr.decode(errors="replace").strip()[-300:] or f"exit code {process.returncode}", {}
    try:
        output: Any = json.loads(process.stdout)
        if not with_answers:
            output["predictions"]
            return "", "", {}
        facts = {name: output[name] for name in FACTS}
    except (ValueError, LookupError, TypeError):
        return FAILED, "its answer is no JSON with " + ("what differs" if with_answers else "predictions"), {}
    return (DIFFER, "", facts) if process.returncode else ("", "", {})
