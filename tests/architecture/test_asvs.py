"""The page on ASVS names tests that exist."""

import re

from tests.architecture.code import ROOT


def test_asvs_page_names_only_tests_that_exist():
    page = (ROOT / "aiplatform/docs/asvs.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    there = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        there |= set(re.findall(r"def (test_\w+)\(", path.read_text()))

    assert sorted(named - there) == []
