"""Files that scripts send: below the outputs of their job, or in a folder of their run, and nowhere else."""

from __future__ import annotations

import os

import pytest

from aiplatform import env
from tests.training.tracking.conftest import Script, said
from training.experiments.models import Run
from training.experiments.tracking import artifacts
from workers.core.runs import RunDir
from workers.jobs.output import files

pytestmark = pytest.mark.django_db


def body(answer) -> bytes:
    return b"".join(answer.streaming_content)


def test_files_of_a_jobs_run_lie_below_its_outputs_where_its_page_shows_them(script, command):
    uid = script.run.uid

    said(script.put(f"runs/{uid}/notes/a.txt", b"hello"))

    assert (RunDir.for_attempt(command.pk, 1).outputs / "mlflow" / uid / "notes" / "a.txt").read_bytes() == b"hello"
    assert [row.path for row in files.listed(command.job, 1)[0]] == [f"mlflow/{uid}/notes/a.txt"]
    assert script.listed(f"runs/{uid}") == {"notes": None}
    assert script.listed(f"runs/{uid}/notes") == {"a.txt": 5}
    assert script.listed(f"runs/{uid}/notes/a.txt") == script.listed(f"runs/{uid}/nothing") == {}
    assert body(script.fetched(f"runs/{uid}/notes/a.txt")) == b"hello"


def test_files_of_children_lie_with_the_job_and_those_of_a_laptop_apart(script, command, laptop, settings):
    child, own = script.made("trial"), laptop.made()

    said(script.put(f"runs/{child}/a", b"1"))
    said(laptop.put(f"runs/{own}/a", b"2"))

    assert (RunDir.for_attempt(command.pk, 1).outputs / "mlflow" / child / "a").read_bytes() == b"1"
    assert (settings.DATA_ROOT / "tracking" / own / "a").read_bytes() == b"2"


def test_file_that_is_sent_again_replaces_the_first(laptop):
    uid = laptop.made()
    said(laptop.put(f"runs/{uid}/a", b"first"))
    said(laptop.put(f"runs/{uid}/a", b"second!"))

    assert body(laptop.fetched(f"runs/{uid}/a")) == b"second!"
    report = Run.objects.get(uid=uid).reported
    assert (report.files, report.file_bytes) == (1, 7)


def test_files_are_listed_in_the_older_form_too(laptop):
    uid = laptop.made()
    said(laptop.put(f"runs/{uid}/d/a.json", b"{}"))

    found = said(laptop.ask("GET", "artifacts/list", {"run_id": uid, "path": "d"}))

    assert found["root_uri"] == f"mlflow-artifacts:/runs/{uid}"
    assert found["files"] == [{"path": "d/a.json", "is_dir": False, "file_size": 2}]


def test_files_are_sent_so_that_no_browser_runs_them(laptop):
    uid = laptop.made()
    said(laptop.put(f"runs/{uid}/a.html", b"<script>alert(1)</script>"))

    answer = laptop.fetched(f"runs/{uid}/a.html")
    assert body(answer) == b"<script>alert(1)</script>"

    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"].startswith("attachment")
    assert "sandbox" in answer["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    ["../a", "a/../../b", "..", "a//b", "./a", "a\\b", "%2e%2e/a", "a/\x01b", "x" * 300, "/".join("a" * 40),
     "a/..%2f..%2fb", "..%5cb", "%252e%252e/%2e%2e/b", "a\u202eb"],
)  # fmt: skip
def test_path_that_leads_out_is_refused(laptop, path, settings):
    uid = laptop.made()

    answer = laptop.put(f"runs/{uid}/{path}", b"x")

    assert answer.status_code in (400, 404), answer.content
    kept = [file.name for file in settings.DATA_ROOT.rglob("*") if file.is_file() and file.read_bytes() == b"x"]
    assert kept == []


def test_path_is_decoded_once(laptop):
    uid = laptop.made()
    said(laptop.put(f"runs/{uid}/%2561", b"x"))

    assert laptop.listed(f"runs/{uid}") == {"%61": 1}


def test_link_that_a_job_put_in_the_way_is_not_followed(script, command, tmp_path):
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "kept.txt").write_text("other")
    outputs = RunDir.for_attempt(command.pk, 1).outputs
    (outputs / "mlflow").mkdir()
    (outputs / "mlflow" / script.run.uid).symlink_to(secret)

    assert script.put(f"runs/{script.run.uid}/new.txt", b"x").status_code == 400
    assert script.fetched(f"runs/{script.run.uid}/kept.txt").status_code == 404
    assert script.listed(f"runs/{script.run.uid}") == {}
    assert [path.name for path in secret.iterdir()] == ["kept.txt"]


def test_special_file_is_neither_read_nor_waited_for(script, command):
    said(script.put(f"runs/{script.run.uid}/a", b"x"))
    os.mkfifo(RunDir.for_attempt(command.pk, 1).outputs / "mlflow" / script.run.uid / "pipe")

    assert script.listed(f"runs/{script.run.uid}") == {"a": 1}
    assert script.fetched(f"runs/{script.run.uid}/pipe").status_code == 404


def test_folder_in_the_place_of_a_file_is_refused(laptop):
    uid = laptop.made()
    said(laptop.put(f"runs/{uid}/a/b", b"x"))

    assert laptop.put(f"runs/{uid}/a", b"x").status_code in (400, 409)
    assert laptop.put(f"runs/{uid}/a/b/c", b"x").status_code in (400, 404)
    assert laptop.put(f"runs/{uid}", b"x").status_code == 400
    assert laptop.fetched(f"runs/{uid}/a").status_code == 404


def test_quota_bounds_what_belongs_to_no_job(laptop, script, monkeypatch):
    monkeypatch.setattr(env, "TRACKING_QUOTA_BYTES", 10)
    one, two = laptop.made(), laptop.made()
    said(laptop.put(f"runs/{one}/a", b"12345678"))

    answer = laptop.put(f"runs/{two}/b", b"12345678")

    assert (answer.status_code, answer.json()["error_code"]) == (507, "RESOURCE_EXHAUSTED")
    said(script.put(f"runs/{script.run.uid}/b", b"12345678"))


def test_number_of_files_of_a_run_is_bounded(laptop, monkeypatch):
    monkeypatch.setattr(artifacts, "MAX_FILES", 2)
    uid = laptop.made()
    for name in "ab":
        said(laptop.put(f"runs/{uid}/{name}", b"x"))

    assert laptop.put(f"runs/{uid}/c", b"x").status_code == 507


def test_files_are_not_deleted_one_by_one(laptop):
    answer = laptop.ask("DELETE", f"/runs/{laptop.made()}/a", base="/api/mlflow/api/2.0/mlflow-artifacts/artifacts")

    assert (answer.status_code, answer.json()["error_code"]) == (501, "NOT_IMPLEMENTED")


def test_files_of_an_earlier_attempt_are_found(script: Script, command):
    said(script.put(f"runs/{script.run.uid}/old", b"1"))
    RunDir.for_attempt(command.pk, 2).outputs.mkdir(parents=True)
    command.job.attempts.filter(number=1).update(number=1)

    assert script.listed(f"runs/{script.run.uid}") == {"old": 1}
    assert body(script.fetched(f"runs/{script.run.uid}/old")) == b"1"


def test_run_that_is_deleted_for_good_takes_its_files_and_curves_along(
    laptop, settings, django_capture_on_commit_callbacks
):
    uid = laptop.made()
    said(laptop.put(f"runs/{uid}/a", b"x"))
    laptop.post("runs/log-metric", run_id=uid, key="a", value=1)
    run = Run.objects.get(uid=uid)
    folders = [settings.DATA_ROOT / "tracking" / uid, settings.DATA_ROOT / "curves" / f"run-{run.pk}"]
    assert all(folder.is_dir() for folder in folders)

    with django_capture_on_commit_callbacks(execute=True):
        run.delete()

    assert not any(folder.exists() for folder in folders)
