"""A cross-validation at the command line: its folds listed, waited for, followed and brought back together."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from tests.factories import training as factory
from tests.factories import work
from training.runs.models import TrainingJob
from workers.core.models import Job

needs_sockets = pytest.mark.sockets("a platform's double")
FIGURES = [{"key": "val/accuracy", "mean": 0.75, "spread": 0.05, "folds": 2}]


@pytest.mark.django_db
def test_cli_lists_the_folds(real_aip, alice, capfd):
    work.node(cores=4)
    factory.training(alice, data=factory.version(alice, "cells"), preset="detect", params={"folds": 2})
    first = TrainingJob.objects.order_by("pk")[0]
    factory.move(first, "succeeded")
    TrainingJob.objects.filter(pk=first.pk).update(metrics={"val/ap50": 0.8})

    assert real_aip(alice, "train", "folds", first.pk) == 0

    printed = capfd.readouterr().out
    assert "succeeded" in printed
    assert "val/ap50: 0.8 over 1 of the folds" in printed


@pytest.mark.django_db
def test_cli_waits_for_all_folds_of_any_one_and_sums_them_up(real_aip, alice, capfd):
    work.node(cores=4)
    factory.training(alice, data=factory.version(alice, "cells"), preset="detect", params={"folds": 3})
    first, second, third = TrainingJob.objects.order_by("pk")
    for row, value in ((first, 0.7), (second, 0.9)):
        factory.move(row, "succeeded")
        TrainingJob.objects.filter(pk=row.pk).update(metrics={"val/ap50": value})
    factory.move(third, "failed")
    Job.objects.update(published_attempt=1)

    assert real_aip(alice, "train", "wait", second.pk) == 6

    out, err = capfd.readouterr()
    assert "val/ap50: 0.8 ± 0.141 over 2 of the folds" in out
    assert [line.partition(":")[0] for line in err.splitlines()][:3] == ["fold 1", "fold 2", "fold 3"]
    assert f"aip train logs {third.pk}" in err


@pytest.fixture
def folds(platform):
    """Two folds of a training, trainings 9 and 10; the first has to be asked for twice."""
    plain = {"params": {"folds": 2}, "published": True}
    rows = [{"fold": number, "id": 8 + number, "name": f"x_{number}", "state": "succeeded"} for number in (1, 2)]
    platform.answers("GET /api/v1/training/jobs/9/cross-validation/", {"folds": rows, "figures": FIGURES})
    first = {"id": 9, "job": 19, **plain}
    platform.answers("GET /api/v1/training/jobs/9/", first | {"state": "running"}, first | {"state": "succeeded"})
    platform.answers("GET /api/v1/training/jobs/10/", {"id": 10, "job": 20, "state": "succeeded", **plain})
    platform.answers("POST /api/v1/training/jobs/", first | {"state": "queued"}, status=201)
    platform.answers("GET /api/v1/datasets/", {"results": [{"id": 1, "name": "cells"}], "next": None})
    for number in (9, 10):
        text = f"I am {number}\n"
        said = {"text": text, "offset": 0, "next_offset": len(text), "size": len(text), "ended": True}
        platform.answers(f"GET /api/v1/training/jobs/{number}/log/", said)
    return platform


SUBMIT = ("train", "submit", "x", "--preset", "classify", "--data", "7", "-p", "folds=2")


@needs_sockets
def test_submit_with_folds_says_how_many_there_are(aip, folds, capfd):
    assert aip(*SUBMIT) == 0

    out, err = capfd.readouterr()
    assert out == "9\n"
    assert "Queued 2 folds, the first as training 9." in err
    assert not folds.asked("GET /api/v1/training/jobs/10/")


@needs_sockets
def test_submit_follows_every_fold_and_waits_for_all(aip, folds, capfd):
    assert aip(*SUBMIT, "--follow") == 0

    out, err = capfd.readouterr()
    assert out.index("I am 9") < out.index("I am 10") < out.index("val/accuracy: 0.75 ± 0.05 over 2 of the folds")
    assert "Log of fold 2, training 10:" in err


@needs_sockets
@pytest.mark.parametrize(("states", "code"), [(("succeeded", "succeeded"), 0), (("stopped", "succeeded"), 6)])
def test_submit_leaves_with_the_exit_code_of_the_worst_fold(aip, folds, capfd, states, code):
    for number, state in zip((9, 10), states, strict=True):
        row = {"id": number, "job": number, "state": state, "published": True, "params": {"folds": 2}}
        folds.answers(f"GET /api/v1/training/jobs/{number}/", row)

    assert aip(*SUBMIT, "--wait", "--json") == code
    assert json.loads(capfd.readouterr().out)["figures"] == FIGURES


@needs_sockets
def test_download_brings_each_fold_into_a_folder_of_its_own(aip, folds, tmp_path):
    for job in (19, 20):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("model/model.onnx", f"weights of {job}")
        folds.answers(f"GET /api/v1/jobs/{job}/files/", [{"path": "model/model.onnx", "size_bytes": 7}])
        folds.answers(f"GET /api/v1/jobs/{job}/files/zip/", packed.getvalue())

    assert aip("train", "wait", "9", "--download", tmp_path / "out") == 0

    brought = {path.parent.parent.name: path.read_text() for path in (tmp_path / "out").rglob("*.onnx")}
    assert brought == {"fold_1": "weights of 19", "fold_2": "weights of 20"}
