"""Pages, API and webhooks of watched videos."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from accounts.models import Delivery
from accounts.services import outbox
from inference.video.models import VideoAnalysis, VideoEvent, VideoFile
from tests.fakes import receivers
from tests.inference import clips, watched

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("a receiver of its own")]


@pytest.fixture
def model(alice, tmp_path):
    return watched.detector(alice, tmp_path)


@pytest.fixture
def other(bob):
    client = APIClient()
    client.force_authenticate(bob)
    return client


def walk(tmp_path, seconds: float = 6) -> SimpleUploadedFile:
    made = clips.clip(tmp_path / "walk.mp4", clips.walkers, seconds=seconds)
    return SimpleUploadedFile("walk.mp4", made.read_bytes(), "video/mp4")


def test_video_api(api, other, alice, model, tmp_path):
    sent = {
        "model_version": "walkers:1", "file": walk(tmp_path), "places": json.dumps(watched.PLACES), "classes": ["red"],
    }  # fmt: skip

    made = api.post("/api/v1/videos/", sent, format="multipart")
    assert made.status_code == 201, made.content
    analysis = VideoAnalysis.objects.get()
    watched.ran(analysis)

    at = f"/api/v1/videos/{analysis.pk}/"
    row = api.get(at).json()
    assert (row["state"], row["summary"]["complete"], row["source"]) == ("succeeded", True, "walk.mp4")
    assert row["params"]["classes"] == [1]
    counts = api.get(f"{at}results/").json()
    assert counts["lines"] == [{"name": "door", "in": 1, "out": 0}]
    happened = api.get(f"{at}events/", {"type": "crossed"}).json()["results"]
    assert [(event["place"], event["way"], event["class_name"]) for event in happened] == [("door", "in", "red")]
    assert api.get(f"{at}events/", {"place": "nowhere"}).json()["results"] == []
    film = api.get(f"{at}film/")
    part = api.get(f"{at}film/", headers={"Range": "bytes=0-99"})
    assert (film.status_code, film["Content-Type"], part.status_code) == (200, "video/webm", 206)
    assert len(b"".join(part.streaming_content)) == 100
    assert b"".join(film.streaming_content)[:4] == b"\x1a\x45\xdf\xa3"
    assert api.get("/api/v1/videos/", {"search": "walk"}).json()["results"][0]["id"] == analysis.pk
    for path in ("", "results/", "events/", "film/"):
        assert other.get(f"{at}{path}").status_code == 404
    assert other.post(f"{at}stop/").status_code == 404
    files = api.get("/api/v1/video-files/").json()["results"]
    assert [(file["name"], file["owner"]) for file in files] == [("walk.mp4", "alice")]
    again = api.post("/api/v1/videos/", {"model_version": "walkers:1", "video": files[0]["id"]}, format="json")
    assert again.status_code == 201
    assert other.delete(f"/api/v1/video-files/{files[0]['id']}/").status_code == 404
    assert api.delete(f"/api/v1/video-files/{files[0]['id']}/").status_code == 409
    wrong = api.post("/api/v1/videos/", {"model_version": "walkers:1"}, format="json")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid")
    odd = {"model_version": "walkers:1", "video": files[0]["id"], "classes": ["horse"], "min_score": 7}
    refused = api.post("/api/v1/videos/", odd, format="json")
    assert refused.status_code in (400, 409)
    assert b"horse" in refused.content
    assert b"0.01" in refused.content


def test_stream_api_keeps_passwords_secret(api, alice, model, settings):
    settings.STREAM_ALLOWED = ["10.0.0.0/8"]
    sent = {"model_version": "walkers:1", "url": "rtsp://cam:pa55word@10.1.2.3/live?key=s3cret"}

    made = api.post("/api/v1/videos/", sent, format="json")

    assert made.status_code == 201, made.content
    analysis = VideoAnalysis.objects.get()
    assert analysis.source_label == "rtsp://cam:***@10.1.2.3/live?…"
    assert "pa55word" not in made.content.decode() + analysis.secrets + json.dumps(analysis.job.spec)
    assert "s3cret" not in made.content.decode() + analysis.secrets + json.dumps(analysis.job.spec)
    for url in ("rtsp://192.168.0.9/live", "http://127.0.0.1/x", "file:///etc/passwd", "rtsp://[::1]/x", "nonsense"):
        refused = api.post("/api/v1/videos/", sent | {"url": url}, format="json")
        assert (refused.status_code, refused.json()["code"]) == (400, "stream_refused"), url


def test_video_pages(client, alice, bob, model, tmp_path):
    client.force_login(alice)
    assert client.get(reverse("inference:video-new"), {"model_version": model.pk}).status_code == 200
    sent = {
        "model_version": model.pk, "interval_s": "2", "film": "on", "cpus": "1", "gpus_per_node": "0",
        "places": json.dumps(watched.PLACES),
    }  # fmt: skip
    assert client.post(reverse("inference:video-new"), sent).status_code == 422
    assert (
        client.post(reverse("inference:video-new"), sent | {"file": walk(tmp_path), "places": "{"}).status_code == 422
    )
    unnamed = client.post(reverse("inference:video-new"), sent | {"file": walk(tmp_path), "places": '{"lines": [{}]}'})
    assert (unnamed.status_code, set(unnamed.context["form"].errors)) == (422, {"places"})
    assert client.post(reverse("inference:video-fit"), sent).status_code == 200
    made = client.post(reverse("inference:video-new"), sent | {"file": walk(tmp_path)})
    analysis = VideoAnalysis.objects.get()
    page = reverse("inference:video-detail", args=[analysis.pk])
    assert made.headers["Location"] == page
    assert b"No tracked objects yet." in client.get(page).content
    watched.ran(analysis)

    shown = client.get(page).content.decode()
    assert "<video" in shown
    assert 'data-seek="' in shown
    assert "Every 2 s" in shown
    film = client.get(reverse("inference:video-file", args=[analysis.pk, "film.webm"]), headers={"Range": "bytes=0-9"})
    assert (film.status_code, film["Content-Type"]) == (206, "video/webm")
    assert len(b"".join(film.streaming_content)) == 10
    assert client.get(reverse("inference:video-file", args=[analysis.pk, "summary.json"])).status_code == 404
    table = client.get(reverse("inference:video-events", args=[analysis.pk, "csv"])).content.decode()
    assert "crossed,door,in,red" in table
    lines = client.get(reverse("inference:video-events", args=[analysis.pk, "json"]))
    assert b'"type": "crossed"' in b"".join(lines.streaming_content)
    again = client.post(reverse("inference:video-again", args=[analysis.pk]), {"places": '{"lines": []}'})
    second = VideoAnalysis.objects.order_by("pk").last()
    assert again.headers["Location"] == reverse("inference:video-detail", args=[second.pk])
    assert (second.params["lines"], second.params["interval_s"], second.video) == ([], 2.0, analysis.video)
    refill = client.get(reverse("inference:video-new"), {"again": analysis.pk}).content.decode()
    assert "&quot;door&quot;" in refill
    assert analysis.job.name in client.get(reverse("inference:video-list")).content.decode()
    assert "walk.mp4" in client.get(reverse("inference:video-file-list")).content.decode()
    client.post(reverse("inference:video-file-delete", args=[analysis.video_id]))
    assert VideoFile.objects.exists()  # the second still needs it
    client.post(reverse("inference:video-stop", args=[second.pk]))
    client.force_login(bob)
    assert client.get(page).status_code == 404
    for name, args in (("video-stop", [analysis.pk]), ("video-again", [analysis.pk])):
        assert client.post(reverse(f"inference:{name}", args=args)).status_code == 404
    assert client.get(reverse("inference:video-events", args=[analysis.pk, "csv"])).status_code == 404
    assert client.post(reverse("inference:video-file-delete", args=[analysis.video_id])).status_code == 404


def test_form_takes_the_chosen_source_alone(client, alice, model, tmp_path):
    client.force_login(alice)
    page, uploaded = reverse("inference:video-new"), watched.video(alice, tmp_path, seconds=1)
    sent = {"model_version": model.pk, "interval_s": "2", "cpus": "1", "gpus_per_node": "0"}
    empty = {
        source: client.post(page, sent | {"source": source}).context["form"].errors
        for source in ("file", "video", "url")
    }
    made = client.post(page, sent | {"source": "video", "video": uploaded.pk, "url": "rtsp://left.over/live"})

    assert {source: set(errors) for source, errors in empty.items()} == {name: {name} for name in empty}
    assert made.status_code == 302
    assert VideoAnalysis.objects.get().video == uploaded
    assert set(client.post(page, sent).context["form"].errors) == {"source"}


def test_each_event_reaches_the_webhook_once_and_again_where_it_does_not_answer(alice, model, tmp_path, settings):
    settings.WEBHOOK_ALLOWED = ["127.0.0.0/8"]
    with receivers.web_server() as hook:
        source = watched.video(alice, tmp_path, seconds=6)
        analysis = watched.submitted(alice, model, source, places={"lines": [watched.DOOR]}, webhook_url=hook.url)
        hook.status = 500

        watched.ran(analysis)
        assert outbox.sweep() == 0
        waiting = Delivery.objects.get(state="waiting")
        hook.status = 200
        Delivery.objects.update(not_before=now())
        assert outbox.sweep() == 1
        assert outbox.sweep() == 0

        content = json.loads(hook.arrived[-1][1])
    event = VideoEvent.objects.get()
    assert (waiting.attempts, content["kind"]) == (1, "video_crossed")
    assert content["title"] == f"red {event.object} crossed door (in)."
    assert (content["facts"]["place"], content["facts"]["way"], content["facts"]["at"]) == ("door", "in", event.at)
    assert content["facts"]["analysis"] == analysis.pk


def test_video_is_uploaded_without_an_analysis(client, alice, tmp_path):
    client.force_login(alice)
    page = reverse("inference:video-file-new")
    assert 'enctype="multipart/form-data"' in client.get(page).content.decode()
    assert client.post(page, {}).status_code == 422
    refused = client.post(page, {"file": SimpleUploadedFile("notes.txt", b"words")})
    assert (refused.status_code, VideoFile.objects.count()) == (422, 0)

    answer = client.post(page, {"file": walk(tmp_path)})

    row = VideoFile.objects.get()
    assert (answer.headers["Location"], row.owner) == (reverse("inference:video-file-list"), alice)
    assert row.path.stat().st_size == row.size_bytes > 0
