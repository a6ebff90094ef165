"""The judge of chaos runs must see what it is there to see."""

import dataclasses

import pytest

from tests.cases import case_table
from tests.chaos.checker import AttemptSeen, JobSeen, check


def witnessed(lines, *, start=0, stop=True):
    rows = [{"event": "start", "at": start}]
    rows += [{"event": "line", "line": n, "at": start + n} for n in range(1, lines + 1)]
    return [*rows, {"event": "stop", "at": start + lines + 1}] if stop else rows


def log(lines, *, attempt=1):
    return b"".join(b"line %06d of job 7 attempt %d\n" % (n, attempt) for n in range(1, lines + 1))


GOOD = AttemptSeen(1, "succeeded", "done", "Done.", True, log(3), [witnessed(3)])
JOB = JobSeen(7, "succeeded", 3, 0, [GOOD])


def broken(job, **more):
    facts = {"orphans": {}, "leases": 0, "used_shares": 0, "max_losses": 2} | more
    return set(check([7], {7: job} if job else {}, **facts).broken)


def with_attempt(**changes):
    return dataclasses.replace(JOB, attempts=[dataclasses.replace(GOOD, **changes)])


def test_chaos_checker_finds_nothing_in_a_good_run():
    assert broken(JOB) == set()


def test_chaos_checker_accepts_a_killed_attempt_followed_by_a_good_one():
    first = AttemptSeen(1, "lost", "supervisor_lost", "Lost.", True, log(2), [witnessed(2, stop=False)])
    second = AttemptSeen(2, "succeeded", "done", "Done.", True, log(3, attempt=2), [witnessed(3, start=100)])

    assert broken(dataclasses.replace(JOB, attempts=[first, second])) == set()


@case_table(
    ("job", "rule"),
    [
        (None, "lost"),
        (dataclasses.replace(JOB, state="running"), "lost"),
        (with_attempt(ended=False), "lost"),
        (dataclasses.replace(JOB, exit_code=3), "wrong"),
        (with_attempt(witnesses=[witnessed(3, stop=False)]), "wrong"),
        (dataclasses.replace(JOB, state="stopped"), "wrong"),
        (with_attempt(witnesses=[witnessed(3), witnessed(3, start=50)]), "twice"),
        (with_attempt(log=log(2)), "lines"),
        (with_attempt(log=log(3) + log(1)), "lines"),
        (with_attempt(log=log(3)[:10] + b"\n" + log(3)[11:]), "lines"),
    ],
)
def test_chaos_checker_finds_each_fault(job, rule):
    assert rule in broken(job)


def test_chaos_checker_finds_overlapping_attempts():
    first = AttemptSeen(1, "lost", "node_lost", "Lost.", True, log(3), [witnessed(3)])
    second = dataclasses.replace(GOOD, number=2, witnesses=[witnessed(3, start=2)])

    assert broken(dataclasses.replace(JOB, attempts=[first, second])) == {"twice"}


def test_chaos_checker_finds_an_end_without_a_reason():
    failed = dataclasses.replace(GOOD, state="failed", reason="", sentence="")

    assert "silent" in broken(dataclasses.replace(JOB, state="failed", exit_code=3, attempts=[failed]))


@pytest.mark.parametrize(
    ("facts", "rule"),
    [({"orphans": {9: "sleep"}}, "orphans"), ({"leases": 1}, "leases"), ({"used_shares": 8}, "leases")],
)
def test_chaos_checker_finds_what_stays_behind(facts, rule):
    assert broken(JOB, **facts) == {rule}


def test_chaos_checker_accepts_a_stopped_job_that_was_to_finish_only_where_it_lost_its_supervisor():
    stopped = dataclasses.replace(JOB, state="stopped")

    assert broken(dataclasses.replace(stopped, finished=True)) == {"wrong"}
    assert broken(dataclasses.replace(stopped, orphaned=frozenset({1}))) == {"wrong"}
    assert broken(dataclasses.replace(stopped, orphaned=frozenset({2}), finished=True)) == {"wrong"}
    assert broken(dataclasses.replace(stopped, orphaned=frozenset({1}), finished=True)) == set()
    assert broken(dataclasses.replace(stopped, state="lost", orphaned=frozenset({1}), finished=True)) == {"wrong"}


def test_chaos_checker_accepts_finished_early_only_where_it_was_asked():
    early = dataclasses.replace(JOB, state="finished_early")

    assert broken(early) == {"wrong"}
    assert broken(dataclasses.replace(early, finished=True)) == set()


def test_chaos_checker_accepts_a_lost_job_only_where_each_of_too_many_supervisors_was_killed():
    attempts = [AttemptSeen(n, "lost", "supervisor_lost", "Lost.", True) for n in (1, 2, 3)]
    lost = dataclasses.replace(JOB, state="lost", attempts=attempts, orphaned=frozenset({1, 2, 3}))

    assert broken(lost) == set()
    assert broken(dataclasses.replace(lost, orphaned=frozenset({1, 2}))) == {"wrong"}
    assert broken(dataclasses.replace(lost, attempts=attempts[:2])) == {"wrong"}
