"""The outputs of a job of any kind: on its page, by the API, whole and one by one."""

from __future__ import annotations

import io
import zipfile

import pytest

from tests.factories import work


@pytest.fixture
def job(alice, cluster):
    """Alice's job that was tried twice; both left something."""
    made = work.job(alice, cluster, state="succeeded", attempt_number=2)
    for attempt, names in ((1, ["old.txt"]), (2, ["model.bin", "logs/a?.txt"])):
        for name in names:
            path = work.run_dir(made, attempt).outputs / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
    return made


def test_job_outputs_are_listed_and_fetched_by_the_api(api, job):
    listed = api.get(f"/api/v1/jobs/{job.pk}/files/").json()
    one = api.get(f"/api/v1/jobs/{job.pk}/files/content/?path=logs/a%3F.txt")
    packed = api.get(f"/api/v1/jobs/{job.pk}/files/zip/?attempt=1")

    assert sorted(row["path"] for row in listed) == ["logs/a?.txt", "model.bin"]
    assert one.getvalue() == b"logs/a?.txt"
    with zipfile.ZipFile(io.BytesIO(packed.getvalue())) as archive:
        assert archive.namelist() == ["old.txt"]


@pytest.mark.parametrize("path", ["../log.txt", "/etc/passwd", "nothing", ""])
def test_job_outputs_lead_nowhere_else(api, job, path):
    (work.run_dir(job, 2).path / "log.txt").write_text("x")

    assert api.get(f"/api/v1/jobs/{job.pk}/files/content/", {"path": path}).status_code == 404


def test_job_outputs_are_for_those_who_see_the_job(as_bob, as_olga, as_anna, job):
    for tail in ("", "zip/", "content/?path=model.bin"):
        url = f"/api/v1/jobs/{job.pk}/files/{tail}"
        answers = [someone.get(url) for someone in (as_bob, as_olga, as_anna)]
        assert [answer.status_code for answer in answers] == [404, 200, 403]
        assert all(answer.getvalue() for answer in answers)  # streams are read to their end
    assert [someone.get(f"/jobs/{job.pk}/files/").status_code for someone in (as_bob, as_olga)] == [404, 200]


def test_job_page_shows_outputs_and_says_where_they_go_while_there_are_none(as_alice, alice, cluster, job):
    running = work.job(alice, cluster, state="running")

    page = as_alice.get(f"/jobs/{job.pk}/?tab=files").content.decode()
    empty = as_alice.get(f"/jobs/{running.pk}/files/").content.decode()

    assert "model.bin" in page
    assert "old.txt" not in page
    assert f"/api/v1/jobs/{job.pk}/files/zip/?attempt=2" in page
    assert "AIP_OUTPUT_DIR" in empty


def test_job_detail_of_the_api_says_the_exit_code(api, job):
    job.attempts.filter(number=2).update(exit_code=3)

    assert api.get(f"/api/v1/jobs/{job.pk}/").json()["exit_code"] == 3
