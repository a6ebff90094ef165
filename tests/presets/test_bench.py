"""The recipes of `python -m tests.bench.presets`: each can be made, and its preset takes what it says."""

from __future__ import annotations

from tests.bench import presets as bench
from tests.cases import case_table
from training.presets.catalog import PRESETS
from training.services import parameters


def test_bench_knows_how_to_make_the_data_of_each_recipe():
    assert set(bench.MAKERS) | set(bench.PUBLIC) == set(bench.RECIPES)
    assert not set(bench.MAKERS) & set(bench.PUBLIC)
    assert set(bench.REFERENCES) == set(bench.RECIPES)
    assert set(bench.MODULES) <= set(bench.RECIPES)


@case_table("which", sorted(bench.RECIPES))
def test_recipe_is_taken_by_its_preset(which):
    module = bench.MODULES.get(which, "detect")
    preset = next(one for one in PRESETS.values() if one.module.split(".")[-1] == module)
    timed = {} if module in bench.UNTIMED else {"budget_minutes": 10.0}

    taken = parameters.read(preset, {**timed, **bench.RECIPES[which]})

    assert taken.items() >= bench.RECIPES[which].items()
    assert ("budget_minutes" in {param.name for param in preset.parameters}) == bool(timed)
