"""The examples of the SDK's guide run as they are, in both languages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import aiplatform
from training.programs import sdk_files

SITE = Path(aiplatform.__file__).parent / "docs" / "site"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language):
    return BLOCK.findall((SITE / language / "how-to" / "sdk.md").read_text())


def complete(language):
    """Examples that stand alone; the others show one line of a program that needs a framework."""
    return [block for block in blocks(language) if block.startswith("import aip")]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_examples_of_the_guide_run_outside_of_a_job(tmp_path, language):
    sdk_files.write(tmp_path)

    for block in complete(language):
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, env={"PATH": "/usr/bin"}, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "was not" not in done.stdout, block


def test_guide_has_the_same_examples_in_both_languages_and_names_every_function():
    def code(block):
        return re.sub(r"\s*#.*", "", block)

    assert [code(block) for block in blocks("en")] == [code(block) for block in blocks("zh")]
    text = (SITE / "en" / "how-to" / "sdk.md").read_text()
    public = re.findall(r" as (\w+)$", sdk_files.modules()["aip/__init__.py"].decode(), re.MULTILINE)
    names = set(public) - {"log_line", "in_job", "keep_to_share"}
    assert len(names) > 12
    assert [name for name in sorted(names) if f"aip.{name}" not in text] == []
