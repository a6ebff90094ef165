"""A file near 400 lines is asking for a second noun."""

from __future__ import annotations

import subprocess

from tests.architecture.code import ROOT

MAX_LINES = 400
KINDS = ("*.py", "*.js", "*.css", "*.html")


def test_files_have_at_most_400_lines():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *KINDS],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.split("\n")  # fmt: skip
    names = [name for name in listed if name] or [str(p.relative_to(ROOT)) for kind in KINDS for p in ROOT.rglob(kind)]
    ours = [name for name in names if not {"vendor", "locale", "migrations", ".venv", "var"} & set(name.split("/"))]

    long = {
        name: count
        for name in ours
        if (ROOT / name).is_file() and (count := (ROOT / name).read_bytes().count(b"\n")) > MAX_LINES
    }

    assert len(ours) > 400
    assert long == {}
