"""The tables of a chaos run tell the recovery of parts from the delay of jobs."""

import random

from tests.chaos import recovery
from tests.chaos.recovery import Strike

CALM = (0.0, 100.0)


def table(strikes, started, healthy=lambda strike: 1.0):
    return {row.name: row for row in recovery.table(strikes, healthy, started, CALM, random.Random(1))}


def test_delay_of_jobs_is_what_a_kill_adds_to_calm_moments():
    """Without kills a job starts every second; after the kills at 200 and 300 the next one does after 3 and 5 s."""
    rows = table([Strike("web", "killed", 200.0), Strike("cpu", "killed", 300.0)], [*range(102), 203.0, 305.0])

    assert rows[recovery.ANY_PART].next_job == {"median": 4.0, "p95": 5.0, "max": 5.0}
    assert 0.3 < rows[recovery.NOTHING].next_job["median"] < 0.7
    assert 3.3 < recovery.added_delay(rows.values())["median"] < 3.7


def test_jobs_that_were_struck_are_no_parts():
    strikes = [Strike("agent", "killed", 1.0), Strike("work child", "killed", 1.0), Strike("forks", "killed", 2.0)]
    strikes += [Strike("job", "killed", 3.0, 1, 1), Strike("supervisor", "killed", 4.0, 2, 1)]
    rows = table(strikes, [5.0])

    parts = {name for name, row in rows.items() if recovery.is_of_a_part(row)}
    assert parts == {recovery.ANY_PART, recovery.UNHINDERED, "agent killed", "work child killed", "forks killed"}
    assert rows[recovery.ANY_PART].strikes == 2


def test_report_names_what_never_became_healthy_and_lacks_nothing_without_jobs():
    rows = table([Strike("web", "killed", 1.0), Strike("ssh", "stopped", 2.0)], [], lambda _strike: None)
    text = recovery.as_text(list(rows.values()))

    assert recovery.added_delay(rows.values()) == {}
    assert [line.split()[-2:] for line in text.splitlines() if "never" in line] == [["1", "never"]] * 4


def test_recovery_during_which_the_broker_stood_still_is_told_apart():
    """Of three kills one happens while the broker stands still, one recovers into that time, one does not meet it."""
    strikes = [Strike("cpu", "killed", at) for at in (10.0, 18.5, 30.0)]
    strikes += [Strike("broker", "stopped", 25.0, stopped_s=6.0), Strike("ssh", "stopped", 31.0, stopped_s=20.0)]
    strikes.append(Strike("work", "killed", 21.0))
    rows = table(strikes, [], lambda strike: 1.0 if strike.at < 20 or strike.at > 26 else 4.5)

    assert (rows[recovery.ANY_PART].strikes, rows[recovery.UNHINDERED].strikes) == (4, 2)
    assert rows[recovery.UNHINDERED].healthy["max"] == 1.0
