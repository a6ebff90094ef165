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
    assert "There is no template ghost" in capfd.readouterr().err


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
