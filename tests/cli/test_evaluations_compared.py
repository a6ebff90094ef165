"""`aip evaluate compare` against the real API."""

from __future__ import annotations

import json

import pytest

from tests.inference import judged

pytestmark = pytest.mark.django_db


def test_terminal_calls_no_small_gain_a_win(real_aip, alice, tmp_path, capfd):
    first = judged.evaluation(alice, tmp_path, task="classification")
    second = judged.judged(alice, first.model_version, first.version)
    judged.rewrite(first, [True] * 60 + [False] * 40)
    judged.rewrite(second, [True] * 62 + [False] * 38)

    assert real_aip(alice, "evaluate", "compare", first.pk, second.pk) == 0
    printed = capfd.readouterr()
    assert real_aip(alice, "evaluate", "compare", first.pk, second.pk, "--json", "--base", second.pk) == 0
    found = json.loads(capfd.readouterr().out)

    assert "+0.0200 ±" in printed.out
    assert "not significant" in printed.out
    assert "McNemar p 0.5" in printed.err
    assert found["figures"][0]["values"][0]["difference"]["value"] == pytest.approx(-0.02)
    assert real_aip(alice, "evaluate", "compare", first.pk, "net") == 2
