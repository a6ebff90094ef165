"""The judge of environments in chaos runs must see what it is there to see."""

from dataclasses import replace

import pytest

from tests.cases import case_table
from tests.chaos.checker import Findings
from tests.chaos.lodging_checker import Lodging, Saved, check

LODGING = Lodging(7, "lodging_a", "stopped", {1: ["aa"]}, ready=1)
ASKED = [
    {"kind": "lodge", "by": "d", "name": "lodging_a", "at": 1},
    {"kind": "lodged", "by": "d", "name": "lodging_a", "status": 201, "job": 7, "at": 2},
]
MET = {"kind": "kernel", "by": "d", "job": 7, "attempt": 1, "mine": "aa", "way": "ssh", "at": 3}
WROTE = {"kind": "note", "by": "d", "job": 7, "note": "n1", "at": 4}
READ = {"kind": "notes", "by": "d", "job": 7, "notes": ["n1"], "broken": [], "at": 5}
IMAGE = Saved(3, 7, "ready")


def broken(*facts, lodgings=(LODGING,), images=(IMAGE,), parts=()):
    found = Findings()
    check([*ASKED, *facts], lodgings, images, parts, found)
    return set(found.broken)


def test_lodging_checker_finds_nothing_where_all_is_well():
    assert broken(MET, WROTE, READ) == set()


def test_lodging_checker_accepts_what_follows_from_a_kill():
    again = replace(LODGING, labs={1: ["aa"], 2: ["bb"]}, struck=frozenset({1}), ready=2)
    ended = replace(LODGING, state="failed", struck=frozenset({1}))

    assert broken(MET, {**MET, "attempt": 2, "mine": "bb"}, WROTE, READ, lodgings=[again]) == set()
    assert broken(MET, lodgings=[ended]) == set()
    assert broken(MET, images=[Saved(3, 7, "failed", "It did not come to rest.")]) == set()


def test_lodging_checker_lets_an_environment_end_before_it_was_seen_ready():
    """Somebody who waits at its door is in before the platform looks again, and may stop it at once."""
    assert broken(MET, lodgings=[replace(LODGING, ready=0, ended={1: MET["at"] + 1.0})]) == set()


@case_table(
    ("lodging", "rule"),
    [
        (replace(LODGING, state="running"), "lost"),
        (replace(LODGING, live=[1]), "lost"),
        (replace(LODGING, state="failed"), "wrong"),
        (replace(LODGING, labs={1: ["aa", "bb"]}), "twice"),
        (replace(LODGING, labs={1: ["aa"], 2: ["bb"]}, ready=2), "wrong"),
        (replace(LODGING, labs={1: []}), "wrong"),
        (replace(LODGING, ready=0), "wrong"),
        (replace(LODGING, ready=0, ended={1: MET["at"] + 61.0}), "wrong"),
        (replace(LODGING, open_sessions=1), "stuck"),
        (replace(LODGING, job=8), "lost"),
    ],
)
def test_lodging_checker_finds_each_fault_of_an_environment(lodging, rule):
    assert rule in broken(MET, lodgings=[lodging])


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ([{**MET, "mine": "zz"}], "wrong"),
        ([WROTE, {**READ, "notes": []}], "lost"),
        ([WROTE, {**READ, "broken": ["n1"]}], "bytes"),
        ([{"kind": "shut_out", "by": "d", "job": 7, "ways": ["ssh"], "at": 9}], "stuck"),
        ([{"kind": "lodge", "by": "d", "name": "lodging_b", "at": 9}], "stuck"),
    ],
)
def test_lodging_checker_finds_what_a_person_met(facts, rule):
    assert rule in broken(*facts)


def test_lodging_checker_knows_that_nobody_enters_where_the_exec_server_was_killed():
    shut_out = {"kind": "shut_out", "by": "d", "job": 7, "ways": ["ssh"], "at": 9}
    later = replace(LODGING, labs={1: ["aa"], 2: ["bb"]}, struck=frozenset({1}), ready=2, closed=frozenset({1}))

    assert "stuck" not in broken(shut_out, lodgings=[replace(LODGING, closed=frozenset({1}))])
    assert "stuck" in broken(shut_out, lodgings=[later])


@pytest.mark.parametrize(
    ("image", "rule"),
    [
        (Saved(3, 7, "saving"), "stuck"),
        (Saved(3, 7, "ready", whole=False), "bytes"),
        (Saved(3, 7, "failed"), "silent"),
    ],
)
def test_lodging_checker_finds_each_fault_of_an_image(image, rule):
    assert rule in broken(images=[image])
    assert "orphans" in broken(parts=["images/.3.tar.zst.x"])
