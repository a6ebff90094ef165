"""Fault 38: where clocks are put forward or back, windows go by the wall's clock, all else by elapsed time."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from django.utils import timezone

from tests.factories import work
from workers.core.models import NodeSample
from workers.planning import planner_input
from workers.planning.planner.plan import plan
from workers.resources.clusters import resource_groups
from workers.resources.clusters.resource_groups import Hours
from workers.resources.monitoring import day_chart, usage
from workers.scheduling import overdue

pytestmark = pytest.mark.django_db

EVERY_DAY = frozenset(range(7))
CHANGES = [  # zone, the moment at which its clocks jump; forward and back, by an hour and by half of one, or never
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Asia/Shanghai", datetime(2026, 3, 28, 18, tzinfo=UTC)),
    ("Asia/Kolkata", datetime(2026, 10, 24, 21, tzinfo=UTC)),
]
AT_CHANGES = pytest.mark.parametrize(("zone", "change"), CHANGES, ids=lambda value: str(value)[:20])


@pytest.fixture
def node(db):
    return work.node("node1", gpus=1)


@AT_CHANGES
def test_f38_resource_group_window_follows_the_wall_clock_all_night(zone, change, node):
    begins, ends = time(1, 15), time(3, 45)
    group = resource_groups.save(
        None, name="night", nodes=[node], kinds=["training"], hours=[Hours(EVERY_DAY, begins, ends)]
    )
    moments = [change + timedelta(minutes=5 * n) for n in range(-48, 48)]

    with override_settings(TIME_ZONE=zone):
        openings = {moment: resource_groups.opening(group, moment) for moment in moments}

    wall = {moment: moment.astimezone(ZoneInfo(zone)).time() for moment in moments}
    assert {moment: one.is_open for moment, one in openings.items()} == {
        moment: begins <= at < ends for moment, at in wall.items()
    }
    closing = {one.until for one in openings.values() if one.until}
    assert {moment.astimezone(ZoneInfo(zone)).time().replace(fold=0) for moment in closing} == {ends}
    assert all(moment in openings and not openings[moment].is_open for moment in closing)


@AT_CHANGES
def test_f38_planner_starts_waiting_jobs_when_the_window_ends_by_the_wall(zone, change, node, alice, cluster):
    local = ZoneInfo(zone)
    end = datetime.combine(change.astimezone(local).date(), time(6), local).astimezone(UTC)
    resource_groups.save(
        None, name="night", nodes=[node], kinds=["training"], hours=[Hours(EVERY_DAY, time(22), time(6))]
    )
    work.job(alice, cluster, gpus_per_node=1, kind="command")

    def starts(moment: datetime) -> int:
        return len(plan(planner_input.read(moment, ({}, {}), 3600.0), moment.timestamp()).assignments)

    with override_settings(TIME_ZONE=zone):
        before, after = starts(end - timedelta(minutes=1)), starts(end + timedelta(minutes=1))

    assert (before, after) == (0, 1)


@AT_CHANGES
def test_f38_time_limit_is_elapsed_time(zone, change, alice, cluster):
    job = work.job(alice, cluster, state="running", max_runtime=timedelta(hours=2))
    begun = change - timedelta(minutes=30)
    job.attempts.update(started_at=begun)
    over = begun + timedelta(hours=2) + overdue.SUPERVISORS_TURN

    with override_settings(TIME_ZONE=zone), timezone.override(zone):
        early, late = overdue.over_time(over - timedelta(minutes=3)), overdue.over_time(over + timedelta(seconds=1))

    assert (early, late) == ([], [job.pk])


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 3, 28), 24), (date(2026, 3, 29), 23), (date(2026, 10, 25), 25)])
def test_f38_usage_report_gives_a_day_as_many_hours_as_it_had(day, hours, node, olga, cluster):
    job = work.job(olga, cluster, state="running", gpus_per_node=1)
    work.hold(job, node.devices.get(kind="gpu"))
    job.attempts.update(assigned_at=datetime(2026, 1, 1, tzinfo=UTC))

    with timezone.override("Europe/Berlin"):
        begin, end = usage.span(day.isoformat(), day.isoformat())
        found = usage.report(olga, begin=begin, end=end)

    assert [row.gpu_hours for row in found.rows] == [hours]


@pytest.mark.parametrize(("day", "missing"), [(date(2026, 3, 29), [2]), (date(2026, 10, 25), [])])
def test_f38_day_chart_shows_each_sample_at_its_hour_on_the_wall(day, missing, node, olga):
    local = ZoneInfo("Europe/Berlin")
    begin = datetime.combine(day, time(), local).astimezone(UTC)
    end = datetime.combine(day + timedelta(days=1), time(), local).astimezone(UTC)
    moment = begin
    while moment < end:
        full = moment.astimezone(local).hour >= 12
        NodeSample.objects.create(node=node, at=moment, step=600, gpus=1, gpus_held=1.0 if full else 0.0)
        moment += timedelta(minutes=10)

    with timezone.override("Europe/Berlin"):
        rows = day_chart.chart(olga, day, day - timedelta(days=7)).rows

    shown = {hour: now for hour, _then, now in rows}
    assert [hour for hour, now in shown.items() if now is None] == missing
    assert [hour for hour, now in shown.items() if now == 100] == list(range(12, 24))
