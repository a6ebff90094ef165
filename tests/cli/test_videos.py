"""`aip video` against the real API."""

from __future__ import annotations

import json

import av
import pytest

from aiplatform.client import tus
from inference.video.models import VideoAnalysis, VideoFile
from tests.datasets.helpers import uploaded
from tests.inference import clips, watched

pytestmark = pytest.mark.django_db


def test_cli_watches_a_video_shows_counts_and_brings_the_film(real_aip, alice, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(tus, "upload", lambda _client, path, **_: uploaded(alice, path.read_bytes(), path.name).pk)
    watched.detector(alice, tmp_path)
    made = clips.clip(tmp_path / "walk.mp4", clips.walkers, seconds=6)
    places = tmp_path / "places.json"
    places.write_text(json.dumps(watched.PLACES))

    assert real_aip(alice, "video", "list") == 0
    asked = ("--places", places, "--class", "red", "--interval", "2", "--cpus", "1")
    assert real_aip(alice, "video", "start", "walkers:1", made, *asked) == 0
    analysis = VideoAnalysis.objects.get()
    assert analysis.params["classes"] == [1]
    watched.ran(analysis)
    assert real_aip(alice, "video", "show", analysis.pk) == 0
    assert real_aip(alice, "video", "events", analysis.pk, "--type", "crossed") == 0
    assert real_aip(alice, "video", "film", analysis.pk, "--to", tmp_path / "film.webm") == 0
    assert real_aip(alice, "video", "list") == 0
    video = VideoFile.objects.get()
    assert real_aip(alice, "video", "start", "walkers:1", video.pk) == 0
    assert real_aip(alice, "video", "delete", video.pk, "--yes") != 0
    assert real_aip(alice, "video", "stop", VideoAnalysis.objects.order_by("pk").last().pk) == 0
    assert real_aip(alice, "video", "files") == 0
    assert real_aip(alice, "video", "start", "walkers:1", "rtsp://127.0.0.1/x") != 0
    assert real_aip(alice, "video", "start", "walkers:1", tmp_path / "none.mp4") == 5

    printed = capfd.readouterr()
    assert "No videos. Start an analysis: aip video start" in printed.err
    assert "door, in 1, out 0" in printed.out
    assert "crossed in" in printed.out
    assert "AIP_STREAM_ALLOWED" in printed.err
    with av.open(str(tmp_path / "film.webm")) as film:
        assert sum(1 for _ in film.decode(video=0)) == 60
