"""Outputs of an earlier job as inputs of a later one."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from aiplatform.lib.errors import Invalid
from tests.factories import work
from tests.running import printed
from tests.workers.launched import ended, node, placed
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.execution import earlier_outputs, launch
from workers.jobs import following
from workers.jobs.following import Following
from workers.jobs.forms import following as forms

__all__ = ["node", "placed"]  # fixtures

pytestmark = pytest.mark.django_db

READS = (
    "import json, os, pathlib\n"
    "rows = json.loads(os.environ['AIP_INPUTS'])\n"
    "print([(row['job'], row['name']) for row in rows])\n"
    "print(pathlib.Path(os.environ['AIP_INPUT_DIR'], 'weights.txt').read_text())\n"
)


def left_by(owner, cluster, text="whole", *, attempt=1, state="succeeded"):
    """A job that is over and left a file."""
    job = work.job(owner, cluster, name="first", state=state)
    outputs = RunDir.for_attempt(job.pk, attempt).outputs
    outputs.mkdir(parents=True)
    (outputs / "weights.txt").write_text(text)
    return job


def test_job_reads_the_outputs_of_the_job_that_it_follows(placed, alice, cluster):
    first = left_by(alice, cluster)
    RunDir.for_attempt(first.pk, 2).outputs.mkdir(parents=True)  # of an attempt that was restored and never completed
    job, attempt = placed([sys.executable, "-c", READS])
    following.save(job, Following(outputs_of=[first.pk]))

    launch.start(attempt.pk)
    record = ended(job)

    run = RunDir.for_attempt(job.pk, 1)
    assert (record["code"], printed(run.log)) == (0, f"[({first.pk}, 'first')]\nwhole\n")
    assert (run.inputs / f"job-{first.pk}" / "weights.txt").read_text() == "whole"


def test_job_does_not_start_where_the_outputs_are_gone(placed, alice, cluster):
    first = left_by(alice, cluster)
    job, attempt = placed(["true"])
    following.save(job, Following(outputs_of=[first.pk]))
    shutil.rmtree(RunDir.for_attempt(first.pk, 1).path)

    launch.start(attempt.pk)

    job.refresh_from_db()
    assert job.state == "failed"
    assert f"The outputs of job {first.pk}, which this job reads, no longer exist." in str(job.message)


def test_outputs_are_those_of_own_jobs_and_one_has_to_complete_first(api, alice, bob, cluster, machine_of_jobs):
    running = work.job(alice, cluster, state="running")
    others = left_by(bob, cluster)
    sent = {"command": "true", "cpus": 1}

    refused = api.post("/api/v1/commands/", sent | {"outputs_of": [others.pk]}, format="json").json()
    taken = api.post("/api/v1/commands/", sent | {"outputs_of": [running.pk]}, format="json").json()

    assert refused["errors"]["outputs_of"] == [f"You have no job {others.pk}. Enter the number of one of your jobs."]
    rows = Job.objects.get(pk=taken["id"]).dependencies.values_list("on_id", "needs", "outputs")
    assert list(rows) == [(running.pk, "success", True)]


def test_end_is_enough_where_it_is_named_too(alice, cluster):
    failed = left_by(alice, cluster, state="failed")

    with pytest.raises(Invalid, match="did not complete"):
        following.check(alice, Following(outputs_of=[failed.pk]))
    following.check(alice, Following(outputs_of=[failed.pk], after_end=[failed.pk]))

    assert Following(outputs_of=[1], after_end=[1]).needs() == {1: "end"}


@pytest.fixture
def machine_of_jobs():
    return work.node(cores=8)


def test_variables_name_each_folder(placed, alice, cluster):
    jobs = [left_by(alice, cluster, text) for text in "ab"]
    job, attempt = placed([sys.executable, "-c", "import os; print(os.environ['AIP_INPUTS'])"])
    following.save(job, Following(outputs_of=[one.pk for one in jobs]))

    launch.start(attempt.pk)
    ended(job)

    rows = json.loads(printed(RunDir.for_attempt(job.pk, 1).log))
    assert [(row["job"], row["dir"]) for row in rows] == [
        (one.pk, str(RunDir.for_attempt(one.pk, 1).outputs)) for one in jobs
    ]


def test_attempt_that_left_nothing_hides_no_earlier_one(alice, cluster):
    first = left_by(alice, cluster, state="failed")
    RunDir.for_attempt(first.pk, 2).outputs.mkdir(parents=True)  # made for every attempt, before its program begins
    empty = work.job(alice, cluster, name="empty", state="succeeded")
    RunDir.for_attempt(empty.pk, 1).outputs.mkdir(parents=True)

    assert earlier_outputs.folder_of(first) == RunDir.for_attempt(first.pk, 1).outputs
    assert earlier_outputs.folder_of(empty) is None


def test_job_like_another_reads_what_that_one_read(alice, bob, cluster):
    first, before, again = (work.job(alice, cluster, name=name) for name in ("first", "before", "again"))
    following.save(again, Following(outputs_of=[first.pk], after=[before.pk], retries=2))

    assert following.like(again).outputs_of == (first.pk,)
    assert following.like(again).after == ()
    assert forms.initial_of(again)["outputs_of"] == str(first.pk)
    assert forms.followed_by(again) == {"after": str(before.pk), "after_end": "", "outputs_of": str(first.pk)}
    Job.objects.filter(pk=first.pk).update(owner=bob)
    assert following.like(again).outputs_of == ()
