"""`aip templates` and `aip run --template`: what they send and print."""

from __future__ import annotations

import io
import json

import pytest

pytestmark = pytest.mark.sockets("a platform's double")

ROUTE = "/api/v1/templates/"
ROW = {
    "id": 5, "name": "nightly", "kind": "command", "owner": "alice", "visibility": "private", "version": 2,
    "request": {"command": "make"}, "parameters": [{"name": "lr", "default": 0.1, "about": ""}], "url": "/templates/5/",
}  # fmt: skip


@pytest.fixture
def stored(platform):
    platform.answers(f"GET {ROUTE}", {"results": [ROW], "next": None})
    platform.answers(f"POST {ROUTE}5/use/", {"id": 7, "name": "x", "array": None, "url": "/jobs/7/"}, status=201)


def test_run_of_a_template_sends_its_values_and_what_stands_in_place(aip, platform, stored, capfd):
    code = aip("run", "--template", "nightly", "--set", "lr=0.5", "--set", "note=a=b", "--gpus", 2, "-d")

    sent = platform.asked(f"POST {ROUTE}5/use/")[0].json()
    assert (code, capfd.readouterr().out) == (0, "7\n")
    assert sent == {"values": {"lr": "0.5", "note": "a=b"}, "request": {"gpus_per_node": 2}}
    assert platform.asked(f"GET {ROUTE}")[0].query["name"] == "nightly"


def test_run_of_a_template_that_is_not_there_says_so(aip, platform, capfd):
    platform.answers(f"GET {ROUTE}", {"results": [], "next": None})

    code = aip("run", "--template", "ghost", "-d")

    assert code == 5
    assert "No template ghost." in capfd.readouterr().err


def test_templates_are_listed_shown_saved_and_deleted(aip, platform, stored, tmp_path, capfd, monkeypatch):
    platform.answers(f"POST {ROUTE}", ROW, status=201)
    platform.answers(f"DELETE {ROUTE}5/", None, status=204)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    file = tmp_path / "nightly.json"
    file.write_text(json.dumps({"request": {"command": "make"}, "parameters": []}))

    codes = [
        aip("templates", "list"),
        aip("templates", "show", "nightly"),
        aip("templates", "save", "nightly", "--job", 7, "--visibility", "public"),
        aip("templates", "save", "nightly", "--file", file),
        aip("templates", "save", "nightly"),
        aip("templates", "delete", "nightly"),
        aip("templates", "delete", "nightly", "--yes"),
    ]

    out, _err = capfd.readouterr()
    sent = [request.json() for request in platform.asked(f"POST {ROUTE}")]
    assert codes == [0, 0, 0, 0, 2, 2, 0]
    assert "nightly" in out
    assert '"command": "make"' in out
    assert sent[0] == {"name": "nightly", "job": 7, "visibility": "public"}
    assert sent[1] == {"name": "nightly", "request": {"command": "make"}, "parameters": []}
    assert len(platform.asked(f"DELETE {ROUTE}5/")) == 1


def test_run_of_a_template_name_that_two_people_gave_asks_for_the_id(aip, platform, stored, capfd):
    platform.answers(f"GET {ROUTE}", {"results": [ROW, {**ROW, "id": 6, "owner": "mallory"}], "next": None})

    code = aip("run", "--template", "nightly", "-d")

    assert code == 2
    assert "5 of alice, 6 of mallory" in capfd.readouterr().err
    assert not platform.asked(f"POST {ROUTE}5/use/")


def test_run_with_an_image_name_that_two_people_gave_asks_for_the_id(aip, platform, capfd):
    rows = [{"id": number, "name": "torch", "tag": "1", "owner": who} for number, who in ((3, "alice"), (4, "mallory"))]
    platform.answers("GET /api/v1/images/", {"results": rows, "next": None})

    code = aip("run", "--no-code", "--image", "torch", "-d", "--", "make")

    assert code == 2
    assert "3 of alice, 4 of mallory" in capfd.readouterr().err


@pytest.mark.parametrize("option", [["--dry-run"], ["--code", "."]])
def test_run_of_a_template_refuses_what_it_would_pass_over(aip, platform, stored, capfd, option):
    code = aip("run", "--template", "nightly", *option)

    assert code == 2
    assert f"{option[0]} cannot be combined with --template" in capfd.readouterr().err
    assert not platform.asked(f"POST {ROUTE}5/use/")
