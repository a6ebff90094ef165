"""The simulator: figures that can be worked out by hand, nothing lost and nothing counted twice."""

import json
from collections import Counter
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from tests.cases import case_table
from workers.planning.planner.order import HALF_LIFE_S, decayed_hours
from workers.planning.planner.plan import Assignment, Plan, Preemption, plan
from workers.planning.planner.snapshot import FULL_CARD, ResourceGroup, Snapshot, Window
from workers.planning.simulator import generators, workloads
from workers.planning.simulator.figures import figures, jain, quantile
from workers.planning.simulator.policies import POLICIES, skip_ahead
from workers.planning.simulator.simulate import MONDAY, Outcome, WrongPlan, simulate
from workers.planning.simulator.workloads import Setup, Work, Workload, WrongWorkload

HOUR, DAY = 3600.0, 86_400.0
ONE_CARD = Setup(nodes=1, cards=1, restart_overhead_s=30, lost_s=300, grace_s=60)


def work(arrival_h: float, runtime_h: float, **more) -> Work:
    return Work(arrival_h * HOUR, more.pop("user", "ada"), runtime_h * HOUR, runtime_h * HOUR, **more)


def played(setup: Setup, *works: Work, days: float = 1.0, decide=plan) -> Outcome:
    return simulate(Workload("by hand", works, setup, days), decide)


def test_simulator_figures_of_two_jobs_on_one_card_are_known():
    outcome = played(ONE_CARD, work(0, 6), work(0, 6, user="bob"))

    row = figures(outcome)

    assert [(s.job, s.began, s.ended) for s in outcome.spans] == [(0, 0.0, 6 * HOUR), (1, 6 * HOUR, 12 * HOUR)]
    assert (row.utilisation, row.in_use_hours_per_card_day, row.card_hours_per_day) == (0.5, 12.0, 12.0)
    assert (row.jobs, row.jobs_per_week, row.wait_max_hours["1"]) == (2, 14.0, 6.0)
    assert row.fairness == pytest.approx((1 + 0.5) ** 2 / (2 * (1 + 0.25)))


def test_simulator_start_overhead_holds_the_card_and_is_no_use():
    setup = Setup(nodes=1, cards=1, start_overhead_s=3600, use={"training": 0.5})

    row = figures(played(setup, work(0, 5)))

    assert (row.card_hours_per_day, row.in_use_hours_per_card_day) == (6.0, 5.0)
    assert row.utilisation == pytest.approx(5 * 0.5 / 24)


def urgent_comes(snapshot: Snapshot, now: float) -> Plan:
    """Preempts job 0 one hour after the beginning and lets urgent work in, else first come first served."""
    shown = {run.job: run for run in snapshot.running}
    if 0 in shown and any(w.job == 1 for w in snapshot.waiting) and not shown[0].preempting:
        return Plan(preemptions=(Preemption(0, 1, "urgent"),))
    return skip_ahead(snapshot, now)


def test_simulator_preempted_job_loses_what_the_setup_says():
    outcome = played(ONE_CARD, work(0, 4, preemptible=True), work(1, 1, priority=100), decide=urgent_comes)

    first, urgent, again = outcome.spans

    assert outcome.preemptions == ((HOUR, 0),)
    assert (first.worked_to, first.ended, first.preempted) == (HOUR + 60 - 300, HOUR + 60, True)
    assert (urgent.job, urgent.began) == (1, HOUR + 60)
    assert (again.began, again.worked_from) == (2 * HOUR + 60, 2 * HOUR + 90)
    assert again.ended - again.worked_from == 4 * HOUR - (HOUR + 60 - 300)
    row = figures(outcome)
    assert row.urgent_wait_p95_hours == pytest.approx(60 / HOUR)
    assert (row.preemptions_per_week, row.most_preemptions_of_a_job) == (7.0, 1)
    assert row.lost_card_hours_per_week == pytest.approx(7 * 300 / HOUR)
    assert (row.wait_max_hours["1"], row.first_wait_p95_hours["1"]) == (1.0, pytest.approx(60 / HOUR))


def test_simulator_preempted_job_that_ends_within_the_grace_is_done():
    setup = Setup(nodes=1, cards=1, grace_s=2 * HOUR)

    outcome = played(setup, work(0, 2), work(1, 1), decide=urgent_comes)

    assert [(s.job, s.ended, s.preempted) for s in outcome.spans] == [(0, 2 * HOUR, False), (1, 3 * HOUR, False)]


def test_simulator_tells_the_planner_limits_and_never_true_run_times():
    seen = []

    def look(snapshot: Snapshot, now: float) -> Plan:
        seen.append(snapshot)
        return plan(snapshot, now)

    short = Work(0.0, "ada", HOUR, 3 * HOUR)
    played(ONE_CARD, short, Work(60.0, "bob", HOUR, None), decide=look)

    assert seen[0].waiting[0].runtime == 3 * HOUR
    (run,), (waits,) = seen[1].running, seen[1].waiting
    assert (run.ends_at, run.runtime, waits.runtime) == (MONDAY + 3 * HOUR, 3 * HOUR, None)
    assert all(part.runtime != HOUR for s in seen for part in (*s.running, *s.waiting))


def test_simulator_lets_use_fade_as_on_a_live_platform():
    seen = {}

    def look(snapshot: Snapshot, now: float) -> Plan:
        seen[now - MONDAY] = snapshot.usage[1]
        return plan(snapshot, now)

    played(ONE_CARD, work(0, 10), work(20, 5), work(22, 1, user="bob"), work(200, 1), days=9, decide=look)

    spans = [(0.0, 10 * HOUR, 1.0), (20 * HOUR, 25 * HOUR, 1.0)]
    assert seen[22 * HOUR] == pytest.approx(decayed_hours([spans[0], (20 * HOUR, 22 * HOUR, 1.0)], 22 * HOUR))
    assert seen[200 * HOUR] == pytest.approx(decayed_hours(spans, 200 * HOUR))
    assert seen[200 * HOUR] < 15 * 2 ** (-170 * HOUR / HALF_LIFE_S)


@pytest.mark.parametrize("name", ["ours", "no-preemption", "skip-ahead", "halves"])
def test_simulator_ends_every_job_once_and_never_overfills_a_card(name):
    for workload in (
        generators.gangs(Setup(), days=4, seed=3, load=1.0),
        generators.aistation(Setup(start_overhead_s=10), days=1.5, seed=3),
    ):
        outcome = simulate(workload, POLICIES[name])

        done = Counter(span.job for span in outcome.spans if not span.preempted)
        assert done == dict.fromkeys(range(len(workload.works)), 1)
        assert not outcome.never_started
        for job, total in kept(outcome).items():
            assert total == pytest.approx(workload.works[job].runtime_s)
        changes = sorted(
            change
            for span in outcome.spans
            for device, shares in span.held
            for change in ((span.ended, -shares, device), (span.began, shares, device))
        )
        used: Counter[int] = Counter()
        for _, shares, device in changes:
            used[device] += shares
            assert 0 <= used[device] <= FULL_CARD
        assert not any(used.values())


def kept(outcome: Outcome) -> Counter[int]:
    """Seconds of work by job that were not lost."""
    total: Counter[int] = Counter()
    for span in outcome.spans:
        total[span.job] += span.worked_to - span.worked_from
    return total


def test_simulator_refuses_a_plan_that_no_platform_could_carry_out():
    twice = lambda snapshot, now: Plan(tuple(Assignment(w.job, ((0, ((0, 8),)),)) for w in snapshot.waiting))  # noqa: E731 - a name for one line
    ghost = lambda snapshot, now: Plan(preemptions=(Preemption(7, 0, "urgent"),))  # noqa: E731 - a name for one line

    with pytest.raises(WrongPlan, match="given out twice"):
        played(ONE_CARD, work(0, 1), work(0, 1), decide=twice)
    with pytest.raises(WrongPlan, match="does not run"):
        played(ONE_CARD, work(0, 1), decide=ghost)


def test_simulator_says_what_never_finds_a_place():
    setup = Setup(nodes=1, cards=2, clusters=(workloads.Limits("default", guaranteed=1),))

    outcome = played(setup, work(0, 1), work(0, 1, devices=2))

    assert outcome.never_started == (1,)
    assert figures(outcome).never_started == 1


@pytest.mark.long
def test_simulator_reproduces_the_published_figures_of_the_case():
    with_free_starts = generators.aistation(Setup(), days=14, seed=1)
    with_ten_seconds = generators.aistation(Setup(start_overhead_s=10), days=14, seed=1)

    rows = [figures(simulate(workload, POLICIES["halves"])) for workload in (with_free_starts, with_ten_seconds)]

    assert [row.jobs_per_week for row in rows] == [368, 288]


def test_simulator_backfills_a_gap_unless_a_reservation_keeps_it():
    setup = Setup(nodes=1, cards=2)
    works = (work(0, 2), work(0.1, 1, devices=2), work(0.2, 9), work(0.3, 1))

    ours, skipping = (played(setup, *works, decide=POLICIES[name]) for name in ("ours", "skip-ahead"))

    began = [{s.job: s.began / HOUR for s in outcome.spans} for outcome in (ours, skipping)]
    assert began[0] == {0: 0.0, 3: pytest.approx(0.3), 1: 2.0, 2: 3.0}
    assert began[1][1] == pytest.approx(9.2)


def test_simulator_switches_change_what_they_say():
    setup = Setup(nodes=1, cards=2)
    works = (work(0, 2, preemptible=True), work(0.1, 1, devices=2), work(0.3, 1), work(1, 1, devices=2, priority=100))

    began: dict[str, dict[int, float]] = {}
    for name in ("ours", "no-backfill", "no-preemption"):
        outcome = played(setup, *works, decide=POLICIES[name])
        began[name] = {}
        for span in outcome.spans:
            began[name].setdefault(span.job, span.began / HOUR)

    grace = 60 / 3600
    assert [began["ours"][2], began["ours"][3]] == pytest.approx([0.3, 1.3 + grace])  # job 0 leaves for the urgent one
    assert [began["no-backfill"][3], began["no-backfill"][2]] == pytest.approx(
        [1.0 + grace, began["no-backfill"][1] + 1.0]
    )
    assert [began["no-preemption"][2], began["no-preemption"][3]] == pytest.approx([0.3, 2.0])


def test_workload_generators_make_what_their_docstrings_say():
    gangs = generators.gangs(Setup(), days=364, seed=1, load=0.8)
    sizes = Counter(w.cards for w in gangs.works)
    asked = sum(w.cards * w.runtime_s for w in gangs.works) / (32 * 364 * DAY)
    hours = sorted(w.runtime_s / HOUR for w in gangs.works)

    assert asked == pytest.approx(0.8, abs=0.04)
    for size, part in generators.SIZES:
        assert sizes[size] / len(gangs.works) == pytest.approx(part / 100, abs=0.01)
    assert quantile(hours, 0.5) == pytest.approx(2.0, abs=0.1)
    assert hours[-1] == 48.0
    assert sum(w.priority >= 100 for w in gangs.works) / len(gangs.works) == pytest.approx(0.1, abs=0.01)
    assert all(1.0 <= w.max_runtime_s / w.runtime_s <= 3.0 for w in gangs.works)
    week = generators.aistation(Setup(), days=7, seed=1)
    environments = [w for w in week.works if w.kind == "environment"]
    assert len(environments) == 250
    assert {(w.arrival_s % DAY, w.runtime_s, w.cards) for w in environments} == {(9 * HOUR, 12 * HOUR, 0.125)}


def test_workload_file_brings_back_the_workload_it_was_written_from():
    for workload in (generators.gangs(Setup(), days=3, seed=5), generators.aistation(Setup(lost_s=1), days=2, seed=5)):
        assert workloads.read(workload.name, workloads.lines(workload)) == workload


@case_table(
    ("line", "said"),
    [
        ("{", "Line 3: this is no JSON"),
        ("[1]", "Line 3: a line is one JSON object"),
        ('{"arrival_s": 0, "user": "ada"}', "Line 3: runtime_s is missing."),
        ('{"arrival_s": 0, "user": 7, "runtime_s": 1}', "Line 3: user is a text, not 7."),
        ('{"arrival_s": true, "user": "ada", "runtime_s": 1}', "Line 3: arrival_s is a number, not true."),
        ('{"arrival_s": NaN, "user": "ada", "runtime_s": 1}', "Line 3: this is no JSON"),
        ('{"arrival_s": -1, "user": "ada", "runtime_s": 1}', "not below 0"),
        ('{"arrival_s": 0, "user": "ada", "runtime_s": 0}', "run times are above 0"),
        ('{"arrival_s": 0, "user": "ada", "runtime_s": 1, "gpus": 1}', "Line 3: there is no field gpus; there are"),
        ('{"arrival_s": 0, "user": "ada", "runtime_s": 1, "devices": 9}', "devices go from 1 to 8"),
        ('{"arrival_s": 0, "user": "ada", "runtime_s": 1, "nodes": 5}', "nodes go from 1 to 4"),
        ('{"arrival_s": 0, "user": "ada", "runtime_s": 1, "shares": 0}', "shares go from 1 to 8"),
        ('{"arrival_s": 0, "user": "ada", "runtime_s": 1, "cluster": "x"}', "there is no cluster x"),
        ('{"setup": {}}', "Line 3: the setup belongs on the first line."),
    ],
)
def test_workload_file_names_a_wrong_line(line, said):
    with pytest.raises(WrongWorkload) as caught:
        workloads.read("file", ['{"setup": {}}', "", line])

    assert said in str(caught.value)


def test_workload_file_names_a_wrong_setup():
    for header, said in (
        ({"nodes": 0}, "nodes and cards are 1 or more"),
        ({"clusters": []}, "clusters is a list"),
        ({"use": {"training": 2}}, "from 0 to 1"),
        ({"grace_s": -1}, "grace_s is not below 0"),
        ({"groups": [{"name": "night"}]}, "group 1 lacks nodes"),
        ({"groups": [{"nodes": [5], "kinds": []}]}, "nodes from 1 to 4"),
        ({"groups": [{"nodes": [1], "kinds": [], "windows": [{"begins": "25:00", "ends": "09:00"}]}]}, "25:00"),
    ):
        with pytest.raises(WrongWorkload, match=r"^Line 1: ") as caught:
            workloads.read("file", [json.dumps({"setup": header})])
        assert said in str(caught.value)


def test_simulator_resource_groups_of_a_setup_reach_the_planner():
    raw = {"name": "day", "nodes": [1, 2], "kinds": ["environment"]}
    setup = workloads.setup_of(
        {"groups": [raw | {"windows": [{"begins": "09:00", "ends": "21:00", "weekdays": [0, 4]}]}]}
    )

    (group,) = setup.groups

    assert workloads.read("", workloads.lines(Workload("", (work(0, 1),), setup))).setup == setup
    assert group.windows == (Window(540, 1260, frozenset({0, 4})),)
    assert (group.nodes, group.kinds) == (frozenset({0, 1}), frozenset({"environment"}))


def test_simulator_work_waits_for_its_window_long_after_the_last_arrival():
    saturday = Window(540, 600, frozenset({5}))
    shut = ResourceGroup(
        1, "for others", frozenset({0}), frozenset({"nothing"}), (Window(600, 540, frozenset(range(7))),)
    )
    setup = Setup(nodes=1, cards=1, groups=(shut,))

    outcome = played(setup, work(11, 1))
    never = played(
        replace(setup, groups=(replace(shut, windows=(saturday, Window(600, 540), Window(540, 600))),)), work(11, 1)
    )

    assert [span.began for span in outcome.spans] == [DAY + 9 * HOUR]
    assert never.never_started == (0,)


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("simulate", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_simulate_command_repeats_itself_and_its_export(tmp_path):
    file, picture = tmp_path / "week.jsonl", tmp_path / "week.png"
    asked = ("gangs", "--days", "3", "--seed", "2", "--policy", "ours", "--policy", "skip-ahead", "--json")

    first = command(*asked, "--export", str(file), "--plot", str(picture))
    again = command(*asked)
    of_file = command(str(file), *asked[5:])

    assert first == again
    ours, skipping = map(json.loads, first.splitlines())
    assert (ours["policy"], skipping["policy"]) == ("ours", "skip-ahead")
    assert {
        "jobs_per_week", "in_use_hours_per_card_day", "utilisation", "wait_p95_hours", "urgent_wait_p95_hours",
        "preemptions_per_week",
    } <= set(ours)  # fmt: skip
    assert [json.loads(line) | {"workload": ""} for line in of_file.splitlines()] == [
        row | {"workload": ""} for row in (ours, skipping)
    ]
    assert command(*asked[:2], "2", "--seed", "3", "--json") != command(*asked[:2], "2", "--seed", "4", "--json")
    with Image.open(picture) as image:
        assert image.width == 1400
        assert len(image.getcolors(1 << 20)) > 8


def test_simulate_command_prints_a_table_and_says_what_is_wrong(tmp_path):
    table = command("aistation", "--days", "2", "--start-overhead", "10", "--policy", "halves")
    file = tmp_path / "wrong.jsonl"
    file.write_text("{}")

    assert "utilisation, %" in table
    assert "start 10 s" in table
    with pytest.raises(CommandError, match="Line 1: arrival_s is missing"):
        command(str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        command(str(tmp_path / "nothing"))
    with pytest.raises(CommandError, match="leaves no time to count"):
        command("gangs", "--days", "2", "--warm-up", "2")
    with pytest.raises(CommandError, match="is not writable"):
        command("gangs", "--days", "1", "--export", str(tmp_path / "no" / "where"))


def test_jain_is_one_for_equals_and_a_fraction_for_one_who_has_all():
    assert jain([3.0, 3.0, 3.0]) == 1.0
    assert jain([1.0, 0.0, 0.0, 0.0]) == 0.25
