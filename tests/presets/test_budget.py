"""The budget's arithmetic and what is told of it, by a clock of the test's own."""

from __future__ import annotations

import itertools
import json
import math
import threading

import pytest

from training.presets import cores, phases, run
from training.presets.budget import Budget, counted_down, learning_rate


def trained(budget: Budget, step_s: float, *, start_s: float, end_s: float) -> tuple[float, list[tuple[float, float]]]:
    """Learn until the budget says enough; when the model is there, and (moment, promised seconds left)."""
    budget.began_s = used = start_s
    told, step = [], 0
    while budget.progress(step, used) < 1:
        used, step = used + step_s, step + 1
        left = budget.left_s(step, used)
        told += [(used, left)] if left is not None else []
    return used + end_s, told


@pytest.mark.parametrize("minutes", [2, 6, 10])
@pytest.mark.parametrize(("step_s", "start_s", "end_s"), [(0.3, 5, 9), (1.4, 14, 31)])  # free cores, busy ones
def test_budget_covers_start_scoring_and_export_and_its_promise_holds(minutes, step_s, start_s, end_s):
    budget = Budget(60 * minutes, math.inf, score_s=end_s * 0.4, save_s=end_s * 0.1, export_s=end_s * 0.5)

    whole, told = trained(budget, step_s, start_s=start_s, end_s=end_s)

    assert 0.9 <= whole / (60 * minutes) <= 1.02
    late = [(at, left) for at, left in told if at >= whole / 10]
    assert all(abs(left - (whole - at)) <= 0.2 * (whole - at) for at, left in late)
    assert all(then < before for (_, before), (_, then) in itertools.pairwise(told))


def test_budget_of_steps_promises_by_the_steps_so_far():
    whole, told = trained(Budget(360, 200, score_s=3, export_s=4), 0.4, start_s=5, end_s=7)

    assert whole == pytest.approx(5 + 200 * 0.4 + 7)
    assert all(abs(left - (whole - at)) <= 0.2 * (whole - at) for at, left in told if at >= whole / 10)


def test_budget_lets_learn_for_a_quarter_where_start_and_end_would_take_all():
    whole, _ = trained(Budget(60, math.inf, export_s=100), 0.5, start_s=50, end_s=0)

    assert whole == pytest.approx(65, abs=1)


def test_counted_down_always_falls_and_never_reaches_nothing():
    left = [counted_down(10, second) for second in range(60)]

    assert left[0] == 10
    assert left[5] == 5
    assert all(after < before for before, after in itertools.pairwise(left))
    assert left[-1] > 0


@pytest.mark.parametrize("anneal", ["cosine", "linear"])
def test_learning_rate_rises_then_falls_to_nothing_exactly_at_the_end(anneal):
    rates = [learning_rate(part / 100, warmup=0.1, anneal=anneal) for part in range(101)]

    assert rates[10] == 1
    assert rates[5] == pytest.approx(0.5)
    assert rates[100] == pytest.approx(0)
    assert all(after <= before for before, after in itertools.pairwise(rates[10:]))


def test_phases_are_told_while_a_block_keeps_the_program_busy(tmp_path, monkeypatch):
    monkeypatch.setattr(phases, "EVERY_S", 0.01)
    job = run.Run.from_environment({"AIP_METRICS_FILE": str(tmp_path / "metrics.jsonl")})
    told = phases.Phases(job, used_s=lambda: 90.0)
    seen = threading.Event()
    kept = job.report
    lines: list[dict] = []

    def report(step, figures):
        kept(step, figures)
        lines.append(dict(figures))
        if len(lines) >= 4:
            seen.set()

    monkeypatch.setattr(job, "report", report)

    with told.during(phases.EXPORTING, step=7, left_s=10.0):
        assert seen.wait(10)

    written = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert {line["phase"] for line in written} == {"exporting"}
    assert {line["step"] for line in written} == {7}
    assert written[0]["progress"] == 0.9
    left = [line["eta_s"] for line in written]
    assert left == sorted(left, reverse=True)
    assert told.phase == ""


def test_phases_never_let_progress_fall(tmp_path):
    job = run.Run.from_environment({"AIP_METRICS_FILE": str(tmp_path / "metrics.jsonl")})
    told = phases.Phases(job, used_s=lambda: 60.0)

    told.report(1, {}, 40.0)
    told.report(2, {}, 60.0)

    written = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["progress"] for line in written] == [0.6, 0.6]


def test_waiting_counts_the_threads_that_wait_for_a_core(tmp_path, monkeypatch):
    monkeypatch.setattr(cores, "TASKS", tmp_path)

    def kernel_says(**threads):
        for name, text in threads.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "schedstat").write_text(text)

    waiting = cores.Waiting()
    assert waiting.slowdown() == 1.0  # nobody tells
    kernel_says(t1="2000000000 1000000000 7", t2="1000000000 500000000 3", t3="wrong")
    assert waiting.slowdown() == 1.5
    kernel_says(t1="3000000000 4000000000 9")
    assert waiting.slowdown() == 4.0  # since the last look


def test_job_age_counts_from_when_the_platform_gave_the_cores(monkeypatch):
    monkeypatch.setattr(run.time, "time", lambda: 1_000_000.0)
    monkeypatch.setattr(run, "process_age_s", lambda: 2.0)

    assert run.job_age_s({"AIP_STARTED_AT": "999993.5"}) == 6.5
    assert run.job_age_s({}) == 2.0
    assert run.job_age_s({"AIP_STARTED_AT": "now"}) == 2.0
    assert run.job_age_s({"AIP_STARTED_AT": "999000"}) == 2.0  # that clock is another one
