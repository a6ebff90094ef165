"""Every page: works for Alice, 404 for Bob on private things, 403 for Anna, login for strangers."""

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import UserGroup
from aiplatform.lib.errors import Invalid
from inference.evaluation.models import Evaluation
from inference.registry import aliases
from inference.registry.models import Model
from inference.serving import endpoints
from inference.serving.models import Service
from tests.factories import models as factory
from tests.inference import judged, tiny
from tests.inference.running import set_state

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def evaluation(alice, tmp_path):
    return judged.evaluation(alice, tmp_path)


@pytest.fixture
def service(alice, version):
    return endpoints.create(user=alice, name="demo", model_version=version)


OPEN_PAGES = [
    "model-list",
    "model-upload",
    "evaluation-list",
    "evaluation-new",
    "service-list",
    "service-new",
]


@pytest.mark.parametrize("name", OPEN_PAGES)
def test_inference_pages_open_to_all_who_may(name, as_alice, as_anna, client):
    url = reverse(f"inference:{name}")

    assert as_alice.get(url).status_code == 200
    assert as_anna.get(url).status_code == 403
    assert client.get(url).status_code == 302


def private_pages(version, evaluation, service):
    model, mine = version.model_id, evaluation.pk
    yield from (
        ("get", reverse("inference:model-detail", args=[model]), 200),
        ("get", reverse("inference:model-edit", args=[model]), 200),
        ("get", reverse("inference:version-download", args=[version.pk]), 200),
        ("get", reverse("inference:evaluation-detail", args=[mine]), 200),
        ("get", reverse("inference:evaluation-images", args=[mine]), 200),
        ("get", reverse("inference:evaluation-image", args=[mine, "002.png"]), 200),
        ("get", reverse("inference:evaluation-download", args=[mine]), 200),
        ("get", reverse("inference:service-detail", args=[service.pk]), 200),
        ("get", reverse("inference:service-edit", args=[service.pk]), 200),
        ("post", reverse("inference:model-delete", args=[model]), 302),
        ("post", reverse("inference:service-stop", args=[service.pk]), 302),
        ("post", reverse("inference:service-delete", args=[service.pk]), 302),
    )


def test_inference_pages_of_private_things_are_their_owners(
    version, evaluation, service, as_alice, as_bob, as_anna, as_olga, client
):
    for method, url, expected in private_pages(version, evaluation, service):
        assert getattr(as_bob, method)(url).status_code == 404, url
        assert getattr(as_anna, method)(url).status_code == 403, url
        assert getattr(client, method)(url).status_code == 302, url
        answer = getattr(as_alice, method)(url)
        assert answer.status_code == expected, url
        assert not answer.streaming or b"".join(answer.streaming_content), url
    assert as_olga.get(reverse("inference:model-detail", args=[version.model_id])).status_code == 200


def test_model_page_lets_others_see_but_not_change_a_public_model(alice, tmp_path, as_bob):
    version = factory.model_version(alice, tmp_path, visibility="public")

    assert as_bob.get(reverse("inference:model-detail", args=[version.model_id])).status_code == 200
    assert as_bob.get(reverse("inference:version-download", args=[version.pk])).status_code == 200
    assert as_bob.get(reverse("inference:model-edit", args=[version.model_id])).status_code == 404
    assert as_bob.post(reverse("inference:model-delete", args=[version.model_id])).status_code == 404


def test_model_form_takes_in_a_model(as_alice, tmp_path):
    archive = factory.zipped(tiny.detector(tmp_path / "m"), tmp_path / "m.zip").read_bytes()

    answer = as_alice.post(
        reverse("inference:model-upload"),
        {"name": "cells", "visibility": "private", "file": SimpleUploadedFile("m.zip", archive)},
    )

    model = Model.objects.get()
    assert answer.url == f"{reverse('inference:model-detail', args=[model.pk])}?version=1"
    page = as_alice.get(answer.url).content.decode()
    assert "Detection" in page
    assert "model.onnx" in page


def test_model_form_refuses_a_pickle_on_the_field(as_alice):
    sent = {"name": "cells", "visibility": "private", "file": SimpleUploadedFile("m.pkl", b"\x80\x04.")}

    answer = as_alice.post(reverse("inference:model-upload"), sent)

    assert answer.status_code == 422
    assert "can execute code when it is opened (a pickle or an archive with" in answer.context["form"].errors["file"][0]


def test_model_page_shows_names_as_text(alice, as_alice, tmp_path):
    version = factory.model_version(alice, tmp_path)
    Model.objects.filter(pk=version.model_id).update(description="<script>alert(1)</script>")
    type(version).objects.update(classes=[{"id": 1, "name": "<img src=x>"}], code_label="<b>x</b>")

    page = as_alice.get(reverse("inference:model-detail", args=[version.model_id])).content.decode()

    assert "<script>alert" not in page
    assert "<img src=x>" not in page
    assert "<b>x</b>" not in page


def test_model_page_shows_speed_and_its_conditions(alice, as_alice, tmp_path):
    version = factory.model_version(alice, tmp_path)
    speed = {"gflops": 1.25, "ms": 12.34, "threads": 2, "provider": "CPUExecutionProvider", "processor": "Any CPU"}
    version.facts |= {"speed": speed | {"slowdown": 1.6}, "input": {**version.facts["input"], "tile": {"overlap": 0.2}}}
    version.save()

    page = as_alice.get(reverse("inference:model-detail", args=[version.model_id])).content.decode()
    facts = as_alice.get(f"/api/v1/model-versions/{version.pk}/").json()["facts"]["speed"]

    assert "1.25 GFLOPs" in page
    assert "CPU of the training node (Any CPU), 2 threads, one image at a time" in page
    assert "about 1.6 times faster" in page
    assert "tiles with an overlap of 20 %" in page
    assert facts["ms"] == 12.34


def test_model_version_download_holds_its_files(version, as_alice):
    answer = as_alice.get(reverse("inference:version-download", args=[version.pk]))

    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        assert set(archive.namelist()) == {"model.onnx", "model.json"}
        assert archive.testzip() is None


def test_model_page_deletes_a_model_by_typing_its_name(version, as_alice):
    url = reverse("inference:model-delete", args=[version.model_id])

    as_alice.post(url, {"confirm": "something"})
    assert Model.objects.exists()
    as_alice.post(url, {"confirm": "cells"})
    assert not Model.objects.exists()


def test_evaluation_form_requests_an_evaluation(as_alice, alice, version, cluster, tmp_path):
    data = judged.dataset_version(alice, tmp_path / "data")
    sent = {
        "model_version": version.pk, "version": data.pk, "split": "test", "cluster": cluster.pk, "gpus_per_node": 0
    }  # fmt: skip

    answer = as_alice.post(reverse("inference:evaluation-new"), sent)

    made = Evaluation.objects.get()
    assert answer.url == reverse("inference:evaluation-detail", args=[made.pk])
    assert made.params["batch"] == 8
    assert as_alice.get(answer.url).status_code == 200
    assert as_alice.post(reverse("inference:evaluation-stop", args=[made.pk])).status_code == 302


def test_inference_forms_offer_no_foreign_models_and_data(as_bob, version, alice, cluster, tmp_path):
    data = judged.dataset_version(alice, tmp_path / "data")
    sent = {"model_version": version.pk, "version": data.pk, "cluster": cluster.pk, "gpus_per_node": 0}

    answer = as_bob.post(reverse("inference:evaluation-new"), sent)

    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {"model_version", "version"}


def test_evaluation_page_shows_its_figures(evaluation, as_alice):
    page = as_alice.get(reverse("inference:evaluation-detail", args=[evaluation.pk]))

    shown = json.loads(json.dumps(page.context["shown"]))
    assert shown["task"] == "detection"
    assert len(shown["classes"]) == 3
    assert f"{evaluation.metrics['ap50']:.3f}" in page.content.decode()


def test_evaluation_page_shows_a_classification_too(alice, as_alice, tmp_path):
    evaluation = judged.evaluation(alice, tmp_path, task="classification")

    page = as_alice.get(reverse("inference:evaluation-detail", args=[evaluation.pk])).content.decode()
    gallery = as_alice.get(reverse("inference:evaluation-images", args=[evaluation.pk])).content.decode()

    assert "Recall_5" in page
    assert "0.833" in page
    assert "instead of" in gallery


def test_evaluation_list_gives_htmx_rows_alone_and_says_when_it_is_over(evaluation, as_alice):
    htmx = {"headers": {"HX-Request": "true"}}

    rows = as_alice.get(reverse("inference:evaluation-list"), **htmx)
    assert "<html" not in rows.content.decode()
    over = as_alice.get(reverse("inference:evaluation-detail", args=[evaluation.pk]), **htmx)
    assert over.headers["HX-Refresh"] == "true"


def test_inference_lists_filter_and_search(evaluation, as_alice):
    url = reverse("inference:evaluation-list")

    assert evaluation.job.name in as_alice.get(url, {"state": "completed"}).content.decode()
    assert evaluation.job.name not in as_alice.get(url, {"state": "running"}).content.decode()
    assert evaluation.job.name in as_alice.get(url, {"q": "colours"}).content.decode()
    assert evaluation.job.name not in as_alice.get(url, {"q": "zzz"}).content.decode()


def test_evaluation_page_hides_images_of_a_dataset_one_may_not_see(evaluation, alice, as_alice, bob):
    type(evaluation.version.dataset).objects.update(owner=bob)

    assert as_alice.get(reverse("inference:evaluation-image", args=[evaluation.pk, "002.png"])).status_code == 404


@pytest.mark.parametrize("path", ["../annotations.json", "nothing.png", "..%2Fdataset.json"])
def test_evaluation_image_route_serves_images_below_images_only(evaluation, as_alice, path):
    url = f"/evaluations/{evaluation.pk}/image/{path}"

    assert as_alice.get(url).status_code == 404


def test_service_form_creates_and_its_buttons_stop_start_and_delete(as_alice, version, cluster):
    sent = {
        "name": "demo", "model_version": version.pk, "visibility": "private", "cluster": cluster.pk,
        "gpus_per_node": 0, "cpus": 1, "max_batch": 8, "max_delay_ms": 2,
    }  # fmt: skip

    answer = as_alice.post(reverse("inference:service-new"), sent)

    service = Service.objects.get()
    assert answer.url == reverse("inference:service-detail", args=[service.pk])
    page = as_alice.get(answer.url).content.decode()
    assert f"/serve/{service.slug}" in page
    assert "curl" in page
    as_alice.post(reverse("inference:service-stop", args=[service.pk]))
    set_state(service.job, "stopped")
    as_alice.post(reverse("inference:service-start", args=[service.pk]))
    service.refresh_from_db()
    assert service.is_up
    as_alice.post(reverse("inference:service-delete", args=[service.pk]), {"confirm": "demo"})
    assert not Service.objects.exists()


@pytest.mark.parametrize("name", ["model-list", "evaluation-list", "service-list"])
def test_inference_lists_cost_a_fixed_number_of_queries(
    name, alice, as_alice, evaluation, service, tmp_path, django_assert_max_num_queries
):
    for number in range(5):
        extra = factory.model_version(alice, tmp_path, name=f"more{number}")
        endpoints.create(user=alice, name=f"demo{number}", model_version=extra)

    with django_assert_max_num_queries(16):
        as_alice.get(reverse(f"inference:{name}"))


def test_list_of_models_tags_public_ones_and_offers_the_reader_s_aliases(alice, as_alice, version, tmp_path):
    Model.objects.filter(pk=version.model_id).update(visibility="public")
    factory.model_version(alice, tmp_path, name="hidden")
    aliases.assign(version=version, name="best", by=alice)

    html = as_alice.get("/models/").content.decode()
    rows = [Model.objects.get(pk=row.pk).name for row in as_alice.get("/models/?alias=best").context["page"]]

    assert html.count("Public</span>") == 1
    assert '<option value="best">' in html
    assert rows == [version.model.name]


def test_api_filters_models_by_group_and_refuses_another_word(alice, api, version):
    group = UserGroup.objects.create(name="crew", description="x")
    assert api.get(f"/api/v1/models/?group={group.pk}").json()["results"] == []
    alice.user_groups.add(group)
    assert [row["id"] for row in api.get(f"/api/v1/models/?group={group.pk}").json()["results"]] == [version.model_id]

    refused = [api.get(f"/api/v1/models/?group={word}") for word in ("crew", "1.5", "9" * 19)]

    assert [answer.json()["detail"] for answer in refused] == ["group must be an integer."] * 3
    assert {answer.status_code for answer in refused} == {api.get("/api/v1/models/?stage=x").status_code}


def test_refused_deletion_of_a_service_is_an_error_page(as_alice, service, monkeypatch):
    def refuse(**_values):
        raise Invalid("Busy.")

    monkeypatch.setattr(endpoints, "delete", refuse)

    answer = as_alice.post(reverse("inference:service-delete", args=[service.pk]), {"confirm": "demo"})

    assert (answer.status_code, answer.headers["X-Refusal"]) == (Invalid.status, "Busy.")


def test_search_finds_own_models_and_services(service, as_alice, as_bob):
    assert any(hit["name"] == "demo" for hit in as_alice.get("/search/", {"q": "demo"}).json()["results"])
    assert as_bob.get("/search/", {"q": "demo"}).json()["results"] == []


def test_inference_admin_site_lists_open(olga, service, evaluation):
    olga.is_staff = olga.is_superuser = True
    olga.save()
    client = Client()
    client.force_login(olga)

    for name in ("model", "evaluation", "service"):
        assert client.get(reverse(f"admin:inference_{name}_changelist")).status_code == 200


def test_model_page_calls_the_figures_of_its_training_by_their_words(version, as_alice):
    type(version).objects.filter(pk=version.pk).update(
        metrics={"val/ap": 0.5, "val/ap50/cell": 0.25, "val/accuracy": 1.0}
    )

    html = as_alice.get(f"/models/{version.model_id}/").content.decode()

    for word in ("mAP · val", "AP50 · val by class", "Accuracy · val"):
        assert f">{word}<" in html, word
    assert "val/ap" not in html


def test_model_page_links_the_lists_filtered_by_the_model(service, as_alice, alice, tmp_path):
    model = service.model_version.model
    other = factory.model_version(alice, tmp_path, name=f"{model.name} longer")
    endpoints.create(user=alice, name="second", model_version=other)
    page = as_alice.get(reverse("inference:model-detail", args=[model.pk])).content.decode()

    for path in ("/evaluations/", "/conversions/", "/services/", "/edge/"):
        assert f'href="{path}?model={model.pk}"' in page
    assert f'?model={model.pk}">Endpoints <span class="tab-count">1</span>' in page
    assert f'?model={model.pk}">Conversions <span class="tab-count">0</span>' in page
    listed = as_alice.get("/services/", {"model": model.pk})
    assert [row.name for row in listed.context["page"].rows] == [service.name]
    assert f'<option value="{model.pk}" selected>{model.name}</option>' in listed.content.decode()
    empty = as_alice.get("/conversions/", {"model": model.pk}).content.decode()
    assert "No conversions of this model." in empty
    assert f'href="/conversions/new/?model={model.pk}"' in empty
    for path in ("/evaluations/new/", "/services/new/"):
        form = as_alice.get(path, {"model": model.pk}).context["form"]
        assert form["model_version"].value() == service.model_version_id
    assert (
        "No conversions of this model."
        not in as_alice.get("/conversions/", {"model": model.pk, "q": "x"}).content.decode()
    )


def test_list_filtered_by_a_model_does_not_name_one_that_a_reader_cannot_see(service, as_bob):
    model = service.model_version.model
    assert model.name not in as_bob.get("/services/", {"model": model.pk}).content.decode()
