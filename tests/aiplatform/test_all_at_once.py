"""Two things wrong in one form are said in one answer, on the page, by the API and by `aip`."""

from __future__ import annotations

import io
import zipfile
from types import SimpleNamespace

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import User
from accounts.services import people as accounts
from accounts.services import roles
from aiplatform.client.http import problem
from aiplatform.lib.errors import DomainError
from annotation.services import projects, sets
from datasets.models import DatasetVersion
from inference.serving import endpoints
from tests.factories import annotation as annotations
from tests.factories import datasets as data
from tests.factories import models as registry
from tests.factories import training as trainings
from tests.factories import work
from training.programs.models import CodeSnapshot
from workers.resources.clusters import clusters

pytestmark = pytest.mark.django_db


def archive(**files: str) -> SimpleUploadedFile:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as made:
        for name, text in files.items():
            made.writestr(f"{name}.py", text)
    return SimpleUploadedFile("mine.zip", held.getvalue())


def wrong(page) -> set[str]:
    """Fields of the page's form with an error."""
    assert page.status_code == 422
    return set(page.context["form"].errors)


def test_dataset_with_a_taken_name_and_a_missing_folder(as_alice, api, alice):
    data.dataset(alice, "cells")
    sent = {"name": "cells", "server_path": "/nowhere/"}

    page = as_alice.post("/datasets/new/", sent | {"source": "server", "annotated": "auto", "visibility": "private"})
    answer = api.post("/api/v1/datasets/", sent)

    assert wrong(page) == {"name", "server_path"}
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset_exists")
    assert set(answer.json()["errors"]) == {"name", "server_path"}


def test_dataset_without_a_name_and_with_a_missing_folder(as_alice, api):
    page = as_alice.post(
        "/datasets/new/", {"source": "server", "server_path": "/nowhere/", "annotated": "auto", "visibility": "private"}
    )
    answer = api.post("/api/v1/datasets/", {"server_path": "/nowhere/", "owner": 3})

    assert wrong(page) == {"name", "server_path"}
    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {"name", "server_path", "owner"}


def test_project_with_a_taken_name_and_a_long_introduction(as_alice, api, alice):
    projects.create(owner=alice, name="nuclei")
    sent = {"name": "nuclei", "intro": "x" * 501}

    assert wrong(as_alice.post("/annotation/projects/new/", sent)) == {"name", "intro"}
    assert set(api.post("/api/v1/annotation/projects/", sent).json()["errors"]) == {"name", "intro"}
    with pytest.raises(DomainError) as refused:
        projects.create(owner=alice, **sent)
    assert [one.blamed for one in refused.value.every] == ["name", "intro"]


def test_dataset_of_a_project_with_a_taken_name_and_nothing_in_it(alice):
    there = annotations.annotation_set(alice)
    empty = data.version(data.dataset(alice, "empty"), images=0)

    with pytest.raises(DomainError) as refused:
        sets.create(project=there.project, name=there.name, source=empty, by=alice, visibility="nobody")

    assert [one.blamed for one in refused.value.every] == ["name", "visibility", "source"]


def test_class_with_a_long_parent_a_wrong_shape_and_a_wrong_colour(alice):
    there = annotations.annotation_set(alice)

    with pytest.raises(DomainError) as refused:
        sets.add_label(there, name="", supercategory="x" * 51, shape="blob", colour="red")

    assert [one.blamed for one in refused.value.every] == ["name", "supercategory", "shape", "colour"]


@pytest.fixture
def asked(alice, cluster) -> dict[str, object]:
    """A training that wants more than one machine's four cores."""
    work.node(cores=4)
    return {
        "name": "first", "version": trainings.version(alice).pk, "preset": "detect", "cluster": cluster.pk,
        "gpus_per_node": 0, "nodes": 1, "cpus": 1, "share": 8, "processes": 0, "priority": 0,
    }  # fmt: skip


def test_training_with_wrong_parameters_and_switches(as_alice, api, asked):
    page = as_alice.post("/training/new/", asked | {"extra": "-Faster", "detect__lr": "1000", "name": "a/b"})
    answer = api.post(
        "/api/v1/training/jobs/", asked | {"extra": "-Faster", "params": {"lr": 1000, "speed": 3}}, format="json"
    )

    assert wrong(page) == {"name", "extra", "detect__lr"}
    assert answer.json()["code"] == "bad_switch"
    assert set(answer.json()["errors"]) == {"extra", "params", "param_lr"}


def test_training_with_wrong_switches_and_too_many_cores(api, asked):
    answer = api.post("/api/v1/training/jobs/", asked | {"extra": "-Faster", "cpus": 512}, format="json")

    assert set(answer.json()["errors"]) == {"extra", "cpus"}


def test_training_with_too_many_cores_and_machines(as_alice, api, asked):
    sent = asked | {"cpus": 9, "nodes": 3}

    page = as_alice.post("/training/new/", sent)
    panel = as_alice.post("/training/fit/", sent).context["verdict"]
    answer = api.post("/api/v1/training/jobs/", sent, format="json")

    assert {"cpus", "nodes"} <= wrong(page)
    assert (answer.json()["code"], set(answer.json()["errors"])) == ("never_fits", {"cpus", "nodes"})
    said = [sentence for field in ("cpus", "nodes") for sentence in answer.json()["errors"][field]]
    assert len(said) == 2
    assert panel.sentence == " ".join(said)
    printed = str(problem(SimpleNamespace(status=409, headers={}, json=answer.json), signed_in=True))
    assert all(sentence in printed for sentence in said)


def test_training_that_is_refused_keeps_the_code_it_came_with(as_alice, asked):
    own = asked | {"preset": "own", "arguments": "{where}", "start_file": "train.py", "name": ""}

    page = as_alice.post("/training/new/", own | {"code_archive": archive(train="print(1)"), "nodes": "many"})
    kept = CodeSnapshot.objects.get()
    again = as_alice.post("/training/new/", own | {"arguments": "", "snapshot": kept.pk})

    assert wrong(page) == {"arguments", "nodes"}
    assert f'value="{kept.pk}"' in page.content.decode()
    assert "mine.zip, 1 file" in page.content.decode()
    assert again.status_code == 302


def test_file_that_came_with_a_refused_form_is_asked_for_again_unless_the_form_keeps_it(as_alice, asked):
    again = "data-choose-again"
    video = {"name": "a/b", "file": SimpleUploadedFile("cells.mp4", b"x")}

    lost, none_chosen = (as_alice.post("/videos/new/", sent) for sent in (video, {**video, "file": ""}))
    own = {"preset": "own", "code_archive": archive(train="x = 1"), "start_file": "train.py", "name": "a/b"}
    kept = as_alice.post("/training/new/", asked | own)

    assert (lost.status_code, none_chosen.status_code, kept.status_code) == (422, 422, 422)
    assert "the browser has lost “cells.mp4”" in lost.content.decode()
    assert again not in none_chosen.content.decode()
    assert again not in kept.content.decode()


def test_training_whose_code_cannot_be_read_says_what_else_is_wrong(api, asked):
    own = {name: value for name, value in asked.items() if name != "preset"}
    broken = SimpleUploadedFile("mine.zip", b"no archive")

    answer = api.post(
        "/api/v1/training/jobs/", own | {"code_archive": broken, "extra": "-Faster"}, format="multipart"
    ).json()

    assert (answer["code"], set(answer["errors"])) == ("archive_refused", {"non_field_errors", "extra"})


def test_parameter_set_with_a_taken_name_and_a_wrong_value(as_alice, api):
    sent = {"name": "mine", "preset": "detect", "params": {"lr": 0.01}}
    api.post("/api/v1/training/params/", sent, format="json")

    answer = api.post("/api/v1/training/params/", sent | {"params": {"lr": 1000}}, format="json")
    page = as_alice.post(
        "/training/params/new/?preset=detect", {"name": "mine", "visibility": "private", "detect__lr": "1000"}
    )

    assert set(answer.json()["errors"]) == {"name", "param_lr"}
    assert wrong(page) == {"name", "detect__lr"}


def test_evaluation_of_a_model_that_cannot_answer_on_images_without_annotations(api, alice, tmp_path):
    model = registry.model_version(alice, tmp_path)
    plain = data.version(data.dataset(alice, "plain"))
    DatasetVersion.objects.filter(pk=plain.pk).update(annotated=False)

    answer = api.post(
        "/api/v1/evaluations/",
        {"model_version": model.pk, "version": plain.pk, "params": {"batch": 0, "speed": 1}, "name": "a/b"},
        format="json",
    )

    assert {"version", "batch", "name"} <= set(answer.json()["errors"])


def test_service_with_a_taken_name_and_too_many_cores(as_alice, api, alice, tmp_path, asked):
    model = registry.model_version(alice, tmp_path)
    endpoints.create(user=alice, name="demo", model_version=model)
    sent = {"name": "demo", "model_version": model.pk, "cpus": 200, "visibility": "private", "gpus_per_node": 0,
            "max_batch": 8, "max_delay_ms": 2}  # fmt: skip

    assert wrong(as_alice.post("/services/new/", sent)) == {"name", "cpus"}
    assert wrong(as_alice.post("/services/new/", sent | {"max_batch": 0})) == {"name", "max_batch"}
    assert set(api.post("/api/v1/services/", sent, format="json").json()["errors"]) == {"name", "cpus"}


def test_model_with_a_taken_name_and_a_file_that_is_none(as_alice, alice, tmp_path):
    name = registry.model_version(alice, tmp_path).model.name

    page = as_alice.post(
        "/models/new/",
        {"name": name, "visibility": "private", "file": SimpleUploadedFile("m.pkl", b"pickle")},
    )

    assert wrong(page) == {"name", "file"}


@pytest.mark.parametrize("path", ["/datasets/new/", "/annotation/projects/new/", "/models/new/", "/training/new/",
                                  "/training/params/new/", "/evaluations/new/", "/services/new/"])  # fmt: skip
def test_wrong_field_is_refused_once(as_alice, path):
    for sent in ({"name": "/" * 600}, {"name": ""}, {}):
        errors = as_alice.post(path, sent).context["form"].errors

        assert {field: said for field, said in errors.items() if len(said) > len(set(said))} == {}


def test_person_with_a_taken_name_a_wrong_address_and_a_weak_password(olga, alice, client):
    client.force_login(olga)
    sent = {"username": "Alice", "nickname": "A", "email": "nowhere", "password": "123"}

    with pytest.raises(DomainError) as refused:
        accounts.create(**sent, by=olga)
    answer = client.post("/api/v1/users/", sent | {"roles": []}, content_type="application/json")
    row = {"u-0-username": "alice", "u-0-email": "nowhere", "u-0-password": "123", "u-0-role": "none"}
    page = client.post("/people/new/", {"u-TOTAL_FORMS": "1", "u-INITIAL_FORMS": "0", **row})

    assert [one.blamed for one in refused.value.every] == ["email", "password", "username"]
    assert {"username", "email"} <= set(answer.json()["errors"])
    assert set(page.context["table"].forms[0].errors) == {"username", "email", "password", "role"}


def test_registration_says_what_is_wrong_and_never_whose_name_is_taken(alice):
    with pytest.raises(DomainError) as refused:
        accounts.register(username="alice", nickname="x" * 51, password="123")

    assert [one.blamed for one in refused.value.every] == ["nickname", "password"]
    accounts.register(username="alice", nickname="", password="a good and long one 42")
    assert User.objects.filter(username="alice").count() == 1


def test_group_and_role_with_taken_names(olga, client):
    client.force_login(olga)
    role = roles.create(name="mine", actions=[], by=olga)
    group = roles.create_group(name="lab", description="", roles=[role], by=olga)

    with pytest.raises(DomainError) as refused:
        roles.create(name="mine", actions=["fly", "dig"], by=olga)
    page = client.post(f"/people/groups/{group.pk}/", {"name": "Administrators", "description": ""})
    new = client.post("/people/roles/new/", {"name": "mine", "set": "own"})

    assert [one.blamed for one in refused.value.every] == ["actions", "name"]
    assert "dig, fly" in refused.value.message
    assert {"roles", "description"} <= set(page.context["form"].errors)
    assert set(new.context["form"].errors) == {"name", "actions"}


def test_cluster_with_a_taken_name_and_too_many_cards_of_each_kind(olga, client):
    client.force_login(olga)
    clusters.save(None, name="lab", by=olga)
    sent = {"name": "lab", "devices": [{"kind": "gpu", "guaranteed": 3}, {"kind": "npu", "guaranteed": 4}]}

    answer = client.post("/api/v1/clusters/", sent, content_type="application/json")
    page = client.post("/clusters/new/", {"name": "lab", "jobs_per_user": "many"})

    assert answer.json()["code"] == "name_taken"
    assert set(answer.json()["errors"]) == {"name", "guaranteed_gpu", "guaranteed_npu"}
    assert wrong(page) == {"name", "jobs_per_user"}


def test_resource_group_without_machines_and_with_a_taken_name(olga, client):
    client.force_login(olga)

    page = client.post(
        "/resource-groups/new/",
        {"name": "", "windows-TOTAL_FORMS": "1", "windows-INITIAL_FORMS": "0", "windows-0-begins": "10:00"},
    )
    answer = client.post(
        "/api/v1/resource-groups/", {"name": " ", "nodes": [], "kinds": ["flying"]}, content_type="application/json"
    )

    assert wrong(page) == {"name", "nodes", "kinds"}
    assert page.context["windows"].forms[0].errors
    assert {"nodes", "kinds"} <= set(answer.json()["errors"])


def test_aip_says_all_that_is_wrong():
    errors = {"name": ["There is one."], "server_path": ["No folder."]}
    body = {"code": "dataset_exists", "detail": "There is one.", "errors": errors}
    answer = SimpleNamespace(status=409, headers={}, json=lambda: body)

    assert str(problem(answer, signed_in=True)).splitlines() == ["There is one.", "  server_path: No folder."]
