import json

import pytest

from tests.factories import work
from workers.models import MetricPoint
from workers.output import metrics

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def running(alice, cluster):
    return work.job(alice, cluster, state="running")


def report(job, *rows, raw=b""):
    with work.run_dir(job).metrics.open("ab") as file:
        for row in rows:
            file.write(json.dumps(row).encode() + b"\n")
        file.write(raw)


def attempt(job):
    return job.attempts.get()


def test_metrics_ingest_counts_each_line_once_however_often_read(running):
    report(running, {"step": 1, "time": 1.7e9, "train/loss": 0.5}, {"step": 2, "time": 1.7e9, "train/loss": 0.4})
    stale = attempt(running)

    first = metrics.ingest(attempt(running))
    again = metrics.ingest(attempt(running))
    late = metrics.ingest(stale)  # another agent with an older row

    assert (first, again, late) == (2, 0, 0)
    assert metrics.curves(running).series == {"train/loss": [(1, 0.5), (2, 0.4)]}


def test_metrics_ingest_waits_for_an_unfinished_line(running):
    report(running, {"step": 1, "val/ap": 0.1}, raw=b'{"step": 2, "val/')
    first = metrics.ingest(attempt(running))
    report(running, raw=b'ap": 0.2}\n')

    assert (first, metrics.ingest(attempt(running))) == (1, 1)


def test_metrics_ingest_passes_over_nonsense(running):
    lines = [b"not json", b"[1, 2]", b'{"step": 1, "train/loss": NaN}', b'{"train/loss": 1e999}', b'{"a": true}']
    lines += [
        b"[" * 100_000,
        b'{"step": 1e300, "ok": 1}',
        b'{"system/cpu": 5}',
        b'{"' + b"k" * 200 + b'": 1}',
        b"\xff\xfe",
    ]
    report(running, raw=b"\n".join(lines) + b"\n")

    assert metrics.ingest(attempt(running)) == 1
    assert metrics.curves(running).keys == ["ok"]


def test_metrics_ingest_gives_progress_to_the_job_and_no_curve(running):
    report(running, {"step": 1, "progress": 0.25, "eta_s": 90, "train/lr": 0.1}, {"step": 2, "progress": 7})

    metrics.ingest(attempt(running))
    running.refresh_from_db()

    assert (running.progress, running.eta_s) == (1.0, 90)
    assert metrics.curves(running).keys == ["train/lr"]


def test_metrics_ingest_gives_the_phase_to_the_job_and_to_those_who_watch(running, monkeypatch):
    nudged = []
    monkeypatch.setattr(metrics.live, "nudge", nudged.append)
    report(running, {"step": 1, "phase": "exporting", "eta_s": 3}, {"step": 2, "phase": "dancing"}, {"phase": ["x"]})

    metrics.ingest(attempt(running))
    running.refresh_from_db()

    assert (running.phase, running.eta_s) == ("exporting", 3)
    assert nudged == [running.pk]
    assert metrics.curves(running).keys == []


def test_metrics_ingest_bounds_a_flood_of_names(running):
    report(running, *({"step": n, f"key{n}": n} for n in range(300)))

    metrics.ingest(attempt(running))

    assert len(metrics.curves(running).keys) == metrics.MOST_KEYS


def test_metrics_curves_are_thinned_and_keep_their_spikes(running):
    MetricPoint.objects.bulk_create(
        MetricPoint(
            attempt=attempt(running), key="loss", step=n, value=50.0 if n == 2_543 else n % 7, at=running.created_at
        )
        for n in range(4_000)
    )

    curves = metrics.curves(running, max_points=200)

    series = curves.series["loss"]
    assert len(series) <= 200
    assert (2_543, 50.0) in series
    assert (series[0][0], series[-1][0]) == (0, 3_999)
    assert curves.newest["loss"] == {"step": 3_999, "value": 3_999 % 7}
    assert [step for step, _ in series] == sorted(step for step, _ in series)


def test_metrics_curves_include_samples_of_the_machine(running):
    metrics.record_system(attempt(running), {"system/cpu": 180.5, "system/gpu0_util": float("nan")})

    curves = metrics.curves(running)
    points, last = metrics.since(running, 0)

    assert curves.series["system/cpu"][0][1] == 180.5
    assert curves.keys == ["system/cpu"]
    assert (points["system/cpu"][0][1], last) == (180.5, curves.last_id)


def test_h04_metrics_ingest_takes_an_endless_report_in_portions(running, monkeypatch):
    monkeypatch.setattr(metrics, "CHUNK", 100)
    monkeypatch.setattr(metrics, "AT_ONCE", 400)
    monkeypatch.setattr(metrics, "MOST_BYTES", 600)
    report(running, raw=b'{"loss": 1}\n' * 100)  # 12 bytes a line

    counts = [metrics.ingest(attempt(running), at_most=400) for _ in range(4)]

    assert counts == [40, 16, 0, 0]
