"""Does a package work here: it answers a picture, or those that came along as the platform answered them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from .about import picture
from .durable import Json, write

TEST_S = 120
FAILED, DIFFER = "failed_self_test", "answers_differ"
DIFFERS = 3  # exit code of run.py
FACTS = ("sample", "samples", "kind", "largest", "tolerance")

#: A code for the server ("" where it works), what a tool said of it, and which answer differs by how much.
Found = tuple[str, str, Json]


def self_test(place: Path, root: Path) -> Found:
    """Let a package answer in a process of its own.

    Args:
        place: its folder.
        root: of the agent.
    """
    with_answers = (place / "selftest" / "answers.json").is_file()
    if with_answers:
        words = ["--check"]
    else:
        sample = root / "sample.png"
        if not sample.exists():
            write(sample, picture())
        words = [str(sample)]
    command = [sys.executable, "-I", str(place / "run.py"), *words]
    try:
        done = subprocess.run(command, timeout=TEST_S, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return FAILED, f"no answer within {TEST_S} s", {}
    if done.returncode and not (with_answers and done.returncode == DIFFERS):
        return FAILED, done.stderr.decode(errors="replace").strip()[-300:] or f"exit code {done.returncode}", {}
    try:
        said: Any = json.loads(done.stdout)
        if not with_answers:
            said["predictions"]
            return "", "", {}
        facts = {name: said[name] for name in FACTS}
    except (ValueError, LookupError, TypeError):
        return FAILED, "its answer is no JSON with " + ("what differs" if with_answers else "predictions"), {}
    return (DIFFER, "", facts) if done.returncode else ("", "", {})
