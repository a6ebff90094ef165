"""The recipes of `python -m tests.bench.presets`: each can be made, and its preset takes what it says."""

from __future__ import annotations

import subprocess

import pytest

from tests.bench import __main__ as benches
from tests.bench import overhead
from tests.bench import presets as bench
from tests.cases import case_table
from training.presets.catalog import PRESETS
from training.runs import parameters


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


@case_table("name", sorted(overhead.CASES))
def test_case_of_the_overhead_is_taken_by_its_preset(name):
    case = overhead.CASES[name]

    taken = parameters.read(PRESETS[name], {**overhead.COMMON, **case.params})

    assert taken["batch_size"] == overhead.COMMON["batch_size"]


def test_ratio_of_a_round_compares_steps_per_second_of_the_job_with_the_bare_loop():
    found = overhead.Measured(jobs=[overhead.Rate(90, 10.0, 20.0)], bare=[overhead.Rate(100, 10.0, 16.0)])

    assert found.ratios(lambda rate: rate.wall_s) == pytest.approx([0.9])
    assert found.ratios(lambda rate: rate.cpu_s) == pytest.approx([0.72])


def test_bench_table_passes_options_on_to_a_single_bench(monkeypatch, capsys):
    printed = "detect, steps/s of the bare loop: 0.991  per wall second\n"
    started = []

    def run(command, **_options):
        started.append(command[2:])
        return subprocess.CompletedProcess(command, 3, printed)

    monkeypatch.setattr(benches.subprocess, "run", run)

    code = benches.main(["presets", "--overhead", "detect", "--rounds", "1"])

    assert started == [["tests.bench.presets", "--overhead", "detect", "--rounds", "1"]]
    assert code == 1  # a bench that failed is no success of the table
    assert "detect: steps/s as a job / in a bare loop  0.991" in capsys.readouterr().out


def test_bench_table_runs_a_bench_with_its_own_arguments_and_refuses_unknown_names(monkeypatch, capsys):
    started = []

    def run(command, **_options):
        started.append(command[2:])
        return subprocess.CompletedProcess(command, 0, "")

    monkeypatch.setattr(benches.subprocess, "run", run)

    assert benches.main(["edge", "datasets"]) == 0
    assert benches.main(["edge", "datasets", "--quick"]) == 2
    assert benches.main(["nothing"]) == 2

    assert started == [["tests.bench.edge", "--kills", "40"], ["tests.bench.datasets", "--upload", "256"]]
    assert "There is no bench --quick" in capsys.readouterr().err
