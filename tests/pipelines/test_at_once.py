"""Two schedulers and a person at the same run at the same time."""

import threading

import pytest
from django.db import connection

from inference.pipelines import loop, runs, writing
from inference.pipelines.models import PipelineRun, StepRun
from tests.pipelines.made import command, pipeline
from workers.core.models import Job

PATIENCE_S = 60.0


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_who_advance_a_run_and_one_who_skips_a_step_begin_each_item_once(alice, machine):
    steps = {
        "list": {"kind": "items", "with": {"values": list(range(25))}}, "work": command(each="list.items"),
        "last": command(after=["work"]),
    }  # fmt: skip
    run = runs.start(user=alice, version=writing.newest_or_refused(pipeline(alice, steps)), limit=25)
    together, broken = threading.Barrier(3), []

    def act(what):
        try:
            together.wait(PATIENCE_S)
            what()
        except Exception as exc:
            broken.append(exc)
        finally:
            connection.close()

    acts = [
        lambda: loop.advance_run(run.pk),
        lambda: loop.advance_run(run.pk),
        lambda: runs.skip(PipelineRun.objects.get(pk=run.pk), "last"),
    ]
    threads = [threading.Thread(target=act, args=[what], daemon=True) for what in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    loop.advance_run(run.pk)
    assert broken == []
    items = StepRun.objects.filter(run=run, step="work", item__gte=0, state="started")
    assert items.count() == items.values("job").distinct().count() == Job.objects.count() == 25
    assert StepRun.objects.get(run=run, step="last").state == "skipped"
    run.refresh_from_db()
    assert not run.is_due
