"""A decision on paper replays to the same plan; what is no decision is refused. And the preview."""

import json
from dataclasses import replace

import pytest
from django.core.management import call_command
from hypothesis import given, settings

from tests.conftest import signed_in
from tests.factories import work
from tests.long_form import examples
from tests.workers.drawn_snapshots import NOW, snapshots
from tests.workers.planner_cases import NOW as THEN
from tests.workers.planner_cases import ask, picture, run
from workers.planning.planner import record
from workers.planning.planner.policy import Policy
from workers.planning.planner.preview import preview
from workers.planning.planner.snapshot import Request


@given(snapshots())
@settings(max_examples=examples(60), deadline=None)
def test_decision_record_replays_to_the_same_plan(snapshot):
    kept = record.decide(snapshot, NOW, Policy(guard_s=7200.0))

    again = record.load(json.loads(json.dumps(record.dump(kept))))

    assert again == kept
    assert again.replay() == kept.decided


def test_decision_record_is_readable_by_people():
    kept = record.decide(picture([run(11, 100)], [ask(1, 4, priority=100), ask(2, 9)]), THEN)

    text = list(record.lines(kept))

    assert text[0] == "1 running, 2 waiting on 4 devices: the same plan"
    assert "preempt 11 for 1 (urgent)" in text
    assert "wait 1 #1 making_room jobs=1 starts in 0.0 h" in text
    assert next(record.lines(replace(kept, now=THEN - 7200))).endswith("ANOTHER plan than the recorded one")


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"format": "aip-decision/0"},
        {"format": record.FORMAT},
        {"format": record.FORMAT, "snapshot": {"nodes": [{"id": "1", "name": "a"}]}, "now": 1, "decided": {}},
        {"format": record.FORMAT, "snapshot": {"nodes": 5}, "now": 1, "decided": {}},
        {"format": record.FORMAT, "snapshot": {"secrets": []}, "now": 1, "decided": {}},
    ],
)
def test_decision_record_refuses_what_is_no_decision(data):
    with pytest.raises(record.WrongRecord):
        record.load(data)


def test_planner_preview_is_what_would_happen():
    there = picture([run(11, 100)])

    now = preview(there, ask(7, 3), THEN)
    room = preview(there, ask(7, 4, priority=100), THEN)
    waits = preview(there, ask(7, 4), THEN)
    never = preview(there, replace(ask(7), request=Request(1, 5)), THEN)

    assert (now.kind, len(now.places[0][1])) == ("now", 3)
    assert (room.kind, room.makes_room) == ("waits", 1)
    assert waits.wait is not None
    assert (waits.wait.code, waits.wait.eta) == ("no_cards", THEN + 9 * 3600)
    assert [reason.code for reason in never.never] == ["too_many_on_a_node"]


@pytest.mark.django_db
def test_decision_record_is_downloaded_live_and_replayed_by_an_operator(alice, olga, tmp_path, capsys):
    work.node(gpus=2)

    refused = signed_in(alice).get("/api/v1/cluster/decision/")
    answer = signed_in(olga).get("/api/v1/cluster/decision/", headers={"accept": "text/html,*/*;q=0.8"})
    page = signed_in(olga).get("/cluster/").content
    file = tmp_path / "decision.json"
    file.write_bytes(answer.content)
    call_command("simulate", replay=file)

    assert refused.status_code == 403
    assert b'href="/api/v1/cluster/decision/"' in page
    assert answer["Content-Disposition"].startswith('attachment; filename="decision-')
    assert "0 running, 0 waiting on 3 devices: the same plan" in capsys.readouterr().out
