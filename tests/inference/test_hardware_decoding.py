"""Decoding on devices: which are tried, and what happens where one does not open, or fails on the way."""

import subprocess
from pathlib import Path

import av
import pytest

from inference.video import results
from inference.video.watcher import hardware
from tests.inference import watched
from tests.inference.running import set_state

#: Stands in the program's place of hardware.py: a device that opens, and breaks after thirty pictures.
BREAKS = """
from inference.video.watcher.real import *
from inference.video.watcher.real import Failed
count = 0

def chosen():
    return Decoder("cuda")

def decoding(decoder, stream, frame):
    return decoder.kind

def decoded(packet, by):
    global count
    count += 1
    if by == "cuda" and count > 30:
        raise Failed("out of memory")
    return packet.decode()
"""


class Device:
    """A device as FFmpeg opens it."""

    opens = ("qsv",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def create(self, codec: object) -> None:
        if self.kind not in self.opens:
            raise av.error.ExternalError(1, f"no driver for {self.kind}")


def test_only_devices_that_the_job_may_use_are_tried_and_the_first_that_opens_decodes(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "HWAccel", Device)
    monkeypatch.setattr(hardware, "hwdevices_available", lambda: ["cuda", "qsv", "drm"])
    assert hardware.devices({}, tmp_path) == hardware.devices({"CUDA_VISIBLE_DEVICES": "-1"}, tmp_path) == []
    (tmp_path / "renderD128").touch()

    kinds = hardware.devices({"CUDA_VISIBLE_DEVICES": "0"}, tmp_path)
    decoder = hardware.chosen(kinds)

    assert kinds == ["cuda", "qsv"]  # this FFmpeg was built without vaapi
    assert (decoder.kind, decoder.why) == ("qsv", "cuda: no driver for cuda")
    alone = hardware.chosen(["cuda"])
    assert (alone.kind, alone.accel, alone.why) == ("software", None, "cuda: no driver for cuda")


@pytest.mark.django_db
def test_device_that_fails_on_the_way_leaves_the_rest_to_the_processor(alice, tmp_path):
    model, source = watched.detector(alice, tmp_path), watched.video(alice, tmp_path, seconds=6)
    plain, broken = (watched.submitted(alice, model, source, film=False, name=name) for name in ("plain", "broken"))
    said_plain = watched.ran(plain)
    set_state(broken.job, "running")
    argv, env, run = watched.program(broken)
    watcher = Path(run.code) / "inference" / "video" / "watcher"
    (watcher / "hardware.py").rename(watcher / "real.py")
    (watcher / "hardware.py").write_text(BREAKS)

    output = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=300, check=True).stdout

    assert "decoded by software" in said_plain
    assert "decoded by cuda" in output
    assert "cuda failed: out of memory. The processor decodes from here on." in output
    summary, same = results.read(run.outputs), results.load(plain)
    assert (summary["decoder"], same["decoder"], summary["complete"]) == ("software", "software", True)
    assert [summary[name] for name in ("pictures", "lines", "objects")] == [
        same[name] for name in ("pictures", "lines", "objects")
    ]
