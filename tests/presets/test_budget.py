"""The budget's arithmetic and what is told of it, by a clock of the test's own."""

from __future__ import annotations

import itertools
import json
import math
import threading
from types import SimpleNamespace

import pytest
import torch

from training.presets import cores, phases, points, run
from training.presets.budget import Budget, Pace, counted_down, learning_rate
from training.presets.ranks import Ranks


def test_budget_counts_learning_and_nothing_else():
    budget = Budget(120, math.inf)

    assert budget.progress(0, 0) == 0
    assert budget.progress(7, 60) == 0.5
    assert budget.left_s(7, 90, None) == 30
    assert budget.left_s(7, 130, None) == 0


def test_budget_of_steps_takes_the_pace_of_late_steps():
    pace = Pace()
    assert Budget(0, 200).left_s(0, 0, pace.step_s) is None
    for _ in range(100):
        pace.add(1, 0.4)
    assert Budget(0, 200).left_s(100, 40, pace.step_s) == pytest.approx(40)
    for _ in range(200):
        pace.add(1, 4.0)  # the machine became busy

    assert Budget(0, 400).left_s(300, 840, pace.step_s) == pytest.approx(100 * 4.0, rel=0.1)


def test_pace_counts_the_first_step_only_until_others_follow():
    pace = Pace()
    pace.add(1, 40.0)  # compiles the network
    assert pace.step_s == 40.0
    pace.add(5, 2.0)

    assert pace.step_s == pytest.approx(0.4)


def test_pace_of_a_restored_training_begins_with_that_of_the_earlier_attempt():
    pace = Pace(0.4)
    pace.add(1, 5.0)
    assert pace.step_s == pytest.approx(0.4)
    for _ in range(400):
        pace.add(1, 1.2)  # another machine

    assert pace.step_s == pytest.approx(1.2, rel=0.25)


def test_budget_of_time_and_steps_ends_at_whichever_comes_first():
    assert Budget(100, 1000).left_s(10, 20, 0.5) == 80
    assert Budget(100, 50).left_s(10, 20, 0.5) == 20
    assert Budget(0, math.inf).left_s(10, 20, 0.5) is None


def test_counted_down_falls_to_the_thought_end_and_never_reaches_nothing():
    left = [counted_down(10, second) for second in range(60)]

    assert left[0] == 10
    assert left[5] == 5
    assert all(after < before for before, after in itertools.pairwise(left[:9]))
    assert min(left[1:]) >= 1.6
    assert left[50] == pytest.approx(10)  # a fifth of what it took so far


@pytest.mark.parametrize(
    ("progress", "spent_s", "left_s"), [(0.0, 0, 40), (0.25, 10, 30), (0.5, 60, 60), (0.97, 60, 0)]
)
def test_scoring_along_the_way_takes_the_points_that_are_due_or_what_it_took_so_far(progress, spent_s, left_s):
    assert points.left_s(progress, spent_s=spent_s, point_s=10) == pytest.approx(left_s)


@pytest.mark.parametrize("anneal", ["cosine", "linear"])
def test_learning_rate_rises_then_falls_to_nothing_exactly_at_the_end(anneal):
    rates = [learning_rate(part / 100, warmup=0.1, anneal=anneal) for part in range(101)]

    assert rates[10] == 1
    assert rates[5] == pytest.approx(0.5)
    assert rates[100] == pytest.approx(0)
    assert all(after <= before for before, after in itertools.pairwise(rates[10:]))


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(s=1000.0)
    monkeypatch.setattr(phases, "time", SimpleNamespace(monotonic=lambda: now.s))
    monkeypatch.setattr(phases, "STARTED", 1000.0)
    return now


@pytest.fixture
def job(tmp_path):
    return run.Run.from_environment({"AIP_METRICS_FILE": str(tmp_path / "metrics.jsonl")})


def written(job) -> list[dict]:
    return [json.loads(line) for line in job.metrics_file.read_text().splitlines()]


def test_phases_are_reported_while_a_block_keeps_the_program_busy(job, monkeypatch):
    monkeypatch.setattr(phases, "EVERY_S", 0.01)
    seen = threading.Event()
    kept, lines = job.report, []

    def report(step, figures):
        kept(step, figures)
        lines.append(dict(figures))
        if len(lines) >= 4:
            seen.set()

    monkeypatch.setattr(job, "report", report)
    reported = phases.Phases(job)

    with reported.during(phases.EXPORTING, step=7, thought_s=10.0, after={}):
        assert seen.wait(10)

    rows = written(job)
    assert {(row["phase"], row["step"]) for row in rows} == {("exporting", 7)}
    assert all("progress" not in row for row in rows)  # it has no counter
    left = [row["eta_s"] for row in rows]
    assert left == sorted(left, reverse=True)
    assert reported.phase == phases.PACKING


def test_counter_gives_no_share_before_the_first_unit_and_is_never_complete(clock):
    counter = phases.Counter(50)

    assert counter.shown() == {"phase_done": 0, "phase_total": 50}
    assert counter.left_s(20.0) == 20.0
    clock.s += 10
    counter.advance(25)
    assert counter.shown()["progress"] == 0.5
    assert counter.left_s(20.0) == pytest.approx(10)
    counter.advance(25)
    assert counter.shown()["progress"] == 0.99
    assert counter.left_s(20.0) > 0


def test_times_of_phases_leave_out_pauses_and_go_on_from_an_earlier_attempt(clock, job):
    known = phases.Phases(job, spent={"learning": 100.0})
    clock.s += 5
    known.enter(phases.LEARNING)
    clock.s += 60
    known.leave_out(20.0)
    with known.during(phases.SCORING, step=1, total=4, after={phases.LEARNING: 30.0}):
        phases.advance(2)
        clock.s += 8

    assert known.times() == {"packing": 5.0, "learning": 140.0, "scoring": 8.0}
    known.report(2, {"train/loss": 0.5}, {"progress": 0.8}, {"learning": 30.0, "scoring": 6.0})
    last = written(job)[-1]
    assert (last["phase"], last["progress"], last["eta_s"]) == ("learning", 0.8, 36.0)
    assert last["phase_times"]["scoring"] == {"spent_s": 8.0, "left_s": 6.0}
    assert last["phase_times"]["packing"] == {"spent_s": 5.0}


def test_time_for_which_the_platform_stopped_the_processes_is_no_training_time(clock, job, tmp_path):
    job.control_file = tmp_path / "control"
    known = phases.Phases(job)
    known.enter(phases.LEARNING)
    clock.s += 60
    with known.during(phases.SCORING, step=1, total=10, after={phases.LEARNING: 30.0}):
        phases.advance(5)
        clock.s += 8 + 3600
        (tmp_path / "paused").write_text("3600.000")  # as the supervisor writes before the processes continue
        left_s = phases._current.left_s(None)
    clock.s += 10

    assert known.times() == {"packing": 0.0, "learning": 70.0, "scoring": 8.0}
    assert left_s == pytest.approx(8)


@pytest.mark.parametrize("text", ["", "soon", "-5", "nan"])
def test_paused_seconds_that_are_no_number_count_as_none(job, tmp_path, text):
    job.control_file = tmp_path / "control"
    (tmp_path / "paused").write_text(text)

    assert job.paused_s() == 0.0


def test_caches_made_while_packing_count_their_rows(clock, job):
    with phases.packing(job, {"budget_minutes": 2.0}, Ranks(0, 1, torch.device("cpu"))):
        with phases.preparing(phases.PACKING, 3):
            phases.advance()
        with phases.preparing(phases.MASKS, 3):
            phases.advance(3)

    rows = written(job)
    assert [row["phase"] for row in rows] == ["packing", "packing", "masks"]
    assert [row.get("phase_total") for row in rows] == [None, 3, 3]
    assert all("progress" not in row for row in rows)


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
