"""Whoever switches a rule off says why, beside it."""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from collections.abc import Iterator

import pytest

from tests.architecture.code import APPS, ROOT, modules, text

WAIVED = re.compile(r"#\s*(?:ruff: )?(noqa|type: ignore|mypy: |pyright: |pylint: )")
NOQA = re.compile(r"(?:ruff: )?noqa: [A-Z]+[0-9]+(?:, [A-Z]+[0-9]+)*(?: -|:| ) *\S+.*")
IGNORE = re.compile(r"type: ignore\[[a-z-]+(?:, [a-z-]+)*\]  # \S+.*")


def unreasoned(source: str) -> Iterator[tuple[int, str]]:
    """Lines with a waiver that names no rule, or gives no reason behind it."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and WAIVED.match(token.string):
            said = token.string.removeprefix("#").strip()
            if not (NOQA.fullmatch(said) or IGNORE.fullmatch(said)):
                yield token.start[0], token.string


def test_waivers_in_code_name_their_rule_and_their_reason():
    files = [*modules(*APPS, "aiplatform", "tests"), ROOT / "manage.py"]

    found = [
        f"{path.relative_to(ROOT)}:{line}: {waiver}"
        for path in files
        if WAIVED.search(text(path))
        for line, waiver in unreasoned(text(path))
    ]

    assert len(files) > 500
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa",
        "x = 1  # noqa: S105",
        "x = 1  # type: ignore",
        "x = 1  # type: ignore  # why",
        "x = 1  # type: ignore[misc]",
        "x = 1  # type: ignore[misc]  #",
        "# mypy: ignore-errors",
        "# ruff: noqa: E402",
    ],
)
def test_unreasoned_names_a_waiver_without_rule_or_reason(line):
    assert [number for number, _ in unreasoned(line + "\n")] == [1]


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa: S105 - a name",
        "x = 1  # type: ignore[misc, arg-type]  # why",
        'x = "# noqa"',
        "# ruff: noqa: E402 - why",
    ],
)
def test_unreasoned_lets_a_waiver_with_rule_and_reason_pass(line):
    assert list(unreasoned(line + "\n")) == []


def section(name: str) -> str:
    """The lines of one table of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text()
    return text.partition(f"[{name}]\n")[2].partition("\n[")[0]


def test_linter_rules_switched_off_have_a_reason_each():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    lines = (
        section("tool.ruff.lint").partition("ignore = [")[2] + section("tool.ruff.lint.per-file-ignores")
    ).splitlines()
    named = [line for line in lines if re.search(r'"[A-Z]+[0-9]*"', line)]

    assert [line for line in named if "  # " not in line] == []
    written = re.findall(r'"([A-Z]+[0-9]*)"', "\n".join(named))
    assert sorted(written) == sorted(
        [*config["ignore"], *(c for codes in config["per-file-ignores"].values() for c in codes)]
    )


def test_type_checker_relaxations_have_a_reason_each():
    relaxed = [
        line for line in section("tool.mypy").splitlines() if re.match(r"\w+ = (false|\"silent\"|\[\"/)|ignore", line)
    ]

    assert len(relaxed) >= 5
    assert [line for line in relaxed if "  # " not in line] == []


def test_template_rules_switched_off_have_a_reason_each():
    codes = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["djlint"]["ignore"].split(",")

    assert [code for code in codes if f"# {code}: " not in section("tool.djlint")] == []
