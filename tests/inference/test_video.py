"""Watched videos: the real program on small films, what is counted, what a kill changes (nothing), who may do what."""

import json
import signal
import subprocess
import time

import av
import pytest
from django.utils.timezone import now

from aiplatform.lib.errors import DomainError, StillInUse
from inference.registry import retention
from inference.video import analyses, files, results
from inference.video.kind import VideoKind
from inference.video.models import VideoEvent, VideoFile
from inference.video.watcher import pyav
from tests.factories import models as factory
from tests.inference import clips, judged, watched
from tests.inference.running import set_state
from workers.core.models import Attempt

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(alice, tmp_path):
    return watched.detector(alice, tmp_path)


def counted(analysis) -> dict:
    """What a watch counted, without how long that took."""
    content = results.load(analysis)
    return {name: content[name] for name in ("pictures", "events", "objects", "lines", "zones", "intervals", "at")}


def events_of(analysis) -> list[dict]:
    text = (results.outputs(analysis) / "events.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.long
def test_what_walks_is_followed_counted_and_drawn(alice, model, tmp_path):
    analysis = watched.submitted(alice, model, watched.video(alice, tmp_path))

    output = watched.ran(analysis)

    content = results.load(analysis)
    assert analysis.job.state == "succeeded", output
    assert content["objects"] == [{"name": "red", "count": 1}, {"name": "green", "count": 1}], output
    assert content["lines"] == [{"name": "door", "in": 2, "out": 1}]  # it goes down, up, and down again
    crossed = [(round(event.at), event.way) for event in analysis.events.filter(type="crossed")]
    assert crossed == [(2, "in"), (6, "out"), (10, "in")]
    zone = content["zones"][0]
    assert (zone["name"], zone["inside"]) == ("yard", 1)
    assert zone["entered"] - zone["left"] == 1
    assert zone["loitered"] >= 2
    assert sum(row["new"] for row in content["intervals"]) == 2
    assert analysis.summary["events"] == analysis.events.count() == len(events_of(analysis))
    with av.open(str(results.outputs(analysis) / "film.webm")) as film:
        times = [float(frame.pts * film.streams.video[0].time_base) for frame in film.decode(video=0)]
    assert len(times) == content["pictures"] == 120
    assert times == pytest.approx([number / 10 for number in range(120)], abs=0.002)
    detections = (results.outputs(analysis) / "detections.jsonl").read_text().splitlines()
    assert len(detections) == 120
    assert {kind for _number, kind, *_rest in json.loads(detections[50])["boxes"]} == {1, 2}


def test_score_is_the_best_one_of_the_newest_evaluation_where_nobody_gives_one(alice, tmp_path):
    evaluation = judged.evaluation(alice, tmp_path)
    model, source = evaluation.model_version, watched.video(alice, tmp_path)
    best = evaluation.metrics["threshold"]

    assert watched.submitted(alice, model, source).params["min_score"] == best
    assert watched.submitted(alice, model, source, min_score=0.4).params["min_score"] == 0.4
    evaluation.delete()
    assert watched.submitted(alice, model, source).params["min_score"] is None


def test_boxes_lie_where_the_squares_are(alice, model, tmp_path):
    analysis = watched.submitted(alice, model, watched.video(alice, tmp_path, seconds=3))

    output = watched.ran(analysis)

    lines = (results.outputs(analysis) / "detections.jsonl").read_text().splitlines()
    assert len(lines) == 30, output
    for line in map(json.loads, lines[2:]):
        truth = {colour: (x, y) for colour, x, y in clips.walkers(line["at"])}
        for _number, kind, _score, x1, y1, x2, y2 in line["boxes"]:
            left, top = truth[{1: "red", 2: "green"}[kind]]
            assert (x1, y1, x2, y2) == pytest.approx((left, top, left + 16, top + 16), abs=1.5)


def test_killed_watch_goes_on_and_counts_as_if_nothing_had_happened(alice, model, tmp_path):
    source = watched.video(alice, tmp_path, seconds=45)
    complete = watched.submitted(alice, model, source)
    watched.ran(complete)
    broken = watched.submitted(alice, model, source)
    set_state(broken.job, "running")
    argv, env, run = watched.program(broken)
    process = subprocess.Popen(argv, cwd=run.code, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not (run.checkpoints / "latest").exists() and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    VideoKind().reported(broken.job)
    checkpoint = (run.checkpoints / "latest").resolve()
    Attempt.objects.filter(job=broken.job).update(state="lost", ended_at=now())
    Attempt.objects.create(job=broken.job, number=2)
    type(broken.job).objects.filter(pk=broken.job_id).update(attempt_number=2)
    broken.job.refresh_from_db()
    argv, env, run = watched.program(broken, 2, AIP_RESUME_FROM=str(checkpoint))

    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    VideoKind().ended(broken.job, broken.job.attempts.get(number=2))
    broken.refresh_from_db()

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Going on after" in done.stdout
    assert counted(broken) == counted(complete)
    assert events_of(broken) == events_of(complete)
    rows = [list(item.events.order_by("at", "pk").values_list("key", "at", "type")) for item in (complete, broken)]
    assert rows[0] == rows[1]
    for name in ("detections.jsonl",):
        assert (results.outputs(broken) / name).read_bytes() == (results.outputs(complete) / name).read_bytes()
    with av.open(str(results.outputs(broken) / "film.webm")) as film:
        assert sum(1 for _ in film.decode(video=0)) == 450


@pytest.mark.long
def test_only_the_wanted_classes_and_pictures_are_looked_at(alice, model, tmp_path):
    source = watched.video(alice, tmp_path, seconds=6)
    options = {"classes": ["green"], "max_rate": 5, "film": False, "interval_s": 2}
    analysis = watched.submitted(alice, model, source, **options)

    output = watched.ran(analysis)

    content = results.load(analysis)
    assert content["objects"] == [{"name": "green", "count": 1}], output
    assert content["pictures"] == 30
    assert [row["at"] for row in content["intervals"]] == [0, 2, 4]
    assert not content["film"]


@pytest.mark.parametrize(
    "content",
    [
        b"nothing of a video" * 100,
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile /etc/hostname\n",
    ],
    ids=["bytes", "playlist", "list"],
)
def test_what_is_no_video_is_refused_with_a_sentence(alice, model, tmp_path, content):
    file = tmp_path / "odd.mp4"
    file.write_bytes(content)
    analysis = watched.submitted(alice, model, files.store(user=alice, source=file, filename="odd.mp4"))

    output = watched.ran(analysis)

    assert analysis.job.state == "failed"
    assert "It cannot be read as a video" in output
    assert "Traceback" not in output


def test_upload_is_refused_by_name_and_size(alice, tmp_path):
    file = tmp_path / "walk.exe"
    file.write_bytes(b"x")
    with pytest.raises(files.VideoRefused):
        files.store(user=alice, source=file, filename="walk.exe")
    file.write_bytes(b"")
    with pytest.raises(files.VideoRefused):
        files.store(user=alice, source=file, filename="walk.mp4")
    assert not VideoFile.objects.exists()


def test_without_decoder_the_way_to_install_it_is_told(alice, model, tmp_path, monkeypatch):
    source = watched.video(alice, tmp_path, seconds=1)
    monkeypatch.setattr(pyav, "is_missing", lambda: True)

    with pytest.raises(analyses.NoDecoder, match="pip install av"):
        watched.submitted(alice, model, source)


def test_only_detectors_watch(alice, tmp_path):
    other = factory.model_version(alice, tmp_path, name="kinds", task="classification")
    source = watched.video(alice, tmp_path, seconds=1)

    with pytest.raises(analyses.CannotWatch):
        watched.submitted(alice, other, source)


@pytest.mark.parametrize(
    "places",
    [
        {"lines": [{"name": "a", "points": [[0, 0]]}]},
        {"lines": [{"name": "a", "points": [[0.5, 0.5], [0.5, 0.5]]}]},
        {"lines": [{"name": "a", "points": [[0, 0], [2, 1]]}]},
        {"lines": [{"name": "a", "points": [[0, 0], [float("nan"), 1]]}]},
        {"zones": [{"name": "a", "points": [[0, 0], [1, 1]]}]},
        {"zones": [{"name": "a", "points": [[0, 0], [1, 1], [0, 1]], "loiter_s": -1}]},
        {"lines": [watched.DOOR, watched.DOOR]},
        {"lines": [watched.DOOR | {"more": 1}]},
        {"lines": "door"},
        {"line": []},
        [],
        {"lines": [{"name": "", "points": [[0, 0], [1, 1]]}]},
        {"lines": [{"name": f"{n}", "points": [[0, 0], [1, 1]]} for n in range(21)]},
    ],
)
def test_lines_and_zones_that_are_none_are_refused(alice, model, tmp_path, places):
    source = watched.video(alice, tmp_path, seconds=1)

    if places == []:  # nothing is asked for
        assert watched.submitted(alice, model, source, places=places).params["lines"] == []
        return
    with pytest.raises(DomainError) as refused:
        watched.submitted(alice, model, source, places=places)
    assert {error.blamed for error in refused.value.every} == {"places"}


def test_running_watch_holds_its_model_and_its_video(alice, model, tmp_path):
    source = watched.video(alice, tmp_path, seconds=1)
    analysis = watched.submitted(alice, model, source)

    with pytest.raises(StillInUse):
        retention.check_unused(model)
    with pytest.raises(StillInUse):
        files.delete(video=source)
    set_state(analysis.job, "succeeded")
    retention.check_unused(model)
    path = source.path
    files.delete(video=source)
    analysis.refresh_from_db()
    assert (analysis.video, analysis.source_label) == (None, "walk.mp4")
    assert path.exists()  # until the transaction is over


def test_lines_of_a_job_that_are_no_events_become_no_rows(alice, model, tmp_path):
    analysis = watched.submitted(alice, model, watched.video(alice, tmp_path, seconds=1))
    set_state(analysis.job, "running")
    _argv, _env, run = watched.program(analysis)
    good = {"key": "1", "at": 1.5, "type": "crossed", "place": "door", "way": "in", "object": 3, "class_id": 1}
    bad = [
        {}, good | {"key": 5}, good | {"key": "2", "type": "burnt"}, good | {"key": "3", "at": "soon"},
        good | {"key": "4", "object": -1}, good | {"key": "5", "object": 2**40}, good | {"key": "6", "way": "up"},
        [], good | {"key": "a\x00b"},
    ]  # fmt: skip
    lines = [json.dumps(row) for row in (*bad, good, good)]
    (run.outputs / "events.jsonl").write_text("\n".join([*lines, "{", "not json", '{"key": "cut']) + "\n{}")

    VideoKind().reported(analysis.job)

    assert [(row.key, row.class_name) for row in VideoEvent.objects.all()] == [("1", "red")]
