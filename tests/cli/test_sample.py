"""`aip sample`: creates the sample project, prints its steps, removes it."""

from __future__ import annotations

import pytest

from aiplatform.client.commands import sample

pytestmark = pytest.mark.sockets("a platform's double")


def project(state: str, step: str = "done", **fields) -> dict:
    steps = [{"key": "dataset", "label": "Dataset", "state": step, "name": "sample_digits", "url": "/datasets/1/",
              "detail": "Importing images"}]  # fmt: skip
    row = {"state": state, "message": "", "dataset": 1, "training": 2, "model": 3, "service": 4, "steps": steps,
           "created_at": "2026-11-29T12:00:00Z", "updated_at": "2026-11-29T12:00:00Z"}  # fmt: skip
    return row | fields


@pytest.mark.parametrize(("end", "code"), [("ready", 0), ("failed", 6)])
def test_sample_create_waits_and_returns_whether_it_is_ready(aip, platform, capsys, monkeypatch, end, code):
    rows = [project("creating", "current"), project("creating", "current"), project(end, message="Disk full.")]
    monkeypatch.setattr(sample.waiting, "read", lambda client, route: rows.pop(0))
    monkeypatch.setattr(sample.time, "sleep", lambda _seconds: None)
    platform.answers("POST /api/v1/sample-project/", project("creating"), status=202)

    assert aip("sample", "create", "--wait") == code

    out, err = capsys.readouterr()
    assert err.count("Dataset: Importing images") == 1
    assert end in out
    assert rows == []


def test_sample_remove_needs_a_yes_from_scripts(aip, platform):
    platform.answers("DELETE /api/v1/sample-project/", project("removing"), status=202)

    assert aip("sample", "remove") == 2
    assert platform.asked("DELETE /api/v1/sample-project/") == []
    assert aip("sample", "remove", "--yes") == 0
    assert len(platform.asked("DELETE /api/v1/sample-project/")) == 1


def test_sample_remove_waits_until_the_project_is_gone(aip, platform, capsys):
    platform.answers("DELETE /api/v1/sample-project/", project("removing"), status=202)
    platform.answers("GET /api/v1/sample-project/", {"detail": "You have no sample project."}, status=404)

    assert aip("sample", "remove", "--yes", "--wait") == 0
    assert "Removed the sample project." in capsys.readouterr().err
