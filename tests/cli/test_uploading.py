"""`aip train submit --data photos.zip`."""

from __future__ import annotations

import io
import zipfile

import pytest

from aiplatform.client.http import Client
from tests.cli.platform_double import Uploads

pytestmark = pytest.mark.sockets("a platform's double")
ROUTE = "/api/v1/training/planned/"
ROW = {"id": 4, "state": "waiting", "dataset": "photos", "training": None, "sentence": ""}


@pytest.fixture
def photos(tmp_path, platform):
    Uploads(platform)
    file = tmp_path / "photos.zip"
    file.write_bytes(b"PK" + bytes(100))
    return file


def test_submit_uploads_an_archive_and_plans_the_training(aip, platform, photos, capfd):
    platform.answers(f"POST {ROUTE}", ROW, status=201)

    code = aip("train", "submit", "cells", "--preset", "detect", "-p", "epochs=2", "--data", photos)

    sent = platform.asked(f"POST {ROUTE}")[0].json()
    assert code == 0
    assert (sent["preset"], sent["params"], bool(sent["upload"])) == ("detect", {"epochs": 2}, True)
    assert "The training starts automatically when photos is imported:" in capfd.readouterr().err


def test_submit_asks_again_with_the_same_key_while_the_platform_is_away(aip, platform, photos, monkeypatch):
    answers = [
        (503, {"detail": "away"}),
        ConnectionAbortedError,
        (409, {"code": "idempotency_in_progress"}),
        (201, ROW),
    ]

    def answer(_request):
        said = answers.pop(0)
        if said is ConnectionAbortedError:
            raise said
        return said

    platform.routes[f"POST {ROUTE}"] = answer
    monkeypatch.setitem(Client.post.__kwdefaults__, "pause", lambda _seconds: None)

    assert aip("train", "submit", "--preset", "detect", "--data", photos) == 0
    sent = platform.asked(f"POST {ROUTE}")
    assert len(sent) == 4
    assert len({request.headers["idempotency-key"] for request in sent}) == 1
    assert len({request.json()["upload"] for request in sent}) == 1


def test_submit_waits_for_the_data_and_then_for_the_training(aip, platform, photos):
    platform.answers(f"POST {ROUTE}", ROW, status=201)
    platform.answers(f"GET {ROUTE}4/", ROW | {"state": "started", "training": 9})
    platform.answers("GET /api/v1/training/jobs/9/", {"id": 9, "state": "succeeded"})

    assert aip("train", "submit", "--preset", "detect", "--data", photos, "--wait") == 0


def test_submit_says_why_the_training_could_not_begin(aip, platform, photos, capfd):
    platform.answers(f"POST {ROUTE}", ROW, status=201)
    platform.answers(f"GET {ROUTE}4/", ROW | {"state": "failed", "sentence": "No pictures in it."})

    assert aip("train", "submit", "--preset", "detect", "--data", photos, "--wait") == 6
    assert "No pictures in it." in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--preset", "detect", "--data", "./nowhere"], 5),
        (["--command", "true", "--data", "./x.zip"], 2),
        (["--preset", "detect", "--data", "./x.zip", "--data", "cells"], 2),
    ],
)
def test_submit_refuses_data_it_cannot_send(aip, words, code):
    assert aip("train", "submit", *words) == code


def test_download_option_waits_and_brings_the_result_here(aip, platform, tmp_path, capfd):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("model/model.onnx", b"weights")
    platform.answers("GET /api/v1/training/jobs/9/", {"id": 9, "job": 12, "state": "succeeded", "published": True})
    platform.answers("GET /api/v1/jobs/12/files/", [{"path": "model/model.onnx", "size_bytes": 7}])
    platform.answers("GET /api/v1/jobs/12/files/zip/", packed.getvalue())

    assert aip("train", "wait", "9", "--download", tmp_path / "out") == 0
    assert (tmp_path / "out" / "model" / "model.onnx").read_bytes() == b"weights"
    assert "1 file in" in capfd.readouterr().err
