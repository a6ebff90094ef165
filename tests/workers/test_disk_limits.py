"""Disk limits as rows, requests and pages know them, and what the agent makes of one that was exceeded."""

from __future__ import annotations

import pytest

from aiplatform.cli import doctor
from tests.factories import work
from tests.workers.watched import ended, look
from workers.core import disk_limits
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job, VirtualCluster
from workers.core.runs import RunDir
from workers.core.states import Event, Reason
from workers.execution import tickets
from workers.execution.agent import ranks, verdicts
from workers.jobs import resource_request, submission
from workers.jobs.forms.resource_request import ResourceForm, initial_of
from workers.resources.clusters import clusters
from workers.supervisor import project_quota, records

GIB = 1 << 30
OVER = {"limit": "disk", "disk_limit_bytes": 20 * GIB, "disk_bytes": 21 * GIB, "code": None, "signal": "SIGTERM"}
SAID = "Disk limit 20 GiB exceeded: the job used 21 GiB. Delete files, or request a higher limit."


@pytest.mark.parametrize(
    ("own", "default", "most", "limit"),
    [
        (None, None, None, None),
        (None, 5, None, 5),
        (None, None, 7, 7),
        (None, 5, 7, 5),
        (6, 5, 7, 6),
        (9, 5, None, 9),
        (9, 5, 7, 7),  # the maximum was lowered after it was submitted
    ],
)
def test_limit_of_a_job_is_its_own_or_the_default_and_never_above_the_maximum(own, default, most, limit):
    cluster = VirtualCluster(default_disk_bytes=default, max_disk_bytes=most)

    assert disk_limits.limit_bytes(Job(cluster=cluster, max_disk_bytes=own)) == limit


@pytest.mark.django_db
def test_submission_refuses_more_than_the_cluster_allows_and_keeps_the_request(alice, cluster, kind):
    VirtualCluster.objects.filter(pk=cluster.pk).update(max_disk_bytes=20 * GIB)
    cluster.refresh_from_db()
    request = {"owner": alice, "cluster": cluster, "kind": "command", "name": "x"}

    with pytest.raises(disk_limits.OverDiskLimit) as refused:
        submission.submit(**request, max_disk_bytes=21 * GIB)
    with pytest.raises(resource_request.Invalid, match="between 1 MiB and 8 PiB"):
        submission.submit(**request, max_disk_bytes=1000)
    job = submission.submit(**request, max_disk_bytes=20 * GIB)

    assert str(refused.value.message) == ("21 GiB of disk space requested; a job in default can use at most 20 GiB.")
    assert (refused.value.field, refused.value.facts) == (
        "max_disk_bytes", {"asked": 21 * GIB, "most": 20 * GIB},
    )  # fmt: skip
    assert Job.objects.get(pk=job.pk).max_disk_bytes == 20 * GIB


@pytest.mark.django_db
def test_ticket_counts_the_folders_of_the_rank_alone(alice, cluster, settings):
    job = work.job(alice, cluster, state="assigned", max_disk_bytes=2 * GIB)
    work.hold(job, work.node().devices.get(kind="cpu"), share=1)
    attempt = job.attempts.get()
    run = RunDir.for_attempt(job.pk, attempt.number)
    box, home = settings.DATA_ROOT / "box", settings.DATA_ROOT / "home"
    launch = Launch(
        argv=["true"],
        read_write=[box, home],
        own_folders=[box],
        overlay={"upper": "/layer", "system": [{"upper": "/s"}]},
    )

    made = tickets.make(attempt, 0, list(attempt.allocations.all()), launch)
    second = disk_limits.of_ticket(attempt, 1, launch, run.of_rank(1) / "tmp")

    assert made.disk_bytes == 2 * GIB
    assert made.disk_folders == [str(run.path), str(run.path / "tmp"), str(box), "/layer", "/s"]
    assert second["disk_folders"][0] == str(run.path / "ranks" / "1")
    assert made.disk_project >= project_quota.FIRST_PROJECT
    assert second["disk_project"] == made.disk_project + 1


@pytest.mark.django_db
def test_ticket_has_no_disk_limit_where_nobody_set_one(alice, cluster):
    job = work.job(alice, cluster, state="assigned")
    work.hold(job, work.node().devices.get(kind="cpu"), share=1)

    made = tickets.make(job.attempts.get(), 0, list(job.attempts.get().allocations.all()), Launch(argv=["true"]))

    assert (made.disk_bytes, made.disk_folders, made.disk_project) == (0, [], 0)


def test_launch_is_written_down_with_its_own_folders(tmp_path):
    launch = Launch(argv=["true"], read_write=[tmp_path], own_folders=[tmp_path])

    launch.save(tmp_path / "kept")

    assert Launch.load(tmp_path / "kept") == launch


@pytest.mark.parametrize("state", ["running", "finishing", "preempting"])
def test_verdict_on_a_job_over_its_disk_limit(state):
    verdict = verdicts.judge(OVER | {"requested": "suspend", "code": 75}, state, wanted_reason="", can_suspend=True)

    assert (verdict.event, verdict.reason) == (Event.EXITED_BAD, Reason.DISK_LIMIT)
    assert verdict.first == (Event.STOP_REQUESTED if state == "preempting" else None)
    assert str(verdict.message) == SAID


@pytest.fixture
def running(alice, cluster, kind):
    job = work.job(alice, cluster, state="running", retries=2, max_disk_bytes=20 * GIB)
    work.hold(job, work.node().devices.get(kind="cpu"), share=1)
    records.write(work.run_dir(job).path / records.SUPERVISOR, {"pid": 1, "start_ticks": 0, "boot_id": "gone"})
    return job


@pytest.mark.django_db
@pytest.mark.parametrize("restart", ["never", "on_failure"])
def test_job_over_its_disk_limit_fails_and_is_not_tried_again(running, restart):
    Job.objects.filter(pk=running.pk).update(restart=restart)
    ended(running, **OVER)

    look(running)

    assert (running.state, running.reason, str(running.message)) == ("failed", "disk_limit", SAID)
    assert Attempt.objects.get(job=running).disk_bytes == 21 * GIB


@pytest.mark.django_db
def test_pages_and_api_show_what_a_job_uses_of_its_limit(running, as_alice):
    Attempt.objects.filter(job=running).update(disk_bytes=5 * GIB)

    page = as_alice.get(f"/jobs/{running.pk}/").content.decode()
    spec = as_alice.get(f"/jobs/{running.pk}/?tab=spec").content.decode()
    row = as_alice.get(f"/api/v1/jobs/{running.pk}/").json()

    shown = " ".join(page.partition("Disk usage")[2].partition("</dd>")[0].split())
    assert "5.0 GiB" in shown
    assert "of at most 20.0 GiB" in shown
    assert "20.0 GiB" in spec.partition("Disk limit")[2][:40]
    assert (row["max_disk_bytes"], row["disk_limit_bytes"], row["disk_bytes"]) == (20 * GIB, 20 * GIB, 5 * GIB)


@pytest.mark.django_db
def test_rank_reports_what_its_supervisor_wrote(running):
    records.write(work.run_dir(running).path / records.DISK, {"used_bytes": 7, "limit_bytes": 9})

    (part,) = ranks.list_for_node(running.attempts.get().allocations.get().node.name)

    assert part.disk_bytes == 7


@pytest.mark.django_db
def test_form_takes_gibibytes_and_shows_them_again(alice, cluster, kind):
    work.node()
    form = ResourceForm({"device": "cpu", "gpus_per_node": 0, "cpus": 1, "max_disk_gib": "1.5"}, user=alice)

    form.is_valid()
    requested = form.resources()

    assert requested["max_disk_bytes"] == 3 * GIB // 2
    assert initial_of(requested)["max_disk_gib"] == 1.5


@pytest.mark.django_db
def test_cluster_api_sets_disk_limits_and_refuses_a_default_above_the_maximum(as_olga):
    body = {"name": "lab", "default_disk_bytes": 10 * GIB, "max_disk_bytes": 20 * GIB}
    made = as_olga.post("/api/v1/clusters/", body, "application/json")
    url = f"/api/v1/clusters/{made.json()['id']}/"
    refused = as_olga.patch(url, {"default_disk_bytes": 30 * GIB}, "application/json")
    open_ended = as_olga.patch(url, {"max_disk_bytes": None}, "application/json")

    assert (made.status_code, refused.status_code) == (201, 400)
    assert "default disk limit is more than the maximum" in str(refused.json())
    assert open_ended.json()["max_disk_bytes"] is None
    assert open_ended.json()["default_disk_bytes"] == 10 * GIB


@pytest.mark.django_db
def test_cluster_form_and_page_show_disk_limits(as_olga, cluster):
    clusters.save(cluster, name=cluster.name, default_disk_bytes=3 * GIB // 2, max_disk_bytes=20 * GIB)

    edit = as_olga.get(f"/clusters/{cluster.pk}/edit/").content.decode()
    page = as_olga.get(f"/clusters/{cluster.pk}/").content.decode()

    assert 'name="default_disk_gib"' in edit
    assert 'value="1.5"' in edit
    shown = page.partition("Disk limit of a job")[2].partition("</div>")[0]
    assert "1.5 GiB" in shown
    assert "at most 20.0 GiB" in shown


def test_doctor_says_who_keeps_disk_limits(monkeypatch):
    monkeypatch.setattr(project_quota, "obstacle", lambda folders: "no quota here")
    (counted,) = doctor._disk_limits()
    monkeypatch.setattr(project_quota, "obstacle", lambda folders: "")
    (kept,) = doctor._disk_limits()

    assert (counted.level, counted.text) == (
        doctor.OK, "disk limits of jobs are enforced by counting their files: no quota here",
    )  # fmt: skip
    assert kept.text == "disk limits of jobs are enforced by project quotas"
