import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests.factories import curves, work
from workers.core.models import Curve
from workers.jobs.output import curve_rows, metric_names, metrics, point_files

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


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

    assert metrics.ingest(attempt(running)) == 5
    curves = metrics.curves(running)
    assert sorted(curves.keys) == ["_system/cpu", metric_names.key_of("k" * 200), "ok", "train/loss"]
    assert [value for _step, value in curves.series["train/loss"]] == [None, None]


def test_metrics_ingest_gives_progress_to_the_job_and_no_curve(running):
    report(running, {"step": 1, "progress": 0.25, "eta_s": 90, "train/lr": 0.1}, {"step": 2, "progress": 7})

    metrics.ingest(attempt(running))
    running.refresh_from_db()

    assert (running.progress, running.eta_s) == (0.99, 90)  # it still runs
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

    assert len(metrics.curves(running).keys) == metrics.MAX_KEYS


def test_metrics_curves_are_thinned_and_keep_their_spikes(running):
    curves.report(attempt(running), "loss", ((n, 50.0 if n == 2_543 else n % 7) for n in range(4_000)))

    found = metrics.curves(running, max_points=200)

    series = found.series["loss"]
    assert len(series) <= 200
    assert (2_543, 50.0) in series
    assert (series[0][0], series[-1][0]) == (0, 3_999)
    assert found.newest["loss"] == {"step": 3_999, "value": 3_999 % 7}
    assert [step for step, _ in series] == sorted(step for step, _ in series)


def test_metrics_curves_include_samples_of_the_machine(running):
    metrics.record_system(attempt(running), {"system/cpu": 180.5, "system/gpu0_util": float("nan")})

    found = metrics.curves(running)
    points, counts = metrics.since(running, {})

    assert found.series["system/cpu"][0][1] == 180.5
    assert found.keys == ["system/cpu"]
    assert (points["system/cpu"][0][1], sum(counts.values())) == (180.5, found.last_id)


def test_h04_metrics_ingest_takes_an_endless_report_in_portions(running, monkeypatch):
    monkeypatch.setattr(metrics, "CHUNK", 100)
    monkeypatch.setattr(metrics, "AT_ONCE", 400)
    monkeypatch.setattr(metrics, "MAX_BYTES", 600)
    report(running, raw=b'{"loss": 1}\n' * 100)  # 12 bytes a line

    counts = [metrics.ingest(attempt(running), at_most=400) for _ in range(4)]

    assert counts == [40, 16, 0, 0]


def test_metrics_of_a_killed_process_are_written_over_and_count_once(running, monkeypatch):
    """It died between the file and the row; what it wrote may be cut anywhere."""
    report(running, {"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.0})
    monkeypatch.setattr(curve_rows, "save", lambda _owner, _changed: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        metrics.ingest(attempt(running))
    monkeypatch.undo()
    file = point_files.path(running.pk, 1, "loss")
    with file.open("r+b") as torn:
        torn.truncate(37)

    assert metrics.ingest(attempt(running)) == 2

    assert metrics.curves(running).series == {"loss": [(1, 3.0), (2, 2.0)]}
    kept = Curve.objects.get()
    assert (kept.count, kept.value, kept.step) == (2, 2.0, 2)
    assert (kept.lowest, kept.lowest_step, kept.highest, kept.highest_step) == (2.0, 2, 3.0, 1)


def test_metrics_ingest_counts_on_where_lines_name_no_step(running):
    report(running, {"step": 7, "loss": 1.0}, {"loss": 0.5})
    metrics.ingest(attempt(running))
    report(running, {"loss": 0.25})

    metrics.ingest(attempt(running))

    assert [step for step, _value in metrics.curves(running).series["loss"]] == [7, 8, 9]


def test_metrics_since_gives_what_is_new_or_says_that_it_is_too_much(running):
    report(running, *({"step": n, "a": n, "b": n} for n in range(5)))
    metrics.ingest(attempt(running))

    new, known = metrics.since(running, {"a": 4}, limit=6)
    flood, all_known = metrics.since(running, {}, limit=9)

    assert {key: [step for step, _value, _at in points] for key, points in new.items()} == {
        "a": [4],
        "b": [0, 1, 2, 3, 4],
    }
    assert flood is None
    assert known == all_known == metrics.counts(running) == {"a": 5, "b": 5}
    assert metrics.since(running, all_known)[0] == {}


def test_metrics_of_names_that_look_alike_lie_apart(running):
    report(running, {"step": 1, "a/b": 1.0, "a%2Fb": 2.0}, {"step": 2, "a/b": 3.0, "a%2Fb": 4.0})

    metrics.ingest(attempt(running))

    assert metrics.curves(running).series == {"a/b": [(1, 1.0), (2, 3.0)], "a%2Fb": [(1, 2.0), (2, 4.0)]}


def test_points_that_a_power_cut_left_unwritten_are_passed_over(tmp_path):
    file = tmp_path / "loss.points"
    point_files.write(file, 2, [(3, 0.5, 1.7e9)])  # the two before were never written

    assert point_files.read(file, 4)["step"].tolist() == [3]
    assert point_files.read(tmp_path / "none.points", 4).tolist() == []


def test_points_of_names_that_look_alike_lie_apart(running):
    names = ["a/b", "a%2Fb", "a%252Fb", "A/b", "a b", "a%20b", "a+b"]
    report(running, {"step": 1, **{name: place for place, name in enumerate(names)}})

    metrics.ingest(attempt(running))

    assert metrics.curves(running).series == {name: [(1, place)] for place, name in enumerate(names)}


def test_metrics_of_a_curve_without_end_are_kept_up_to_a_number_of_points(running, monkeypatch):
    monkeypatch.setattr(curve_rows, "MAX_KEPT_BYTES", 3)
    report(running, *({"step": step, "a": step, "b": -step} for step in range(2)))
    metrics.ingest(attempt(running))
    report(running, *({"step": step, "a": step} for step in range(2, 9)))
    metrics.ingest(attempt(running))

    found = metrics.curves(running)
    assert found.series == {"a": [(0, 0), (1, 1), (2, 2)], "b": [(0, 0), (1, -1)]}
    assert found.newest["a"] == {"step": 8, "value": 8}
    assert Curve.objects.get(key="a").highest == 8
    assert metrics.since(running, metrics.counts(running))[0] == {}


@pytest.mark.parametrize("key", ["val/ap", "a b@c%(d)+-", "x" * 60, ".."])
def test_points_of_every_name_lie_in_the_folder_of_their_attempt(key):
    assert point_files.path(1, 2, key).parent == point_files.folder(1, 2)
    assert point_files.path(1, 2, key).resolve().parent == point_files.folder(1, 2).resolve()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("val 损失/平均", "val 损失/平均"),
        ("loss:val", "loss:val"),
        ("top-5 [%]", "top-5 [%]"),
        ("system/cpu", "_system/cpu"),
    ],
)
def test_metrics_keep_their_names_in_any_script(running, name, key):
    report(running, {"step": 1, name: 0.5})

    metrics.ingest(attempt(running))

    assert metrics.curves(running).series == {key: [(1, 0.5)]}


def test_metrics_with_names_that_no_curve_can_have_are_not_dropped(running):
    names = ["a\nb", "a\tb", "x" * 100, "损" * 100, '"quoted"']
    report(running, {"step": 1, **dict.fromkeys(names, 0.5)})

    metrics.ingest(attempt(running))

    found = metrics.curves(running)
    assert len(found.series) == len(names)
    assert set(found.series) == {metric_names.key_of(name) for name in names}


@pytest.mark.parametrize(
    ("reported", "latest"),
    [
        ([(1, 0.9), (2, 0.5)], (2, 0.5)),
        ([(10, 0.1), (5, 0.7)], (10, 0.1)),
        ([(3, 0.2), (3, 0.4)], (3, 0.4)),
    ],
)
def test_latest_value_is_that_of_the_highest_step(running, reported, latest):
    for step, value in reported:
        metrics.add(attempt(running), [("loss", step, value, NOON + timedelta(seconds=step % 3))])

    assert metrics.curves(running).newest["loss"] == {"step": latest[0], "value": latest[1]}


def test_steps_that_a_resumed_run_writes_again_count_once():
    points = np.array([(1, 9.0, 1), (2, 8.0, 2), (3, 7.0, 3), (2, 6.0, 4), (3, 5.0, 5), (4, 4.0, 6)], point_files.POINT)

    kept = metrics.without_repeated(points)

    assert list(zip(kept["step"].tolist(), kept["value"].tolist(), strict=True)) == [
        (1, 9.0),
        (2, 6.0),
        (3, 5.0),
        (4, 4.0),
    ]
