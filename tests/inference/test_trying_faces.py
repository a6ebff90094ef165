"""Pages and API of trials."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from inference.registry.models import Model, ModelTask, ModelVersion
from tests.datasets.helpers import uploaded
from tests.inference import foreign, seeing, tried
from tests.inference.seeing import annotated
from workers.core.models import Job

pytestmark = pytest.mark.django_db
PICTURES = [seeing.picture(), seeing.picture(seed=1)]


def request_body(path, **more):
    """The body sent to the form or the API."""
    sent = {"name": "net", "labels": "\n".join(seeing.CLASSES), "visibility": "private"} | more
    sent["file"] = SimpleUploadedFile("net.onnx", path.read_bytes())
    sent["pictures"] = [SimpleUploadedFile(f"{n}.png", data) for n, data in enumerate(PICTURES)]
    return sent


def test_form_begins_a_trial_and_its_page_makes_the_model(as_alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")

    begun = as_alice.post("/models/new/", request_body(path, act="try"))
    task = ModelTask.objects.get()
    waiting = as_alice.get(f"/jobs/{task.job_id}/").content.decode()
    tried.ran(task)
    page = as_alice.get(f"/jobs/{task.job_id}/").content.decode()
    picture = as_alice.get(f"/models/tries/{task.pk}/pictures/0/")
    used = as_alice.post(f"/models/tries/{task.pk}/use/", {"rank": "1", "name": "finder"})
    after = as_alice.get(f"/jobs/{task.job_id}/").content.decode()

    assert begun.url == f"/jobs/{task.job_id}/"
    assert "h-trial" not in waiting
    assert page.count("Use this:") == len(task.figures["best"]) >= 1
    assert "YOLOv8 and later" in page
    assert "pixels: 0 to 1 · letterbox" in page
    assert page.count('class="box-answer"') >= 2
    assert b"".join(picture.streaming_content)[:2] == b"\xff\xd8"
    assert picture["Content-Type"] == "image/jpeg"
    version = ModelVersion.objects.get()
    assert used.url == f"/models/{version.model_id}/?version=1"
    assert version.model.name == "finder"
    assert "Use this:" not in after
    assert used.url.replace("&", "&amp;") in after


def test_form_without_pictures_says_so_beside_what_else_is_wrong(as_alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    fields = request_body(path, act="try", name="") | {"pictures": []}

    page = as_alice.post("/models/new/", fields)

    assert page.status_code == 422
    assert page.context["form"].errors["pictures"] == ["Choose images, or a dataset, to try the model on."]
    assert "name" in page.context["form"].errors
    assert not ModelTask.objects.exists()


def test_pictures_are_left_alone_where_the_model_is_only_brought_in(as_alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")

    as_alice.post("/models/new/", request_body(path, task="detection", pixels="unit"))

    assert ModelVersion.objects.get().task == "detection"
    assert not ModelTask.objects.exists()


def test_page_of_double_use_links_to_the_version(as_alice, alice, tmp_path):
    task = tried.submitted(alice, seeing.model(tmp_path / "net.onnx", "yolo"), pictures=PICTURES)
    tried.ran(task)
    for _time in range(2):
        answer = as_alice.post(f"/models/tries/{task.pk}/use/", {"rank": "1"}, follow=True)

    page = answer.content.decode()
    assert "was already created from this test. Open it, or import the" in page
    assert f"/models/{ModelVersion.objects.get().model_id}/?version=1" in page


def test_strangers_see_and_use_nothing_of_a_trial(as_bob, as_anna, alice, tmp_path):
    task = tried.submitted(alice, seeing.model(tmp_path / "net.onnx", "yolo"), pictures=PICTURES)
    tried.ran(task)
    at, routes = f"/models/tries/{task.pk}", f"/api/v1/model-tasks/{task.pk}"

    bob = [as_bob.get(f"{at}/pictures/0/"), as_bob.post(f"{at}/use/", {"rank": "1"}), as_bob.get(f"{routes}/ways/"),
           as_bob.post(f"{routes}/use/", {"rank": 1}, content_type="application/json")]  # fmt: skip
    anna = [as_anna.get(f"{at}/pictures/0/"), as_anna.post(f"{at}/use/", {"rank": "1"})]

    assert [response.status_code for response in bob] == [404] * 4
    assert [response.status_code for response in anna] == [403] * 2
    assert not ModelVersion.objects.exists()


def test_api_begins_shows_and_uses(api, alice, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")

    begun = api.post("/api/v1/model-tasks/try/", request_body(path), format="multipart")
    task = ModelTask.objects.get()
    early = api.get(f"/api/v1/model-tasks/{task.pk}/ways/").json()
    tried.ran(task)
    content = api.get(f"/api/v1/model-tasks/{task.pk}/ways/").json()
    wrong = api.post(f"/api/v1/model-tasks/{task.pk}/use/", {"rank": 99})
    used = api.post(f"/api/v1/model-tasks/{task.pk}/use/", {"rank": 1})
    again = api.post(f"/api/v1/model-tasks/{task.pk}/use/", {"rank": 1})

    assert (begun.status_code, begun.json()["act"]) == (202, "try")
    assert early["ways"] == []
    first = content["ways"][0]
    assert (first["rank"], first["declared"]["layout"], first["declared"]["pixels"]) == (1, "yolo", "unit")
    assert first["answers"][0][0]["name"] == "dog"
    assert wrong.status_code == 400
    assert (used.status_code, used.json()["source"]) == (201, "import")
    assert (again.status_code, again.json()["code"]) == (409, "already_used")


def test_api_takes_a_dataset_and_uploads_and_refuses_models_of_others(api, alice, bob, tmp_path):
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    theirs = annotated(bob)
    model = foreign.import_file(bob, path, task="detection", labels=seeing.CLASSES, pixels="unit").model
    Model.objects.update(visibility="public")
    upload = uploaded(alice, path.read_bytes(), "net.onnx").pk
    picture = uploaded(alice, seeing.picture(), "p.png").pk
    good = {"upload": upload, "picture_uploads": [picture], "name": "mine"}

    hidden = api.post("/api/v1/model-tasks/try/", good | {"version": theirs.pk}, format="json")
    other = api.post("/api/v1/model-tasks/try/", good | {"model": model.pk}, format="json")
    fine = api.post("/api/v1/model-tasks/try/", good, format="json")

    assert (hidden.status_code, other.status_code, fine.status_code) == (400, 403, 202)
    assert ModelTask.objects.get().job.spec["names"] == ["p.png"]
    measured = ModelTask.objects.create(job=Job.objects.create(owner=alice, cluster_id=1, name="m"), act="measure")
    assert api.get(f"/api/v1/model-tasks/{measured.pk}/ways/").status_code == 400


def test_failed_trial_says_why_on_its_page(as_alice, alice, tmp_path):
    task = tried.submitted(alice, seeing.model(tmp_path / "net.onnx", "yolo"), pictures=[b"none"])
    tried.ran(task)

    page = as_alice.get(f"/jobs/{task.job_id}/").content.decode()

    assert "None of the images can be read" in page
    assert "/models/new/" in page
