"""Files of Ultralytics, Lightning, Keras, the HuggingFace Trainer and own scripts, as they write them."""

import json
import os
import time

import pytest

from tests.factories import work
from workers.jobs.output import metric_names, metrics
from workers.jobs.output import report_ingestion as reporting
from workers.jobs.output.metric_names import key_of
from workers.jobs.output.reporting.watched import SETTLES_S

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.run_dir(job).outputs.mkdir()
    return job


def write(job, path, text, *, append=False, age_s=0.0, root="outputs"):
    file = work.run_dir(job).path / root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a" if append else "w") as out:
        out.write(text)
    if age_s:
        os.utime(file, (time.time() - age_s,) * 2)
    return file


def take(job, **how):
    reporting._SEARCHES.clear()
    reporting.ingest(job.attempts.get(), **how)
    return metrics.curves(job).series


ULTRALYTICS = """\
                  epoch,      train/box_loss,   metrics/mAP50(B),              lr/pg0
                      1,              1.5101,             0.1211,            0.003
                      2,              1.2202,             0.3522,            0.002
"""


def test_ultralytics_results_become_curves_by_epoch(running):
    write(running, "detect/train/results.csv", ULTRALYTICS)
    first = take(running)
    write(running, "detect/train/results.csv", "                      3,   1.1,    0.5,   0.001\n", append=True)

    series = take(running)

    assert first["train/box_loss"] == [(1, 1.5101), (2, 1.2202)]
    assert series["metrics/mAP50(B)"] == [(1, 0.1211), (2, 0.3522), (3, 0.5)]
    assert sorted(series) == ["lr/pg0", "metrics/mAP50(B)", "train/box_loss"]


def test_lightning_metrics_are_counted_once_though_the_file_is_written_anew(running):
    path = "lightning_logs/version_0/metrics.csv"
    write(running, path, "epoch,step,train_loss\n0,9,0.5\n0,19,0.4\n")
    take(running)
    write(running, path, "epoch,step,train_loss,val_loss\n0,9,0.5,\n0,19,0.4,\n0,19,,0.45\n")
    series = take(running)
    write(running, path, "1,29,0.3,\n", append=True)

    assert series == {"train_loss": [(9, 0.5), (19, 0.4)], "val_loss": [(19, 0.45)]}
    assert take(running)["train_loss"] == [(9, 0.5), (19, 0.4), (29, 0.3)]


def test_lightning_file_that_is_half_written_anew_doubles_nothing(running):
    path = "version_0/metrics.csv"
    write(running, path, "epoch,step,a\n0,1,0.5\n0,2,0.4\n0,3,0.3\n")
    take(running)
    write(running, path, "epoch,step,a,b\n0,1,0.5,\n")  # killed, or looked at, between two rows
    take(running)
    write(running, path, "0,2,0.4,\n0,3,0.3,\n0,3,,9\n", append=True)

    assert take(running) == {"a": [(1, 0.5), (2, 0.4), (3, 0.3)], "b": [(3, 9.0)]}


def test_csv_of_another_run_in_the_same_place_counts_from_its_first_row(running):
    write(running, "results.csv", "epoch,loss\n1,0.9\n2,0.8\n3,0.7\n")
    take(running)
    write(running, "results.csv", "epoch,loss\n1,0.5\n", age_s=2 * SETTLES_S)

    assert take(running)["loss"] == [(1, 0.9), (1, 0.5), (2, 0.8), (3, 0.7)]


def test_keras_history_and_json_lines_become_curves(running):
    write(running, "history.csv", "epoch,accuracy,loss,val_accuracy\n0,0.5,1.2,0.4\n1,0.7,0.9,0.6\n")
    write(running, "work_dirs/vis_data/scalars.jsonl", '{"step": 10, "loss_cls": 0.5, "mode": "train"}\n[1]\nno\n')
    write(running, "nested.jsonl", '{"epoch": 2, "val": {"ap": 0.5, "name": "x"}, "time": 1700000000.5}\n')

    series = take(running)

    assert series["val_accuracy"] == [(0, 0.4), (1, 0.6)]
    assert series["loss_cls"] == [(10, 0.5)]
    assert series["val/ap"] == [(2, 0.5)]
    assert metrics.curves(running).times["val/ap"] == [1700000000.5]


def test_json_lines_of_predictions_are_no_metrics(running):
    rows = "".join(json.dumps({"image": number, "score": 0.5, "box": [1, 2, 3, 4]}) + "\n" for number in range(5000))
    write(running, "predictions.jsonl", rows)

    assert take(running) == {}
    assert running.attempts.get().report_files.get().over


def history(*steps):
    """As the Trainer writes it: losses on the way, an evaluation at each hundredth step."""
    entries = []
    for step in steps:
        entries.append({"epoch": step / 100, "loss": 1 / step, "learning_rate": 0.1, "step": step})
        if step % 100 == 0:
            entries.append({"epoch": step / 100, "eval_accuracy": 0.9, "step": step})
    return json.dumps({"best_metric": None, "epoch": 2.0, "global_step": steps[-1], "log_history": entries})


def test_trainer_states_of_all_checkpoints_are_one_history(running):
    write(running, "checkpoint-100/trainer_state.json", history(50, 100))
    first = take(running)
    write(running, "checkpoint-100/trainer_state.json", history(50, 100)[:-20])  # torn
    write(running, "checkpoint-200/trainer_state.json", history(50, 100, 150, 200))
    os.remove(work.run_dir(running).outputs / "checkpoint-100" / "trainer_state.json")

    series = take(running)

    assert first["train/loss"] == [(50, 0.02), (100, 0.01)]
    assert [step for step, _ in series["train/loss"]] == [50, 100, 150, 200]
    assert series["eval/accuracy"] == [(100, 0.9), (200, 0.9)]


def test_own_report_wins_over_every_file(running):
    place = work.run_dir(running)
    write(running, "results.csv", "epoch,loss,other\n1,0.9,3\n")
    take(running)
    place.metrics.write_text('{"step": 10, "loss": 0.1}\n{"step": 20, "loss": 0.05}\n')
    metrics.ingest(running.attempts.get())
    write(running, "results.csv", "2,0.8,4\n", append=True)

    series = take(running)

    assert series == {"loss": [(10, 0.1), (20, 0.05)], "other": [(1, 3.0), (2, 4.0)]}


def test_what_two_readers_say_of_one_folder_counts_once(running):
    write(running, "a/metrics.csv", "step,loss\n1,0.9\n")
    write(running, "a/log.jsonl", '{"step": 1, "loss": 0.9, "lr": 0.1}\n')

    assert take(running) == {"loss": [(1, 0.9)], "lr": [(1, 0.1)]}


def test_reports_of_two_folders_stand_apart(running):
    write(running, "fold-1/metrics.csv", "step,loss\n1,0.9\n")
    write(running, "fold-2/metrics.csv", "step,loss\n1,0.8\n")
    write(running, "validation/metrics.csv", "step,loss\n1,0.7\n")
    write(running, "train/metrics.csv", "step,train/loss\n1,0.6\n")

    assert take(running) == {
        "loss": [(1, 0.9)], "fold-2/loss": [(1, 0.8)], "val/loss": [(1, 0.7)], "train/loss": [(1, 0.6)],
    }  # fmt: skip


def test_files_that_came_with_the_code_are_no_report_of_this_run(running):
    write(running, "runs/old/metrics.csv", "step,loss\n1,0.9\n", root="code", age_s=3600)
    write(running, "runs/new/metrics.csv", "step,loss\n1,0.5\n", root="code")

    assert take(running) == {"loss": [(1, 0.5)]}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Loss/train", "Loss/train"), ("metrics/mAP50-95(B)", "metrics/mAP50-95(B)"), ("a:b|c", "a:b|c"),
        ("/lead", "/lead"), ("  x ", "x"), ("system/cpu", "_system/cpu"), ("损失/平均", "损失/平均"), ("", ""),
    ],
)  # fmt: skip
def test_keys_follow_the_rules_of_curves(name, key):
    assert key_of(name) == key
    assert key == "" or metric_names.is_name(key)


def test_long_keys_stay_apart():
    one, other = key_of("x" * 100 + "1"), key_of("x" * 100 + "2")

    assert one != other
    assert len(one) == len(other) == 60


@pytest.mark.parametrize(
    "pair", [("../../etc", "..|..|etc"), ("a\nb", "a\tb"), ("损" * 61, "损" * 62), ("<b>", '"b"'), ("-", ".")]
)
def test_names_that_no_curve_can_have_get_keys_of_their_own(pair):
    keys = [key_of(name) for name in pair]

    assert keys[0] != keys[1]
    assert all(metric_names.is_name(key) for key in keys)
