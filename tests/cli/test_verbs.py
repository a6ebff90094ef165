"""Generic verbs: wrong usage, confirmation, and resources that only have plain verbs."""

from __future__ import annotations

import json

import pytest

from accounts.models import Role, UserGroup

pytestmark = pytest.mark.sockets("a platform's double")

PAGE = {"next": None, "results": [{"id": 7, "name": "cells"}]}


def test_unknown_argument_is_refused_with_the_command_and_an_example(aip, capsys):
    assert aip("clusters", "add-member", "lab", "alice") == 2

    message = capsys.readouterr().err
    assert message.startswith("aip clusters add-member: unrecognized arguments: alice.")
    assert "Example: aip clusters add-member lab --user alice --group vision." in message


def test_missing_search_range_is_refused_with_an_example(aip, capsys):
    assert aip("study", "create", "s", "--preset", "detect", "--data", "cells", "--search") == 2
    assert "--search 'lr = 1e-4 .. 0.1 log'" in capsys.readouterr().err


def test_members_without_a_name_are_refused_with_the_expected_form(aip, platform, capsys):
    platform.answers("GET /api/v1/clusters/", {"next": None, "results": [{"id": 3, "name": "lab"}]})

    assert aip("clusters", "add-member", "lab") == 2
    assert "aip clusters add-member lab --user alice" in capsys.readouterr().err


def test_disk_limit_in_another_form_is_refused_with_a_message(aip, platform, capsys):
    assert aip("clusters", "create", "lab", "--disk", "lots") == 2
    assert "write it as 20GiB, 500MB or 1TiB." in capsys.readouterr().err
    assert not platform.asked("POST /api/v1/clusters/")


def test_share_finds_a_project_by_name(aip, platform, capsys):
    platform.answers("GET /api/v1/annotation/projects/", PAGE)
    platform.answers("GET /api/v1/shares/project/7/", [{"name": "bob", "level": "view"}])

    assert aip("share", "project", "cells") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["bob", "view"]


def test_serve_usage_prints_the_response_as_json(aip, platform, capsys):
    usage = {"versions": {"v1": {"requests": 3}}, "callers": {}, "keys": {}}
    platform.answers("GET /api/v1/services/", PAGE)
    platform.answers("GET /api/v1/services/7/usage/", usage)

    assert aip("serve", "usage", "cells", "--json") == 0
    assert json.loads(capsys.readouterr().out) == usage


def test_deletion_without_confirmation_sends_nothing(aip, platform, capsys):
    platform.answers("GET /api/v1/pipelines/", PAGE)
    platform.answers("DELETE /api/v1/pipelines/7/", None, status=204)

    assert aip("pipeline", "delete", "cells") == 2
    assert not platform.asked("DELETE /api/v1/pipelines/7/")
    assert aip("pipeline", "delete", "cells", "--yes") == 0
    assert "Deleted pipeline cells." in capsys.readouterr().err


def test_messages_contain_no_control_characters_of_a_response(aip, platform, capsys):
    platform.answers("POST /api/v1/arrays/3/stop/", {"requested": "2\x1b[31m"})

    assert aip("arrays", "stop", "3") == 0
    assert "\x1b" not in capsys.readouterr().err


def test_fields_that_an_older_platform_does_not_report_stay_empty(aip, platform, capsys):
    platform.answers("GET /api/v1/devices/", [{"node": "n1", "model": "A100"}])
    platform.answers("POST /api/v1/nodes/3/evict/", {"name": "n1"})

    assert aip("nodes", "devices") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["n1", "A100"]
    assert aip("nodes", "evict", "3") == 0
    assert capsys.readouterr().err == "n1 is .\n"


def test_argument_cannot_change_the_route(aip, platform):
    assert aip("jobs", "show", "../clusters/1") == 5

    assert [request.path for request in platform.seen] == ["/api/v1/jobs/..%2Fclusters%2F1/"]


def test_api_command_sends_parameters_fields_and_bodies(aip, platform, tmp_path, capsys):
    platform.answers("GET /api/v1/jobs/", PAGE)
    platform.answers("POST /api/v1/reports/", {"id": 1})
    body = tmp_path / "report.json"
    body.write_text('{"title": "a", "text": "b"}')

    assert aip("api", "get", "/jobs/", "-f", "state=running") == 0
    assert json.loads(capsys.readouterr().out) == PAGE
    assert platform.asked("GET /api/v1/jobs/")[0].query == {"state": "running"}
    assert aip("api", "post", "/api/v1/reports/", "--body", body, "-f", "title=c") == 0
    assert platform.asked("POST /api/v1/reports/")[0].json() == {"title": "c", "text": "b"}
    body.write_text("[]")
    assert aip("api", "post", "reports/", "--body", body) == 2


@pytest.mark.django_db
def test_groups_are_created_listed_and_deleted(real_aip, olga, alice, capsys):
    role = Role.objects.first().name
    assert (
        real_aip(olga, "groups", "create", "vision", "--description", "Cameras", "--role", role, "--member", "alice")
        == 0
    )
    group = UserGroup.objects.get()
    assert [user.username for user in group.users.all()] == ["alice"]
    capsys.readouterr()
    assert real_aip(olga, "groups", "list", "--json") == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["vision"]
    assert real_aip(alice, "groups", "delete", "vision", "--yes") != 0
    assert real_aip(olga, "groups", "delete", "vision", "--yes") == 0
    assert not UserGroup.objects.exists()


@pytest.mark.django_db
def test_roles_uploads_and_planned_trainings_are_listed(real_aip, olga, alice, capsys):
    assert real_aip(olga, "roles", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)
    assert real_aip(alice, "uploads", "list") == 0
    assert real_aip(alice, "train", "planned", "list") == 0
    assert "No uploads." in capsys.readouterr().err
