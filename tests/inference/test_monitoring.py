"""What services are shown, against what their model learned from; pictures kept by rule."""

import http.client
import json
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from accounts.models import Notification
from inference.kit.models import statistics
from inference.registry import baselines, drift
from inference.registry.baseline_models import ModelBaseline
from inference.registry.models import ModelTask
from inference.serving import endpoints
from inference.serving.feedback import samples
from inference.serving.feedback.models import ServiceSample
from inference.serving.kind import ServiceKind
from inference.serving.monitoring import collection, distributions, notices, results, rollups
from inference.serving.monitoring.models import ServiceStatistics
from inference.serving.server import baseline as program
from tests.factories import datasets as dataset_factory
from tests.factories import models as factory
from tests.inference import pictures, tiny
from tests.inference.asking import call
from tests.inference.conftest import start_server
from tests.inference.running import running_at, set_state
from tests.inference.tallies import tally_of
from workers.core.runs import RunDir

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("a model server of its own")]


@pytest.fixture(autouse=True)
def _nothing_remembered():
    cache.clear()


@pytest.fixture(scope="module")
def port(serve, tmp_path_factory):
    rules = {"AIP_SERVICE_KEY": "secret", "AIP_SERVE_KEEP_BELOW": "101", "AIP_SERVE_KEEP_PERCENT": "0"}
    return serve(tiny.detector(tmp_path_factory.mktemp("monitored")), **rules)


@pytest.fixture
def service(alice, tmp_path, monkeypatch, port):
    made = endpoints.create(user=alice, name="demo", model_version=factory.model_version(alice, tmp_path, name="tiny"))
    running_at(monkeypatch, made, port)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    endpoints.remember_ready(made, 1)
    return made


def counted(service, tally, *, hours_ago=0):
    begins = (now() - timedelta(hours=hours_ago)).replace(minute=0, second=0, microsecond=0)
    return ServiceStatistics.objects.create(
        service=service,
        version=service.model_version,
        slot=f"{service.job_id}:{hours_ago}:{begins.timestamp():.0f}",
        begins_at=begins,
        images=tally["images"],
        tally=tally,
    )


def test_server_counts_what_it_is_shown_and_the_platform_fetches_it(service, alice):
    endpoints.edit(service=service, description="", visibility="private", limits={"keep_below": 100})
    for shift, query in enumerate(("", "", "?score_threshold=0.999")):  # what a caller asks for changes no count
        picture = pictures.with_boxes({(16 + 8 * shift, 32, 48 + 8 * shift, 64): "green"})
        assert call("POST", f"{service.url}/predict{query}", user=alice, body=picture).status == 200

    collection.collect(service)
    collection.collect(service)  # the hour is written over, not added

    rows = list(ServiceStatistics.objects.all())
    tally = drift.add_up(row.tally for row in rows)
    assert tally["images"] == 3
    assert sum(tally["classes"].values()) >= 3
    samples = list(ServiceSample.objects.all())
    assert {(row.why, row.by) for row in samples} == {("low_score", None)}
    assert len(samples) == 3
    assert all(row.answers for row in samples)


def test_server_that_is_stopped_leaves_its_last_counts(alice, tmp_path):
    made = endpoints.create(user=alice, name="demo", model_version=factory.model_version(alice, tmp_path, name="tiny"))
    set_state(made.job, "running")
    attempt = made.job.attempts.get()
    outputs = RunDir.for_attempt(made.job_id, attempt.number).outputs
    outputs.mkdir(parents=True)
    process, port = start_server(tiny.detector(tmp_path / "one"), AIP_OUTPUT_DIR=str(outputs))
    for shift in range(3):
        picture = pictures.with_boxes({(16 + 8 * shift, 32, 48 + 8 * shift, 64): "green"})
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/predict", picture)
        assert connection.getresponse().status == 200
        connection.close()

    process.terminate()
    process.wait(30)
    ServiceKind().ended(made.job, attempt)

    (row,) = ServiceStatistics.objects.all()
    assert (row.service, row.version, row.images) == (made, made.model_version, 3)


@pytest.mark.parametrize("left", [b"", b"[]", b"{", b'{"1": {}}', b'{"%d": 3}' % (3600 * (2**30))])
def test_what_a_server_leaves_is_not_believed(alice, tmp_path, left):
    made = endpoints.create(user=alice, name="demo", model_version=factory.model_version(alice, tmp_path, name="tiny"))
    set_state(made.job, "running")
    outputs = RunDir.for_attempt(made.job_id, 1).outputs
    outputs.mkdir(parents=True)
    (outputs / statistics.LEFT).write_bytes(left)

    ServiceKind().ended(made.job, made.job.attempts.get())

    assert not ServiceStatistics.objects.exists()


def test_hours_that_are_past_are_added_up_to_days(service):
    for hours_ago in range(6):
        counted(service, tally_of(10), hours_ago=hours_ago)
    for hours_ago in range(24 * 5, 24 * 8):
        counted(service, tally_of(10, brightness=hours_ago / 240), hours_ago=hours_ago)
    before = results.compare(service, "month")

    fewer = rollups.roll_up()

    assert ServiceStatistics.objects.count() == 78 - fewer
    assert fewer >= 68  # 72 hours lie in three days, or in four of which one may have an hour alone
    assert rollups.roll_up() == 0
    assert results.compare(service, "month").images == before.images == 780
    assert results.compare(service, "day").images == 60


def test_statistics_and_kept_pictures_are_not_reached_from_outside(service, alice):
    for path in ("statistics", "kept"):
        assert call("GET", f"{service.url}/{path}", user=alice).status == 404
        assert call("POST", f"{service.url}/{path}", user=alice, body=b"").status == 404


def test_rule_does_not_take_what_somebody_found_wrong(service, alice):
    picture = pictures.plain()
    samples.store(holder=service, picture=picture, note="no cat", by=alice)

    samples.store(holder=service, picture=picture, by=None, why="chance")

    row = ServiceSample.objects.get()
    assert (row.why, row.note, row.by) == ("", "no cat", alice)


def test_rule_brings_back_nothing_that_was_annotated_and_leaves_room_for_people(service, alice, monkeypatch):
    row = samples.store(holder=service, picture=pictures.plain(), by=None, why="chance")
    data = dataset_factory.dataset(alice)
    ServiceSample.objects.filter(pk=row.pk).update(dataset=data)
    samples.store(holder=service, picture=pictures.plain(), by=None, why="chance")
    assert ServiceSample.objects.get().dataset == data

    monkeypatch.setattr(samples, "MAX_SAMPLES", 2)
    samples.store(holder=service, picture=pictures.plain("green"), by=None, why="chance")
    with pytest.raises(samples.TooManySamples):
        samples.store(holder=service, picture=pictures.plain("blue"), by=None, why="chance")
    assert samples.store(holder=service, picture=pictures.plain("black"), by=alice).why == ""


def test_pictures_that_a_rule_kept_go_after_their_days(service, alice):
    endpoints.edit(service=service, description="", visibility="private", limits={"keep_days": 2})
    for number, colour in enumerate(("red", "green", "blue")):
        why = "" if colour == "blue" else "chance"
        row = samples.store(holder=service, picture=pictures.plain(colour), by=None if why else alice, why=why)
        ServiceSample.objects.filter(pk=row.pk).update(at=now() - timedelta(days=1 + 2 * number))

    samples.sweep()

    assert sorted(ServiceSample.objects.values_list("why", flat=True)) == ["", "chance"]


def test_service_is_compared_with_its_baseline_else_with_what_it_saw_first(service):
    counted(service, tally_of(300, brightness=0.9))
    assert results.compare(service, "day").against == ""
    counted(service, tally_of(400), hours_ago=24 * 3)
    counted(service, tally_of(400), hours_ago=24 * 4)
    counted(service, tally_of(400, brightness=0.9), hours_ago=24 * 2)
    result = results.compare(service, "day")
    assert (result.against, result.before, result.worst.name) == ("earlier", 800, "brightness")

    values = {"version": service.model_version, "data_name": "cells v1", "images": 300}
    ModelBaseline.objects.create(tally=tally_of(300, brightness=0.9), **values)

    result = results.compare(service, "day")
    assert (result.against, result.data_name, result.worst.value) == ("training", "cells v1", 0.0)


def test_owner_is_told_once_that_pictures_have_changed(service, alice):
    ModelBaseline.objects.create(version=service.model_version, data_name="c", images=300, tally=tally_of(300))
    counted(service, tally_of(300))
    notices.sweep()
    assert not Notification.objects.exists()
    cache.clear()
    ServiceStatistics.objects.all().delete()
    counted(service, tally_of(300, brightness=0.95))

    notices.sweep()
    notices.sweep()
    cache.clear()
    notices.sweep()

    note = Notification.objects.get()
    assert (note.user, str(note.title)) == (alice, "Data drift at demo")
    assert "Brightness" in str(note.text)


def test_owner_is_told_that_pictures_as_a_whole_have_changed_by_how_much_chance_gives(service, alice):
    tally = tally_of(300) | {"chance": {"halves": 150, "rare": 0.01}}
    ModelBaseline.objects.create(version=service.model_version, data_name="c", images=300, tally=drift.validate(tally))
    looks = tally_of(300, brightness=0.51)["looks"]  # half a deviation of the least that is told apart
    counted(service, tally_of(300) | {"looks": looks})

    notices.sweep()

    text = str(Notification.objects.get().text)
    assert "by 0.50 standard deviations; only 1 of 100 equal samples differs by more than 0.10" in text


@pytest.fixture
def learned(alice, service):
    data = dataset_factory.version(dataset_factory.dataset(alice))
    type(service.model_version).objects.filter(pk=service.model_version_id).update(
        dataset_version=data, dataset_label=str(data)
    )
    service.model_version.refresh_from_db()
    return data


def test_baseline_needs_images_that_are_there_for_this_person(service, alice, bob):
    with pytest.raises(baselines.NoBaseline):
        baselines.learn(user=alice, version=service.model_version)


def test_job_counts_the_training_images_and_its_outputs_are_kept(service, learned, alice, tmp_path, monkeypatch):
    images = tmp_path / "data" / "images"
    images.mkdir(parents=True)
    rows = []
    for number in range(4):
        (images / f"{number}.png").write_bytes(pictures.with_boxes({(16, 16, 48, 48): "green"}))
        rows.append({"path": f"{number}.png", "split": "train" if number else "test"})
    (images / "0.png").write_bytes(b"no picture")
    (images / "3.png").write_bytes(b"no picture")
    (tmp_path / "data" / "manifest.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("AIP_OUTPUT_DIR", str(tmp_path / "out"))
    monkeypatch.setenv("AIP_MODEL_DIR", str(tiny.detector(tmp_path / "model")))
    monkeypatch.setenv("AIP_DATASET_DIR", str(tmp_path / "data"))
    assert program.main() == 0
    tally = json.loads((tmp_path / "out" / "baseline.json").read_text())
    assert tally["images"] == 2  # of three that it learned from one is damaged

    task = baselines.learn(user=alice, version=service.model_version)
    assert task.act == ModelTask.Act.BASELINE
    assert baselines.on_its_way(service.model_version) == task
    baselines.store(task, tally)
    baselines.store(task, {"images": "many"})

    baseline = ModelBaseline.objects.get()
    assert (baseline.images, baseline.data_name) == (2, service.model_version.dataset_label)


def test_page_states_one_result(service, alice, client):
    client.force_login(alice)

    def status():
        page = client.get(reverse("inference:service-monitoring", args=[service.pk]))
        return page.context["status"] | {"charts": len(page.context["rows"])}

    assert status() == {"code": "idle", "hue": "info", "charts": 0}
    counted(service, tally_of(40))
    assert status()["code"] == "no_reference"
    baseline = ModelBaseline.objects.create(
        version=service.model_version, data_name="cells v1", images=300, tally=tally_of(300)
    )
    assert status() == {"code": "collecting", "hue": "info", "charts": 8}
    assert (
        "Collecting: 40 of 100 images"
        in client.get(reverse("inference:service-monitoring", args=[service.pk])).content.decode()
    )
    counted(service, tally_of(200), hours_ago=1)
    assert status()["code"] == "steady"
    ModelBaseline.objects.filter(pk=baseline.pk).update(tally=tally_of(300, brightness=0.9))
    assert (status()["code"], "Brightness" in status()["names"]) == ("other", True)


def test_distributions_have_units_and_both_sides(service):
    bright = next(
        row for row in drift.compare(tally_of(300), tally_of(300, brightness=0.9)) if row.name == "brightness"
    )

    chart = distributions.chart(bright)

    assert (chart.across_label, chart.up_label) == ("Brightness (%)", "Images (%)")
    assert [key.text for key in chart.keys] == ["Period", "Reference"]
    assert [tick.text for tick in chart.across] == ["0", "25", "50", "75", "100"]
    assert chart.bars[9].title == "Period: 100.0 % · Reference: 0.0 %"
    assert not distributions.chart(drift.compare(statistics.empty(), tally_of(9))[2]).lines


def test_pages_and_api_show_it_to_who_may_change_the_service(service, learned, alice, bob, client):
    endpoints.edit(service=service, description="", visibility="public")
    counted(service, tally_of(300, classes=("one", "two")))
    ModelBaseline.objects.create(version=service.model_version, data_name="cells v1", images=300, tally=tally_of(300))
    page = reverse("inference:service-monitoring", args=[service.pk])
    client.force_login(bob)
    assert client.get(page).status_code == 404
    stranger, api = APIClient(), APIClient()
    stranger.force_authenticate(bob)
    api.force_authenticate(alice)
    assert stranger.get(f"/api/v1/services/{service.pk}/monitoring/").status_code == 403
    client.force_login(alice)

    shown = client.get(page).content.decode()
    content = api.get(f"/api/v1/services/{service.pk}/monitoring/?span=week").json()

    assert "Very different" in shown
    assert (content["images"], content["against"], content["drifts"][0]["change"]) == (300, "training", "other")
    assert content["drifts"][0]["bins"] == ["one", "two"]
    assert (content["looks"]["change"], content["looks"]["apart"]) == ("unknown", 0.0)
    assert "Drift detected: Predicted classes" in shown
    assert "Distance to the reference" in shown
    assert "Expected by chance" not in shown  # nobody tried what chance gives
    made = api.post(f"/api/v1/model-versions/{service.model_version_id}/baseline/")
    assert (made.status_code, made.json()["act"]) == (202, "baseline")
    client.post(reverse("inference:service-baseline", args=[service.pk]))
    assert ModelTask.objects.filter(act="baseline").count() == 2
    assert "Computing training statistics" in client.get(page).content.decode()
