"""Processed images wrongly: kept, shown to the owner, made a dataset with the answers as a draft."""

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from aiplatform.lib.errors import Invalid
from aiplatform.lib.wording import Message
from annotation.models import AnnotationSet
from datasets.models import Dataset, DatasetVersion, Import, Upload
from datasets.services import imports
from inference.serving import endpoints
from inference.serving.feedback import samples
from inference.serving.feedback.models import ServiceSample
from tests.factories import models as factory
from tests.inference import pictures

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def service(alice, tmp_path):
    return endpoints.create(user=alice, name="demo", model_version=factory.model_version(alice, tmp_path))


@pytest.fixture
def name_of_class(service):
    return service.model_version.classes[0]["name"]


def picture(number):
    return pictures.with_boxes({(number, 10, number + 20, 40): "red"}, size=(96, 64))


def answer(name, box):
    return {"class_id": 1, "name": name, "score": 0.9, "box": box}


def imported(dataset):
    imports.run(Import.objects.get(dataset=dataset).pk)
    return DatasetVersion.objects.get(dataset=dataset)


def test_ten_wrong_answers_become_an_annotated_dataset(service, alice, name_of_class):
    for number in range(10):
        predictions = [answer(name_of_class, [number, 10, number + 20, 40]), answer("unheard of", [1, 1, 9, 9])]
        samples.store(holder=service, picture=picture(number), answers=predictions, by=alice)

    dataset = samples.annotate(holder=service, name="back", by=alice)

    version = imported(dataset)
    assert (version.state, version.image_count, version.annotation_count, version.annotated) == ("ready", 10, 10, True)
    drawn = json.loads((version.path / "annotations.json").read_text())["annotations"]
    assert sorted(shape["bbox"] for shape in drawn) == [[number, 10, 20, 30] for number in range(10)]
    assert samples.waiting(service) == []
    assert (version.is_draft, str(version.story)) == (True, "Draft from wrong predictions of demo")
    with pytest.raises(samples.NoSamples):
        samples.annotate(holder=service, name="again", by=alice)


def test_draft_leads_to_annotation_in_one_request(client, service, alice, name_of_class):
    samples.store(holder=service, picture=picture(1), answers=[answer(name_of_class, [1, 10, 20, 40])], by=alice)
    version = imported(samples.annotate(holder=service, name="back", by=alice))
    client.force_login(alice)

    shown = client.get(reverse("datasets:detail", args=[version.dataset_id])).context["offers"][0]
    answered = client.post(shown.url, shown.fields)

    made = AnnotationSet.objects.get(source=version)
    assert shown.name == "annotate"
    assert answered.headers["Location"] == reverse("annotation:task-list", args=[made.project_id, made.pk])
    assert (made.project.name, made.with_shapes) == ("back", True)
    DatasetVersion.objects.filter(pk=version.pk).update(story=Message())
    offered = client.get(reverse("datasets:detail", args=[version.dataset_id])).context["offers"]
    assert [offer.fields for offer in offered if offer.name == "annotate"] == [{}]


def test_chosen_pictures_alone_become_a_dataset(client, service, alice):
    first, second = (samples.store(holder=service, picture=picture(number), by=alice) for number in (1, 2))
    client.force_login(alice)

    client.post(reverse("inference:service-samples", args=[service.pk]), {"name": "back", "samples": [second.pk]})

    assert imported(Dataset.objects.get()).image_count == 1
    assert samples.waiting(service) == [first]


def test_answers_without_places_give_pictures_alone(service, alice):
    samples.store(holder=service, picture=picture(1), answers=[{"name": "cat", "score": 1}], by=alice)

    dataset = samples.annotate(holder=service, name="back", by=alice)

    version = imported(dataset)
    assert (version.image_count, version.annotated) == (1, False)


@pytest.mark.parametrize(
    "box",
    [[5, 5, 5, 9], [0, 0, "a", 3], [200, 200, 300, 300], [1, 2, 3], None],
)
def test_odd_boxes_are_no_draft(service, alice, name_of_class, box):
    samples.store(holder=service, picture=picture(1), answers=[answer(name_of_class, box)], by=alice)

    dataset = samples.annotate(holder=service, name="back", by=alice)

    assert not imported(dataset).annotated


def test_outlines_are_drafts_as_well(service, alice, name_of_class):
    ring = [20.0, 10.0, 40.0, 10.0, 40.0, 40.0]
    predictions = [answer(name_of_class, [20, 10, 40, 40]) | {"polygon": [ring]}]
    samples.store(holder=service, picture=picture(20), answers=predictions, by=alice)

    version = imported(samples.annotate(holder=service, name="back", by=alice))

    (drawn,) = json.loads((version.path / "annotations.json").read_text())["annotations"]
    assert drawn["segmentation"] == [ring]


def test_classes_of_whole_pictures_are_drafts_as_well(alice, tmp_path):
    version = factory.model_version(alice, tmp_path, name="sorter", task="classification")
    first, second = (entry["name"] for entry in version.classes[:2])
    service = endpoints.create(user=alice, name="sorter", model_version=version)
    for number, name in enumerate((first, second, first)):
        predictions = [{"name": name, "score": 0.6}, {"name": second, "score": 0.1}]
        samples.store(holder=service, picture=picture(number), answers=predictions, by=alice)

    made = imported(samples.annotate(holder=service, name="back", by=alice))

    assert (made.image_count, made.annotated) == (3, True)
    assert {entry["name"] for entry in made.classes} == {first, second}


def test_two_who_annotate_at_once_make_one_dataset(service, alice, monkeypatch):
    samples.store(holder=service, picture=picture(1), by=alice)
    rows = samples.waiting(service)
    samples.annotate(holder=service, name="back", by=alice)
    monkeypatch.setattr(samples, "waiting", lambda holder: rows)

    with pytest.raises(samples.NoSamples):
        samples.annotate(holder=service, name="again", by=alice)

    assert not Dataset.objects.filter(name="again").exists()
    assert Upload.objects.count() == 1


def test_full_disk_leaves_all_pictures_waiting(service, alice, monkeypatch):
    samples.store(holder=service, picture=picture(1), by=alice)

    def full(entries):
        yield b"PK"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(samples.zips, "blocks", full)
    with pytest.raises(OSError, match="No space"):
        samples.annotate(holder=service, name="back", by=alice)

    assert len(samples.waiting(service)) == 1
    assert not Dataset.objects.filter(name="back").exists()
    assert not Upload.objects.exists()
    monkeypatch.undo()
    assert imported(samples.annotate(holder=service, name="back", by=alice)).image_count == 1


def test_same_picture_is_kept_once_with_what_was_said_last(service, alice):
    for note in ("first", "second"):
        samples.store(holder=service, picture=picture(1), note=note, by=alice)

    (row,) = samples.waiting(service)
    assert row.note == "second"
    assert row.file.read_bytes() == picture(1)


def test_what_is_no_picture_or_too_much_is_refused(service, alice, monkeypatch):
    for data, answers, field in (
        (b"<svg/>", [], "image"),
        (picture(1)[:100], [], "image"),
        (picture(1), {"a": 1}, "answers"),
        (picture(1), [1], "answers"),
        (picture(1), [answer("a", [float("nan"), 0, 1, 1])], "answers"),
        (picture(1), [{"note": "x" * 1_000_001}], "answers"),
        (picture(1), [{}] * 2001, "answers"),
    ):
        with pytest.raises(Invalid) as refused:
            samples.store(holder=service, picture=data, answers=answers, by=alice)
        assert refused.value.blamed == field
    monkeypatch.setattr(samples, "MAX_BYTES", 10)
    with pytest.raises(Invalid):
        samples.store(holder=service, picture=picture(1), by=alice)
    monkeypatch.undo()
    monkeypatch.setattr(samples, "MAX_SAMPLES", 1)
    samples.store(holder=service, picture=picture(1), by=alice)
    with pytest.raises(samples.TooManySamples):
        samples.store(holder=service, picture=picture(2), by=alice)
    assert ServiceSample.objects.count() == 1


def test_old_pictures_and_those_of_deleted_services_go(service, alice):
    sample = samples.store(holder=service, picture=picture(1), by=alice)
    samples.sweep()
    assert sample.file.exists()
    ServiceSample.objects.update(at=now() - timedelta(days=91))
    samples.sweep()
    assert not sample.file.exists()
    other = samples.store(holder=service, picture=picture(2), by=alice)
    endpoints.delete(service=service, by=alice)
    samples.sweep()
    assert not other.file.exists()


def test_api_takes_feedback_of_callers_and_shows_it_to_the_owner_alone(service, api, alice, bob):
    stranger = APIClient()
    stranger.force_authenticate(bob)
    route = f"/api/v1/services/{service.pk}"

    def sent(client, **fields):
        file = SimpleUploadedFile("a.png", picture(1), "image/png")
        return client.post(f"{route}/feedback/", {"image": file, **fields}, format="multipart")

    assert sent(stranger).status_code == 404
    assert stranger.get(f"{route}/samples/").status_code == 404
    assert sent(api, answers="{").status_code == 400
    assert api.post(f"{route}/feedback/", {}, format="multipart").status_code == 400
    assert sent(api, answers='[{"name": "a"}]', note="a shadow").status_code == 201
    endpoints.edit(service=service, description="", visibility="public")
    assert sent(stranger, note="mine too").status_code == 201
    assert stranger.get(f"{route}/samples/").status_code == 403
    assert stranger.post(f"{route}/annotate/", {"name": "mine"}, format="json").status_code == 403
    (row,) = api.get(f"{route}/samples/").json()
    assert (row["note"], row["by"]) == ("mine too", "bob")
    made = api.post(f"{route}/annotate/", {"name": "back"}, format="json")
    assert (made.status_code, set(made.json())) == (202, {"dataset"})
    assert api.post(f"{route}/annotate/", {"name": "more"}, format="json").status_code == 409


def test_pages_show_remove_and_annotate(client, service, alice, bob):
    first, second = (samples.store(holder=service, picture=picture(number), by=alice) for number in (1, 2))
    ServiceSample.objects.filter(pk=first.pk).update(answers=[{"name": "red", "box": [10, 5, 40, 25]}, {"name": "odd"}])
    page = reverse("inference:service-samples", args=[service.pk])
    client.force_login(bob)
    shown = reverse("inference:service-sample", args=[service.pk, first.pk])
    assert {client.get(page).status_code, client.get(shown).status_code} == {404}
    client.force_login(alice)
    shown_page = client.get(page).content.decode()
    assert "Annotate 2 images" in shown_page
    assert shown_page.count('<rect x="10.0000" y="5.0000" width="30.0000" height="20.0000"') == 1
    answered = client.get(shown)
    assert b"".join(answered.streaming_content) == picture(1)
    assert answered["Content-Type"] == "image/png"
    remove = reverse("inference:service-sample-remove", args=[service.pk, second.pk])
    assert client.post(remove).headers["Location"] == page
    assert client.post(remove).status_code == 404
    assert client.post(page, {"name": ""}).status_code == 422
    progress = client.post(page, {"name": "back"}).headers["Location"]
    assert progress == reverse("datasets:import", args=[Import.objects.get().dataset_id, Import.objects.get().pk])
    assert "No wrong predictions reported" in client.get(page).content.decode()
