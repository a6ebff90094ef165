"""The judge of what virtual people were told must see what it is there to see."""

import hashlib
import random
from dataclasses import replace

import pytest

from tests.cases import case_table
from tests.chaos.checker import Findings
from tests.chaos.crowd_checker import Known, check
from tests.chaos.recovery import UNHINDERED, Signs, Strike, figures, table

LOG = b"line 000001 of job 7 attempt 1\nline 000002 of job 7 attempt 1\n"
RINGS = [[0, 0, 1, 0, 1, 1, 0, 1]]


def digest(content):
    return hashlib.sha256(content).hexdigest()


def view(**changes):
    return {
        "kind": "view",
        "viewer": 1,
        "job": 7,
        "attempt": 1,
        "size": len(LOG),
        "sha256": digest(LOG),
        "whole": True,
    } | changes


def exported(**changes):
    good = {"status": 202, "export": 1, "state": "success", "sha256": "a", "file_sha256": "a", "drawn": 2, "boxes": 2}
    return {"kind": "exported", "by": "anna"} | good | changes


def edit(number, rings, *, stored=True, shape="s"):
    asked = {"kind": "edit", "by": "anna", "id": number, "shape": shape, "rings": rings}
    return [asked, {"kind": "edited", "id": number, "rev": 1}] if stored else [asked]


def submission(status=201, job=7):
    return [
        {"kind": "submit", "name": "x", "lines": 3, "exit_code": 0},
        {"kind": "submitted", "name": "x", "status": status, "job": job},
    ]


def upload(status=201):
    return [
        {"kind": "upload", "name": "u", "sums": ["a", "b"]},
        {"kind": "uploaded", "name": "u", "status": status},
    ]


REST = {"kind": "rest"}
GOOD = [*submission(), *edit(1, RINGS), *edit(2, None, shape="gone"), *upload(), exported(), view(), REST]
KNOWN = Known({"x": [7]}, {"s": [RINGS], "gone": [None]}, {"u": [["a", "b"]]}, lambda _job, _attempt: LOG)


def rules(facts, known=KNOWN):
    found = Findings()
    check(facts, known, found)
    return set(found.broken)


def test_crowd_checker_finds_nothing_in_a_good_run():
    assert rules(GOOD) == set()


@case_table(
    ("known", "rule"),
    [
        (replace(KNOWN, jobs={}), "lost"),
        (replace(KNOWN, jobs={"x": [7, 8]}), "twice"),
        (replace(KNOWN, jobs={"x": [8]}), "wrong"),
        (replace(KNOWN, shapes={"gone": [None]}), "lost"),
        (replace(KNOWN, shapes={"s": [None], "gone": [None]}), "lost"),
        (replace(KNOWN, shapes={"s": [RINGS], "gone": [RINGS]}), "lost"),
        (replace(KNOWN, shapes={"s": [RINGS, RINGS], "gone": [None]}), "twice"),
        (replace(KNOWN, datasets={}), "lost"),
        (replace(KNOWN, datasets={"u": [None]}), "lost"),
        (replace(KNOWN, datasets={"u": [["a", "x"]]}), "bytes"),
        (replace(KNOWN, datasets={"u": [["a", "b"], ["a", "b"]]}), "twice"),
        (replace(KNOWN, log=lambda _job, _attempt: LOG.replace(b"2", b"3")), "lines"),
        (replace(KNOWN, log=lambda _job, _attempt: LOG + b"line 3\n"), "lines"),
        (replace(KNOWN, log=lambda _job, _attempt: LOG[:-1]), "lines"),
        (replace(KNOWN, held=["import 1 is still held by nobody"]), "stuck"),
    ],
)
def test_crowd_checker_finds_what_the_platform_did_wrong(known, rule):
    assert rules(GOOD, known) == {rule}


@case_table(
    ("more", "rule"),
    [
        ([{"kind": "submit", "name": "y", "lines": 1, "exit_code": 0}], "stuck"),
        ([*edit(3, [[1]], shape="new")], "lost"),
        ([exported(status=0)], "stuck"),
        ([exported(state="queued", sha256=None)], "stuck"),
        ([exported(state="failed", detail="broke")], "wrong"),
        ([exported(file_sha256="b")], "bytes"),
        ([exported(boxes=1)], "lost"),
        ([view(whole=False)], "stuck"),
        ([{"kind": "repeated", "viewer": 1, "job": 7, "attempt": 1, "offset": 5}], "lines"),
        ([{"kind": "shrunk", "viewer": 1, "text": "shorter"}], "lines"),
        ([{"kind": "missing", "by": "bob", "path": "/training/1/"}], "lost"),
        ([{"kind": "signed_out", "by": "bob", "path": "/"}], "errors"),
        ([{"kind": "error", "by": "bob", "asked": "GET /", "status": 500, "text": ""}], "errors"),
        ([{"kind": "broke", "text": "KeyError"}], "errors"),
    ],
)
def test_crowd_checker_finds_what_people_met(more, rule):
    assert rules([*GOOD, *more]) == {rule}


@pytest.mark.parametrize(("answer", "rule"), [(0, "stuck"), (409, "wrong")])
def test_crowd_checker_finds_refused_and_unanswered_intentions(answer, rule):
    others = [fact for fact in GOOD if not fact["kind"].startswith(("submi", "upload"))]

    assert rules([*others, *submission(answer, None)]) == {rule}
    assert rules([*others, *upload(answer)]) == {rule}


def test_crowd_checker_finds_people_without_rest():
    assert rules([fact for fact in GOOD if fact is not REST]) == {"stuck"}


def test_crowd_checker_leaves_open_what_an_unanswered_edit_did():
    facts = [*GOOD, *edit(3, [[9]], stored=False)]

    assert rules(facts) == set()
    assert rules(facts, replace(KNOWN, shapes={"s": [[[9]]], "gone": [None]})) == set()
    assert rules(facts, replace(KNOWN, shapes={"s": [[[8]]], "gone": [None]})) == {"lost"}


def test_recovery_counts_from_the_strike_to_newer_signs(tmp_path):
    signs = Signs(tmp_path, "http://127.0.0.1:1")
    signs.seen["agent"] = [(9.0, 10.5), (12.0, 12.5)]
    signs.seen["web"] = [(10.1, 10.2), (14.0, 14.5)]
    signs.missed = [10.4]

    assert signs.after("agent", 10.0) == 2.5  # what was written before is no sign, whenever it is seen
    assert signs.after("agent", 12.0) is None
    assert signs.after("web", 10.0) == 4.5  # the last answers of a server's children do not count
    assert signs.after("up", 10.0) is None


CALM = (0.0, 9.0)


def test_recovery_table_has_a_line_for_each_kind_and_for_nothing():
    strikes = [Strike("agent", "killed", 10.0), Strike("agent", "killed", 20.0), Strike("web", "stopped", 15.0)]

    rows = {row.name: row for row in table(strikes, lambda s: s.at / 10, [11.0, 24.0], CALM, random.Random(1))}

    assert set(rows) == {"agent killed", "web stopped", "any part killed", UNHINDERED, "nothing"}
    assert rows["any part killed"].strikes == 2
    assert rows["agent killed"].healthy == {"median": 1.5, "p95": 2.0, "max": 2.0}
    assert rows["agent killed"].next_job == {"median": 2.5, "p95": 4.0, "max": 4.0}
    assert rows["nothing"].strikes == 200


def test_recovery_tells_how_often_nothing_came_back():
    rows = table([Strike("agent", "killed", 1.0)], lambda _strike: None, [], CALM, random.Random(1))

    row = next(row for row in rows if row.name == "agent killed")
    assert (row.never, row.healthy, figures([])) == (1, {}, {})


def test_recovery_table_measures_the_next_job_after_a_process_without_a_sign_of_life_was_killed():
    strikes = [Strike(kind, "killed", 10.0) for kind in ("forks", "supervisor forks")]

    rows = {row.name: row for row in table(strikes, lambda _strike: None, [13.0], CALM, random.Random(1))}

    assert set(rows) == {"forks killed", "supervisor forks killed", "nothing"}
    assert {row.never for row in rows.values()} == {0}
    assert rows["supervisor forks killed"].next_job["max"] == 3.0
