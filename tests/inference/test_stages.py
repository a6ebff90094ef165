"""Stages, aliases, cards and the history of models."""

from __future__ import annotations

import json

import pytest

from accounts.models import UserGroup
from aiplatform.lib.errors import Invalid, NotFound, StillInUse
from inference.registry import aliases, cards, history, references, stages
from inference.registry import registration as registry
from inference.registry.models import ModelAlias, ModelVersion
from inference.serving import endpoints
from inference.serving.forms import ServiceForm
from tests.factories import models as factory

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def second(alice, tmp_path, version):
    return factory.model_version(alice, tmp_path, model=version.model)


def move(version, to, by, reason="Seen by hand."):
    return stages.move(version=version, to=to, by=by, reason=reason)


def test_stage_moves_with_reason_and_stands_in_the_history(alice, version):
    moved = move(version, "approved", alice, "mAP 0.9 on the holdout.")

    entry = history.list_entries(version.model)[0]
    assert (moved.stage, moved.stage_by, moved.stage_reason) == ("approved", alice, "mAP 0.9 on the holdout.")
    assert (entry.actor, entry.verb) == ("alice", "model_stage_moved")
    assert entry.facts == {"version": "v1", "from": "candidate", "stage": "approved", "why": "mAP 0.9 on the holdout."}


@pytest.mark.parametrize(("to", "reason", "message"), [
    ("candidate", "x", "is Candidate"), ("best", "x", "The stage must be one of"), ("approved", "  ", "Enter a reason"),
    ("approved", "x" * 501, "at most 500"),
])  # fmt: skip
def test_stage_refuses_moves_that_are_none(alice, version, to, reason, message):
    with pytest.raises((stages.WrongStage, Invalid), match=message):
        move(version, to, alice, reason)
    assert ModelVersion.objects.get(pk=version.pk).stage == "candidate"


def test_archived_version_is_offered_for_nothing_new_and_its_service_goes_on(alice, version):
    service = endpoints.create(user=alice, name="demo", model_version=version)
    archived = move(version, "archived", alice)

    with pytest.raises(stages.Archived, match="is archived"):
        endpoints.create(user=alice, name="other", model_version=archived)
    service.refresh_from_db()
    assert service.is_up
    assert not ServiceForm(user=alice).fields["model_version"].queryset.exists()
    assert move(version, "candidate", alice, "It was the better one.").stage == "candidate"


def test_approval_is_another_persons_where_a_group_asks_for_it(alice, bob, version):
    group = UserGroup.objects.create(name="Lab", description="All of us")
    group.users.add(alice)
    stages.ask_in_group(group=group, second_person=True, by=alice)

    with pytest.raises(stages.NeedsAnotherPerson, match="You created cells v1, and the group Lab requires approval by"):
        move(version, "approved", alice)
    assert move(version, "approved", bob).stage_by == bob

    stages.ask_in_group(group=group, second_person=False, by=alice)
    move(version, "candidate", alice)
    assert move(version, "approved", alice).stage == "approved"


def test_alias_moves_in_one_step_and_names_a_version(alice, version, second):
    aliases.assign(version=version, name="champion", by=alice)
    aliases.assign(version=second, name="champion", by=alice)
    aliases.assign(version=second, name="champion", by=alice)  # says nothing new

    assert [(alias.name, alias.version) for alias in ModelAlias.objects.all()] == [("champion", second)]
    assert references.find(alice, "cells@champion") == second
    assert [e.facts.get("from") for e in history.list_entries(version.model) if e.verb == "model_alias_moved"] == [
        "v1",
        None,
    ]


@pytest.mark.parametrize("name", ["", "Champion", "2nd", "v2", "a b", "a/b", "../x", "latest", "x" * 51, "a\n"])
def test_alias_refuses_what_is_no_name(alice, version, name):
    with pytest.raises(Invalid):
        aliases.assign(version=version, name=name, by=alice)


def test_alias_and_archive_exclude_each_other(alice, version, second):
    aliases.assign(version=version, name="champion", by=alice)
    move(second, "archived", alice)

    with pytest.raises(stages.WrongStage, match="is champion"):
        move(version, "archived", alice)
    with pytest.raises(stages.Archived):
        aliases.assign(version=second, name="champion", by=alice)
    with pytest.raises(StillInUse, match="is champion"):
        registry.delete_version(version=version)


def test_references_read_every_way_to_write_a_version(alice, bob, version, second):
    for text in ("cells", "cells:2", "cells v2", "alice/cells:2", "alice/cells"):
        assert references.find(alice, text) == second
    for text in ("cells:3", "cells@champion", "bob/cells", "other"):
        with pytest.raises(NotFound):
            references.find(alice, text)
    with pytest.raises(NotFound):  # another tenant
        references.find(bob, "alice/cells:1")
    with pytest.raises(Invalid):
        references.find(alice, "a/b/c@d@e")


def test_references_ask_for_the_owner_where_several_have_the_name(alice, bob, olga, tmp_path):
    factory.model_version(alice, tmp_path)
    own = factory.model_version(bob, tmp_path)

    with pytest.raises(Invalid, match=r"alice/cells, bob/cells"):
        references.find(olga, "cells")
    assert references.find(bob, "cells") == own


def test_card_is_written_in_parts_and_shown_without_markup(alice, bob, version, as_alice, as_bob):
    evil = "# Finds cells\n<script>alert(1)</script> [x](javascript:alert(1)) **only** `<b>`"
    cards.write(model=version.model, by=alice, card={"purpose": evil})
    cards.write(model=version.model, by=alice, card={"licence": "MIT"})

    page = as_alice.get(f"/models/{version.model_id}/").content.decode()
    assert "<h3>Finds cells</h3>" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<strong>only</strong> <code>&lt;b&gt;</code>" in page
    assert 'href="javascript' not in page
    assert "MIT" in page
    assert as_bob.get(f"/models/{version.model_id}/card/").status_code == 404
    assert [e.facts["fields"] for e in history.list_entries(version.model) if e.verb == "model_card_changed"] == [
        ["licence"], ["purpose"],
    ]  # fmt: skip


def test_card_refuses_unknown_and_long_parts_at_once(alice, version):
    with pytest.raises(Invalid) as refused:
        cards.write(model=version.model, by=alice, card={"colour": "red", "licence": "x" * 201, "purpose": 3})

    assert len(refused.value.every) == 3


def test_registry_api_moves_stage_and_alias_for_editors_alone(as_alice, as_bob, bob, version):
    model, pk = version.model_id, version.pk
    stage = {"stage": "approved", "reason": "good"}

    def post(client, path, body):
        return client.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")

    assert post(as_bob, f"model-versions/{pk}/stage/", stage).status_code == 404
    assert post(as_bob, f"models/{model}/aliases/", {"name": "a", "version": pk}).status_code == 404
    moved = post(as_alice, f"model-versions/{pk}/stage/", stage)
    named = post(as_alice, f"models/{model}/aliases/", {"name": "champion", "version": "cells:1"})
    again = post(as_alice, f"model-versions/{pk}/stage/", stage)
    listed = as_alice.get("/api/v1/models/?stage=approved&alias=champion&task=detection").json()["results"]

    assert (moved.status_code, moved.json()["stage"], moved.json()["stage_reason"]) == (200, "approved", "good")
    assert named.json() == {"name": "champion", "version": pk, "number": 1, "moved_at": named.json()["moved_at"]}
    assert (again.status_code, again.json()["code"]) == (409, "wrong_stage")
    assert [row["aliases"][0]["name"] for row in listed] == ["champion"]
    assert as_alice.get("/api/v1/models/?stage=archived").json()["results"] == []
    assert [act["verb"] for act in as_alice.get(f"/api/v1/models/{model}/history/").json()][:2] == [
        "model_alias_moved", "model_stage_moved",
    ]  # fmt: skip
    assert as_bob.get(f"/api/v1/models/{model}/history/").status_code == 404
    assert as_alice.delete(f"/api/v1/models/{model}/aliases/champion/").status_code == 204
    assert as_alice.delete(f"/api/v1/models/{model}/aliases/champion/").status_code == 404


def test_registry_api_takes_an_alias_wherever_a_version_is_chosen(as_alice, alice, version, second):
    aliases.assign(version=version, name="champion", by=alice)

    made = as_alice.post("/api/v1/services/", {"name": "s", "model_version": "cells@champion"})
    wrong = as_alice.post("/api/v1/services/", {"name": "t", "model_version": "cells@nobody"})

    assert (made.status_code, made.json()["model_version"]) == (201, version.pk)
    assert (wrong.status_code, "model_version" in wrong.json()["errors"]) == (400, True)


def test_registry_pages_move_stage_and_alias(as_alice, as_bob, version):
    model, pk = version.model_id, version.pk

    assert as_alice.post(f"/models/versions/{pk}/stage/", {"stage": "approved", "reason": ""}).status_code == 422
    assert as_alice.post(f"/models/versions/{pk}/stage/", {"stage": "approved", "reason": "ok"}).status_code == 302
    assert as_alice.post(f"/models/{model}/alias/", {"name": "Bad", "version": pk}).status_code == 422
    assert as_alice.post(f"/models/{model}/alias/", {"name": "champion", "version": pk}).status_code == 302
    shown = as_alice.get(f"/models/{model}/all/").content.decode()
    assert "Approved" in shown
    assert "champion" in shown
    assert "moved the stage of a version of" in as_alice.get(f"/models/{model}/history/").content.decode()
    assert "champion" in as_alice.get("/models/?alias=champion").content.decode()
    assert "No model matches" in as_alice.get("/models/?alias=other").content.decode()
    for path in (f"/models/{model}/all/", f"/models/{model}/history/", f"/models/versions/{pk}/stage/"):
        assert as_bob.get(path).status_code == 404
    assert as_alice.post(f"/models/{model}/alias/remove/", {"name": "champion"}).status_code == 302
    assert not ModelAlias.objects.exists()
