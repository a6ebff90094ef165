"""Watched streams: cameras of this machine that fall silent, hang, lead elsewhere, and come back."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping

import pytest
from django.utils.timezone import now

from accounts.models import Notification
from inference.serving import endpoints
from inference.video import analyses, results
from inference.video.kind import VideoKind
from inference.video.models import VideoAnalysis
from tests.inference import cameras, clips, watched
from tests.inference.running import set_state
from tests.running import free_port
from workers.core.models import Attempt

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("cameras of its own")]
LONG_S = 60.0
MODULES = {"PICTURE_S": "stream.py", "SEGMENT_S": "watch.py"}


@pytest.fixture(autouse=True)
def _allowed(settings):
    settings.STREAM_ALLOWED = ["127.0.0.1"]


@pytest.fixture
def model(alice, tmp_path):
    return watched.detector(alice, tmp_path)


def submitted(owner, model, url: str, **options: object) -> VideoAnalysis:
    params = {"places": {"lines": [watched.DOOR]}, "cpus": 1.0} | options
    analysis = analyses.submit(user=owner, model_version=model, url=url, **params)
    set_state(analysis.job, "running")
    return analysis


@contextlib.contextmanager
def watching(analysis: VideoAnalysis, attempt: int = 1, *, times: Mapping[str, float] | None = None, **env: str):
    """Its program at work, and the port where it is shown; ended with the block.

    Args:
        times: seconds by the name of a constant of the watcher, instead of the values there.
    """
    port = free_port()
    argv, variables, run = watched.program(analysis, attempt, AIP_PORT=str(port), **env)
    for name, seconds in (times or {}).items():
        with (run.code / "inference" / "video" / "watcher" / MODULES[name]).open("a") as module:
            module.write(f"\n{name} = {seconds}\n")
    log = (run.path / "said.txt").open("w+")
    process = subprocess.Popen(argv, cwd=run.code, env=variables, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process, port, run
    finally:
        process.kill()
        process.wait()
        log.close()


def until(right: Callable[[], object], what: str, run) -> None:
    """Wait for what its program brings about."""
    end = time.monotonic() + LONG_S
    while not right():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come about: {(run.path / 'said.txt').read_text()}")
        threading.Event().wait(0.05)


def summary(analysis: VideoAnalysis) -> dict:
    return results.load(analysis)


def finished(process, run) -> str:
    run.path.joinpath("control").write_text("finish")
    assert process.wait(60) == 0, (run.path / "said.txt").read_text()
    return (run.path / "said.txt").read_text()


def pictures_of(port: int, key: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/live.mjpeg", headers={endpoints.KEY_HEADER: key})
    return connection.getresponse()


def reader_of(process) -> int:
    """The process that decodes for a watch."""
    children = f"/proc/{process.pid}/task"
    pids = []
    for task in os.listdir(children):
        with contextlib.suppress(OSError), open(f"{children}/{task}/children") as file:
            pids += [int(pid) for pid in file.read().split()]
    (pid,) = pids
    return pid


@pytest.mark.parametrize("camera", [cameras.MjpegCamera, cameras.RtspCamera])
def test_silent_camera_is_noticed_and_comes_back(alice, model, camera):
    made = camera()
    analysis = submitted(alice, model, made.url)
    with contextlib.closing(made), watching(analysis, times={"PICTURE_S": 2.0}) as (process, _port, run):
        until(lambda: summary(analysis).get("pictures", 0) > 30, "pictures", run)
        made.silent.set()
        until(lambda: summary(analysis).get("silent_since"), "silence", run)
        silent = summary(analysis)
        made.silent.clear()
        until(lambda: summary(analysis)["pictures"] > silent["pictures"] + 20, "images again", run)
        output = finished(process, run)
    VideoKind().ended(analysis.job, analysis.job.attempts.get())
    analysis.refresh_from_db()

    assert silent["silent_why"] == "No picture came for 2 s."
    assert "Pictures come again after" in output
    content = summary(analysis)
    assert (content["complete"], content["silent_since"], content["film"]) == (True, None, True)
    assert analysis.summary["pictures"] == content["pictures"]


def test_camera_that_hangs_is_told_to_its_owner_and_recovers_by_itself(alice, model):
    hangs = threading.Event()
    made = cameras.MjpegCamera(lambda at: clips.walkers(1.0 if hangs.is_set() else at))
    analysis = submitted(alice, model, made.url, still_s=2)
    with contextlib.closing(made), watching(analysis) as (process, _port, run):
        until(lambda: summary(analysis).get("pictures", 0) > 20, "pictures", run)
        hangs.set()
        until(lambda: summary(analysis).get("still"), "a frozen picture", run)
        frozen = summary(analysis)
        VideoKind().reported(analysis.job)
        hangs.clear()
        until(lambda: not summary(analysis)["still"], "new images", run)
        finished(process, run)
    VideoKind().ended(analysis.job, analysis.job.attempts.get())

    events = [event for event in analysis.events.all() if event.type in ("frozen", "over")]
    assert [event.type for event in events[:2]] == ["frozen", "over"]
    assert (events[0].place, events[0].object, events[0].seconds >= 2) == ("", 0, True)
    assert (frozen["still"], frozen["still_since"] > 1.7e9) == ("frozen", True)
    note = Notification.objects.filter(kind="camera").last()
    assert (note.user, "same image" in str(note.text)) == (alice, True)


@pytest.mark.long
def test_line_crossings_of_a_stream_are_told_with_the_time_of_day(alice, model):
    made, before = cameras.RtspCamera(), now()
    analysis = submitted(alice, model, made.url)
    with contextlib.closing(made), watching(analysis) as (process, _port, run):
        until(lambda: summary(analysis).get("events", 0) >= 2, "events", run)
        VideoKind().reported(analysis.job)
        there = analysis.events.count()
        finished(process, run)
    VideoKind().ended(analysis.job, analysis.job.attempts.get())

    events = list(analysis.events.all())
    assert there >= 2
    assert {event.way for event in events} == {"in", "out"}
    assert all(before < event.happened_at < now() for event in events)


def test_decoder_that_hangs_is_ended_and_another_begins(alice, model):
    made = cameras.MjpegCamera()
    analysis = submitted(alice, model, made.url)
    with contextlib.closing(made), watching(analysis, times={"PICTURE_S": 2.0}) as (process, _port, run):
        until(lambda: summary(analysis).get("pictures", 0) > 10, "pictures", run)
        first = reader_of(process)
        os.kill(first, signal.SIGSTOP)
        until(lambda: summary(analysis).get("silent_since"), "silence", run)
        count = summary(analysis)["pictures"]
        until(lambda: summary(analysis)["pictures"] > count + 10, "images again", run)
        second = reader_of(process)
        finished(process, run)

    assert second != first
    assert not os.path.exists(f"/proc/{first}")


def test_live_page_is_less_than_a_second_behind_and_asks_for_a_key(alice, model):
    import io

    import numpy as np
    from PIL import Image

    def across(at: float):  # a red square that needs ten seconds from left to right says what time it is
        yield "red", (at % 10) * 11, 40

    made = cameras.MjpegCamera(across, rate=20)
    analysis = submitted(alice, model, made.url, places={})
    with contextlib.closing(made), watching(analysis) as (process, port, run):
        until(lambda: summary(analysis).get("pictures", 0) > 10, "pictures", run)
        assert pictures_of(port, "wrong").status == 401
        answer = pictures_of(port, endpoints.key_for(analysis.job_id, 1))
        late = []
        while len(late) < 40:
            line = answer.fp.readline()
            if line.lower().startswith(b"content-length:"):
                answer.fp.readline()
                pixels = np.asarray(Image.open(io.BytesIO(answer.fp.read(int(line.split(b":")[1])))), np.int64)
                red = np.argwhere((pixels[50, :, 0] > 150) & (pixels[50, :, 1] < 100))[:, 0]
                if len(red):
                    shown = (red.mean() - 7.5) / 11
                    late.append((time.monotonic() - made.begun - shown + 0.2) % 10 - 0.2)
        answer.close()
        finished(process, run)

    assert answer.headers["Content-Type"].startswith("multipart/x-mixed-replace")
    assert sorted(late)[len(late) // 2] < 1.0, late


@pytest.mark.parametrize("camera", [cameras.MjpegCamera, cameras.RtspCamera])
def test_camera_that_leads_elsewhere_is_not_followed(alice, model, camera):
    made, other = camera(), camera()
    made.redirect = other.url
    analysis = submitted(alice, model, made.url)
    with contextlib.closing(made), contextlib.closing(other), watching(analysis) as (process, _port, run):
        until(lambda: summary(analysis).get("reconnects", 0) >= 1, "another try", run)
        finished(process, run)

    assert made.asked
    assert other.asked == []
    assert not summary(analysis)["pictures"]


def test_stream_inside_the_network_is_refused_by_the_program_too(alice, model, settings):
    made = cameras.MjpegCamera()
    analysis = submitted(alice, model, made.url)
    settings.STREAM_ALLOWED = []  # what a name leads to may change after it was checked
    with contextlib.closing(made), watching(analysis) as (process, _port, run):
        assert process.wait(60) == 1

        assert "AIP_STREAM_ALLOWED" in (run.path / "said.txt").read_text()
    assert made.asked == []


def test_login_of_a_camera_is_used_and_never_said(alice, model):
    made = cameras.MjpegCamera()
    made.login = "cam:pa55 word"
    analysis = submitted(alice, model, made.url.replace("//", "//cam:pa55%20word@"))
    launch = VideoKind().prepare(analysis.job, analysis.job.attempts.get(), watched.program(analysis)[2])
    with contextlib.closing(made), watching(analysis) as (process, _port, run):
        until(lambda: summary(analysis).get("pictures", 0) > 5, "pictures", run)
        output = finished(process, run)

    left = [path.read_text(errors="replace") for path in run.path.rglob("*.json*") if path.is_file()]
    assert "pa55" not in output + "".join(left)
    assert "pa55%20word" in launch.secrets
    assert analysis.source_label == f"http://cam:***@127.0.0.1:{made.port}/stream"


def test_killed_watch_of_a_stream_goes_on_counting(alice, model):
    made = cameras.MjpegCamera()
    analysis = submitted(alice, model, made.url)
    with contextlib.closing(made):
        with watching(analysis, times={"SEGMENT_S": 3.0}) as (process, _port, run):
            until((run.checkpoints / "latest").exists, "a checkpoint", run)
            checkpoint = (run.checkpoints / "latest").resolve()
            process.send_signal(signal.SIGKILL)
            process.wait()
        VideoKind().reported(analysis.job)
        before = json.loads((checkpoint / "state.json").read_text())
        Attempt.objects.filter(job=analysis.job).update(state="lost", ended_at=now())
        Attempt.objects.create(job=analysis.job, number=2)
        type(analysis.job).objects.filter(pk=analysis.job_id).update(attempt_number=2)
        analysis.job.refresh_from_db()
        with watching(analysis, 2, AIP_RESUME_FROM=str(checkpoint)) as (process, _port, run):
            until(lambda: summary(analysis).get("pictures", 0) > before["frames"] + 30, "more pictures", run)
            output = finished(process, run)
    VideoKind().ended(analysis.job, analysis.job.attempts.get(number=2))

    content = summary(analysis)
    assert "Going on after" in output
    assert content["at"] > before["at"]
    assert content["events"] >= before["counts"]["events"]
    events = [json.loads(line) for line in (run.outputs / "events.jsonl").read_text().splitlines()]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert len({event["key"] for event in events}) == len(events)
