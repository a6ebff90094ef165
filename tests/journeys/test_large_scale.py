"""Large-scale mode on a running platform: data sent once, two trainings of it, one of them killed on its way."""

from __future__ import annotations

import os
import random
import signal
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.journeys.terminal import aip
from tests.journeys.up import call, first_admin, running, until
from tests.running import printed, processes_of
from training.presets.catalog import PRESETS

pytestmark = pytest.mark.journey
SMALL = {"net_width": 4, "batch_size": 8, "budget_minutes": 20, "checkpoint_minutes": 0.02, "keep_ms": 20}


def shades(path: Path) -> Path:
    """Dark and light pictures."""
    chance = random.Random(5)
    with zipfile.ZipFile(path, "w") as archive:
        for split, count in (("train", 24), ("val", 6)):
            for number in range(count):
                out, shade = BytesIO(), 60 + 100 * (number % 2) + chance.randrange(40)
                Image.new("RGB", (32, 32), (shade, shade, number)).save(out, "PNG")
                archive.writestr(f"{split}/{('dark', 'light')[number % 2]}/{number}.png", out.getvalue())
    return path


def every(**chosen: object) -> list[str]:
    """Every parameter of the classifier, as options of the command."""
    values = {param.name: param.default for param in PRESETS["classify"].parameters} | SMALL | chosen
    words = (f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values.items())
    return [part for word in words for part in ("-p", word)]


@pytest.mark.long
def test_data_sent_once_is_trained_on_twice_and_a_killed_training_goes_on(tmp_path):
    archive = shades(tmp_path / "shades.zip")
    with running(tmp_path / "platform") as up:
        token = first_admin(up)

        def told(*words: str) -> tuple[int, str]:
            client = aip(up.url, token, tmp_path, *words)
            said, _words = client.communicate(timeout=400)
            return client.returncode or 0, said

        def job(number: int) -> dict:
            return call(up.url, token, "GET", f"jobs/{number}/")[1]

        sent = told("upload", "shades", str(archive), "--wait")
        submit = ("train", "submit", "--data", "shades", "--preset", "classify", "--explicit", "--cpus", "0.5")
        first = told(*submit, "first", *every(steps=4), "--wait")
        number = int(told(*submit, "second", *every(), "--retries", "1", "--retry-pause", "0")[1])
        training = call(up.url, token, "GET", f"training/jobs/{number}/")[1]
        home = up.folder / "jobs" / str(training["job"])

        until(lambda: list(home.glob("1/checkpoints/step-*/meta.json")), 120, "A checkpoint")
        saved = int(max(path.parent.name for path in home.glob("1/checkpoints/step-*/meta.json")).split("-")[1])
        lines = processes_of(home.parent).items()  # not what stands around the program, and not what it forked
        os.kill(min(pid for pid, line in lines if "presets.classify" in line and "bwrap" not in line), signal.SIGKILL)
        log = home / "2" / "log.txt"
        until(lambda: log.exists() and "restored from step-" in log.read_text(), 120, "The second attempt")
        assert call(up.url, token, "POST", f"training/jobs/{number}/finish/")[0] == 202
        until(lambda: job(training["job"])["state"] == "finished_early", 120, "The end")

        begun = int(printed(log).split("restored from step-")[1].split(",")[0])
        rows = call(up.url, token, "GET", "training/jobs/")[1]["results"]
        end = job(training["job"])

    assert (sent[0], first[0]) == (0, 0)
    assert begun >= saved > 0
    assert [row["version"] for row in rows] == [1, 1]
    assert (end["attempt"], end["retried"]) == (2, 1)
    assert (home / "2" / "outputs" / "model" / "model.onnx").exists()
