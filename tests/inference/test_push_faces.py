"""Pages and API of pushes: what they show, to whom, and what they refuse."""

from __future__ import annotations

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from accounts.models import AuditEntry, UserGroup
from inference.delivery.push import pushes, targets
from inference.delivery.push.models import Push, PushTarget
from tests.cases import case_table
from tests.factories import models as factory
from tests.inference.far_servers import Folder, serving

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("models are pushed to a server of the test")]
SECRET = "t0ken-of-alice"


@pytest.fixture(autouse=True)
def _house(settings, sent):
    settings.PUSH_ALLOWED = ["127.0.0.1"]


@pytest.fixture
def far():
    with serving(Folder) as server:
        server.token = SECRET
        yield server


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def target(alice, far):
    return targets.create(user=alice, name="Shelf", kind="put", address=far.address, secret=SECRET)


def as_person(person):
    client = APIClient()
    client.force_authenticate(person)
    return client


def together(*persons):
    group = UserGroup.objects.create(name="lab")
    group.users.add(*persons)


def test_api_keeps_a_target_tests_it_and_pushes(api, far, version):
    made = api.post(
        "/api/v1/push-targets/",
        {"name": "Shelf", "kind": "put", "address": f"{far.address}/m", "secret": SECRET}, format="json",
    )  # fmt: skip
    assert (made.status_code, made.json()["has_secret"], made.json()["works"]) == (201, True, None)
    route = f"/api/v1/push-targets/{made.json()['id']}/"
    assert api.post(f"{route}test/").json()["works"] is True
    response = api.post("/api/v1/pushes/", {"model_version": "cells:1", "target": made.json()["id"]}, format="json")
    assert (response.status_code, response.json()["state"]) == (201, "waiting")
    pushes.run(response.json()["id"])
    content = api.get(f"/api/v1/pushes/{response.json()['id']}/").json()
    assert (content["state"], content["landed"]) == ("done", f"{far.address}/m/cells_v1_package.zip")
    assert content["message"] == {"code": "", "facts": {}}
    assert [row["id"] for row in api.get("/api/v1/pushes/?state=done").json()["results"]] == [content["id"]]
    assert api.post(f"/api/v1/pushes/{content['id']}/again/").status_code == 201
    newest = Push.objects.first()
    assert api.post(f"/api/v1/pushes/{newest.pk}/stop/").json()["state"] == "stopped"
    everything = [api.get(path) for path in (route, "/api/v1/push-targets/", "/api/v1/pushes/")]
    assert SECRET not in "".join(answer.content.decode() for answer in everything) + made.content.decode()
    assert api.delete(route).status_code == 204


@case_table(
    ("field", "value"),
    [
        ("kind", "carrier pigeon"), ("address", "ftp://example.org/x"), ("address", "http://192.168.7.7/x"),
        ("address", "http://169.254.169.254/latest/"), ("address", "http://[::1]/x"), ("address", "http://127.1.1.1/x"),
        ("address", "http://u:p@127.0.0.1/x"), ("address", "http://127.0.0.1/x?sig=secret"), ("address", "/etc/passwd"),
        ("name", "/"), ("secret", "two\nlines"), ("secret", "x" * 30_000), ("ca", "not a PEM certificate"),
        ("options", {"no": "such"}), ("options", [1]), ("visibility", "public"), ("secret", "\x00"),
    ],
    rollback=True,
)  # fmt: skip
def test_api_refuses_what_can_never_work(api, field, value):
    sent = {"name": "Shelf", "kind": "put", "address": "http://127.0.0.1/x", "secret": "s"} | {field: value}

    answer = api.post("/api/v1/push-targets/", sent, format="json")

    assert answer.status_code == 400
    assert not PushTarget.objects.exists()


def test_target_that_moves_needs_its_secret_anew(api, target, far):
    """Otherwise a user who may edit it could send the secret to another server."""
    route = f"/api/v1/push-targets/{target.pk}/"

    moved = api.patch(route, {"address": "http://127.0.0.1:9/"}, format="json")
    assert (moved.status_code, "secret" in str(moved.json())) == (400, True)
    assert api.patch(route, {"name": "Rack"}, format="json").json()["name"] == "Rack"
    assert pushes.to_destination(PushTarget.objects.get()).secret == SECRET
    both = api.patch(route, {"address": "http://127.0.0.1:9/", "secret": "other"}, format="json")
    assert both.status_code == 200
    assert pushes.to_destination(PushTarget.objects.get()).secret == "other"


def test_target_is_its_owners_unless_it_is_for_the_groups(alice, bob, target, tmp_path):
    api, own = as_person(bob), factory.model_version(bob, tmp_path, name="rings")
    route, sent = f"/api/v1/push-targets/{target.pk}/", {"model_version": own.pk, "target": target.pk}
    assert api.get(route).status_code == 404
    assert api.post("/api/v1/pushes/", sent, format="json").status_code == 400
    targets.change(target=target, by=alice, visibility="group")
    assert api.get(route).status_code == 404  # they share no group
    together(alice, bob)

    assert api.get(route).status_code == 200
    assert api.post("/api/v1/pushes/", sent, format="json").status_code == 201
    for refused in (api.patch(route, {"name": "x"}), api.delete(route), api.post(f"{route}test/"),
                    api.post(f"{route}forget-host-key/")):  # fmt: skip
        assert refused.status_code == 403
    push = Push.objects.get()
    assert as_person(alice).get(f"/api/v1/pushes/{push.pk}/").status_code == 404  # each sees the own pushes
    for verb in ("stop", "again"):
        assert as_person(alice).post(f"/api/v1/pushes/{push.pk}/{verb}/").status_code == 404


def test_version_of_somebody_else_is_pushed_by_nobody_who_may_not_use_it(bob, version, far):
    own = targets.create(user=bob, name="Mine", kind="put", address=far.address, secret=SECRET)
    api = as_person(bob)
    for named in (version.pk, "alice/cells:1"):
        sent = {"model_version": named, "target": own.pk}
        assert api.post("/api/v1/pushes/", sent, format="json").status_code == 400
    assert not far.asked


def test_annotation_people_have_no_part_in_it(anna, version, target):
    api = as_person(anna)

    assert api.get("/api/v1/push-targets/").status_code == 403
    assert api.post("/api/v1/pushes/", {"model_version": version.pk, "target": target.pk}).status_code == 403


def test_pages_make_a_target_push_a_version_and_show_where_it_lies(client, alice, far, version):
    client.force_login(alice)
    assert "No targets yet" in client.get(reverse("inference:push-list")).content.decode()
    empty = client.get(reverse("inference:version-push", args=[version.pk])).content.decode()
    assert "No targets yet. Add a destination for this model." in empty
    new = reverse("inference:push-target-new", args=["put"])
    bad = client.post(new, {"name": "/", "address": "http://10.0.0.1/", "secret": SECRET})
    assert (bad.status_code, SECRET in bad.content.decode()) == (422, False)
    sent = {"name": "Shelf", "address": far.address, "secret": SECRET, "visibility": "private"}
    refused = client.post(new, sent | {"address": "http://10.0.0.1/"})
    assert "AIP_PUSH_ALLOWED" in refused.content.decode()
    made = client.post(new, sent, follow=True)
    assert "responds and accepts the credentials." in made.content.decode()
    target = PushTarget.objects.get()
    assert "version-push" not in client.get(reverse("inference:model-detail", args=[version.model_id])).content.decode()
    page = reverse("inference:version-push", args=[version.pk])
    assert page in client.get(reverse("inference:model-detail", args=[version.model_id])).content.decode()
    assert client.post(page, {"target": target.pk, "content": "package"}).headers["Location"] == page
    assert 'hx-trigger="every 2s"' in client.get(page).content.decode()
    push = Push.objects.get()
    pushes.run(push.pk)
    shown = client.get(reverse("inference:version-pushes", args=[version.pk])).content.decode()
    assert "cells_v1_package.zip" in shown
    assert "hx-trigger" not in shown
    for shown in (page, reverse("inference:push-target", args=[target.pk]), reverse("inference:push-list"),
                  reverse("inference:push-target-edit", args=[target.pk])):  # fmt: skip
        assert SECRET not in client.get(shown).content.decode()
    verbs = set(AuditEntry.objects.values_list("verb", flat=True))
    assert {"push_target_made", "model_pushed"} <= verbs
    assert SECRET not in str(list(AuditEntry.objects.values()))


def test_pages_change_test_stop_and_delete(client, alice, bob, far, version, target):
    client.force_login(alice)
    edit = reverse("inference:push-target-edit", args=[target.pk])
    sent = {"name": "Rack", "address": far.address, "visibility": "group"}
    far.token = "changed"
    page = client.post(edit, sent, follow=True).content.decode()
    assert "). Update them in the settings of the target." in page
    far.token = SECRET
    page = client.post(reverse("inference:push-target-test", args=[target.pk]), follow=True).content.decode()
    assert "responds and accepts the credentials." in page
    push = pushes.submit(user=alice, version=version, target=target)
    client.post(reverse("inference:push-stop", args=[push.pk]))
    assert Push.objects.get().state == "stopped"
    client.post(reverse("inference:push-again", args=[push.pk]))
    assert Push.objects.count() == 2
    client.force_login(bob)
    for name in ("push-target", "push-target-edit"):
        assert client.get(reverse(f"inference:{name}", args=[target.pk])).status_code == 404
    for name in ("push-target-test", "push-target-delete", "push-target-forget-key"):
        assert client.post(reverse(f"inference:{name}", args=[target.pk]), {"confirm": "Rack"}).status_code == 404
    for name in ("push-stop", "push-again"):
        assert client.post(reverse(f"inference:{name}", args=[push.pk])).status_code == 404
    assert client.get(reverse("inference:version-push", args=[version.pk])).status_code == 404
    client.force_login(alice)
    delete = reverse("inference:push-target-delete", args=[target.pk])
    client.post(delete, {"confirm": "no"})
    assert PushTarget.objects.exists()
    client.post(delete, {"confirm": "Rack"})
    assert not PushTarget.objects.exists()
    assert set(Push.objects.values_list("state", flat=True)) == {"stopped", "failed"}


def test_list_of_targets_asks_few_questions(client, alice, far, django_assert_max_num_queries):
    for number in range(20):
        targets.create(user=alice, name=f"Shelf {number}", kind="put", address=far.address)
    client.force_login(alice)
    client.get(reverse("inference:push-list"))

    with django_assert_max_num_queries(14):
        assert "Shelf 19" in client.get(reverse("inference:push-list")).content.decode()
