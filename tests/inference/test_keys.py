"""Keys that open one service, and how often a caller may ask."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from accounts.models import AuditEntry
from aiplatform.lib.errors import Invalid, NameTaken
from inference.serving import endpoints
from inference.serving.keys import keys, rate_limits
from inference.serving.keys.models import ServiceKey
from inference.serving.models import ServiceUsage
from inference.serving.traffic import routing
from inference.serving.traffic.counters import Counter
from tests.factories import models as factory
from tests.inference import pictures, tiny
from tests.inference.asking import call
from tests.inference.running import running_at

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("a model server of its own")]


@pytest.fixture(scope="module")
def port(serve, tmp_path_factory):
    return serve(tiny.classifier(tmp_path_factory.mktemp("keys")), AIP_SERVICE_KEY="secret")


@pytest.fixture
def service(alice, tmp_path, monkeypatch, port):
    made = endpoints.create(user=alice, name="demo", model_version=factory.model_version(alice, tmp_path, name="tiny"))
    running_at(monkeypatch, made, port)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    return made


@pytest.fixture
def counter(monkeypatch):
    fresh = Counter()
    monkeypatch.setattr(fresh, "flush_soon", lambda: None)
    monkeypatch.setattr(routing, "COUNTER", fresh)
    return fresh


@pytest.fixture(autouse=True)
def _no_paces():
    cache.clear()
    yield
    cache.clear()


def send_request(service, secret, path="predict", method="POST"):
    body = pictures.plain() if method == "POST" else None
    return call(method, f"{service.url}/{path}", headers={"Authorization": f"Bearer {secret}"}, body=body)


def test_key_opens_its_service_and_nothing_else(alice, service, tmp_path):
    other = endpoints.create(user=alice, name="other", model_version=service.model_version)
    _key, secret = keys.issue(service=service, by=alice, name="partner")

    assert send_request(service, secret).status == 200
    assert send_request(service, secret, "v2/models/tiny", "GET").status == 200
    assert send_request(other, secret).json["code"] == "unknown_key"
    assert send_request(service, secret, "metrics", "GET").status == 403
    assert APIClient().get("/api/v1/services/", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert ServiceKey.objects.get().last_used_at is not None
    assert secret not in str(ServiceKey.objects.values().get())


def test_key_that_was_revoked_or_expired_opens_nothing(alice, service):
    gone, secret = keys.issue(service=service, by=alice, name="gone")
    old, other = keys.issue(service=service, by=alice, name="old", expires_in=timedelta(days=1))
    keys.revoke(key=gone, by=alice)
    ServiceKey.objects.filter(pk=old.pk).update(expires_at=now() - timedelta(seconds=1))

    for key_ in (secret, other, "aik_guess"):
        answer = send_request(service, key_)
        assert (answer.status, answer.json["code"], answer.headers["www-authenticate"]) == (
            401,
            "unknown_key",
            "Bearer",
        )
    assert list(AuditEntry.objects.filter(verb="service_key_revoked").values_list("facts__name", flat=True)) == ["gone"]


def test_key_opens_nothing_while_the_owner_of_the_service_may_not_call_it(alice, service):
    _key, secret = keys.issue(service=service, by=alice, name="partner")

    alice.is_active = False
    alice.save()

    assert send_request(service, secret).status == 401


def test_all_that_is_wrong_with_a_key_is_said_at_once(alice, service):
    keys.issue(service=service, by=alice, name="partner")

    with pytest.raises(NameTaken) as raised:
        keys.issue(service=service, by=alice, name="partner", per_minute=0, expires_in=timedelta(days=9999))

    assert [refusal.blamed for refusal in raised.value.every] == ["name", "per_minute", "days"]
    assert isinstance(raised.value.every[1], Invalid)


def test_caller_that_asks_too_often_is_told_when_to_come_back(alice, service, counter):
    _key, secret = keys.issue(service=service, by=alice, name="busy", per_minute=2)

    answers = [send_request(service, secret) for _number in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 429]
    refused = answers[2]
    assert (refused.json["code"], refused.json["error"]["type"]) == ("too_often", "rate_limit_error")
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    assert send_request(service, secret, "v2/models/tiny", "GET").status == 200  # only answers of the model are counted
    _other, second = keys.issue(service=service, by=alice, name="calm", per_minute=2)
    assert send_request(service, second).status == 200


@pytest.mark.parametrize("ending", ["inf%65r", "infer#", "infer?x=1", "infer%3F"])
def test_address_written_otherwise_opens_no_way_around_the_pace(alice, service, counter, ending):
    _key, secret = keys.issue(service=service, by=alice, name="sly", per_minute=1)

    answers = [send_request(service, secret, f"v2/models/tiny/{ending}") for _number in range(2)]

    assert {answer.status for answer in answers} <= {404, 405, 400, 429}
    assert 200 not in {answer.status for answer in answers}


def test_service_bounds_every_caller_that_has_no_number_of_its_own(alice, service):
    endpoints.edit(service=service, description="", visibility="private", limits={"per_minute": 1})
    _key, secret = keys.issue(service=service, by=alice, name="partner")

    assert [send_request(service, secret).status for _number in range(2)] == [200, 429]
    assert call("POST", f"{service.url}/predict", user=alice, body=pictures.plain()).status == 200


def test_usage_tells_keys_of_one_name_apart(alice, client, service, counter):
    first, secret = keys.issue(service=service, by=alice, name="partner")
    send_request(service, secret)
    keys.revoke(key=first, by=alice)
    _second, other = keys.issue(service=service, by=alice, name="partner")
    send_request(service, other)
    counter.flush()
    client.force_login(alice)

    content = client.get(f"/api/v1/services/{service.pk}/usage/").json()

    assert sorted(row["requests"] for row in content["keys"].values()) == [1, 1]


def test_usage_is_told_by_key(alice, client, service, counter):
    key, secret = keys.issue(service=service, by=alice, name="partner")
    send_request(service, secret)
    call("POST", f"{service.url}/predict", user=alice, body=pictures.plain())
    counter.flush()
    client.force_login(alice)

    content = client.get(f"/api/v1/services/{service.pk}/usage/").json()
    page = client.get(reverse("inference:service-usage", args=[service.pk])).content.decode()

    assert {name: row["requests"] for name, row in content["keys"].items()} == {f"partner ({key.prefix})": 1}
    assert {name: row["requests"] for name, row in content["callers"].items()} == {str(alice): 1}
    assert "partner" in page
    key.delete()
    assert ServiceUsage.objects.filter(user=None).count() == 1  # stays counted


def test_errors_are_texts_in_the_open_protocol_and_objects_elsewhere(alice, service):
    for path, method in (("v2/models/none", "GET"), ("predict?nonsense=1", "POST")):
        for secret in ("aik_wrong", keys.issue(service=service, by=alice, name=f"k{path[:2]}{method}")[1]):
            body = send_request(service, secret, path, method).json
            if path.startswith("v2"):
                assert body["error"] == body["detail"]
            else:
                assert body["error"] == {
                    "message": body["detail"],
                    "type": "authentication_error" if body["status"] == 401 else "invalid_request_error",
                    "param": None,
                    "code": body["code"],
                }
            if secret == "aik_wrong":
                continue
            ServiceKey.objects.all().delete()


def test_api_makes_lists_and_revokes_keys_of_ones_own_services(alice, bob, service):
    api, stranger = APIClient(), APIClient()
    api.force_authenticate(alice)
    stranger.force_authenticate(bob)
    endpoints.edit(service=service, description="", visibility="public")
    url = f"/api/v1/services/{service.pk}/keys/"

    made = api.post(url, {"name": "partner", "per_minute": 5, "days": 3}, format="json")

    assert made.status_code == 201
    assert made.json()["secret"].startswith("aik_")
    assert made["Cache-Control"] == "no-store"
    assert [row["secret"] for row in api.get(url).json()] == [""]
    assert stranger.get(url).status_code == 403
    assert stranger.delete(f"{url}{made.json()['id']}/").status_code == 403
    assert api.delete(f"{url}{made.json()['id']}/").status_code == 204
    assert api.delete(f"{url}{made.json()['id']}/").status_code == 404
    assert api.get(url).json()[0]["opens"] is False


def test_page_shows_a_new_key_once(alice, bob, client, service):
    url = reverse("inference:service-keys", args=[service.pk])
    client.force_login(bob)
    assert client.get(url).status_code == 404
    client.force_login(alice)

    made = client.post(url, {"name": "partner", "per_minute": "", "days": ""})

    assert made.context["secret"] in made.content.decode()
    assert made.context["secret"] not in client.get(url).content.decode()
    again = client.post(url, {"name": "partner"})
    assert again.status_code == 422
    key = ServiceKey.objects.get()
    client.post(reverse("inference:service-key-revoke", args=[service.pk, key.pk]))
    assert "partner" not in client.get(url).content.decode()
    assert client.post(url, {"name": "partner"}).status_code == 200  # the name is free again


def test_pace_lets_through_what_was_allowed_in_any_minute():
    at = [1_000_000 * 60.0]

    def waits(count, moment):
        at[0] = 1_000_000 * 60 + moment
        return [rate_limits.wait_s("me", 10, clock=lambda: at[0]) for _number in range(count)]

    assert waits(10, 50) == [0] * 10
    (wait,) = waits(1, 59)
    assert wait > 1
    assert waits(1, 60 + 5)[0] > 0  # most of the old ones are still within the last minute
    assert waits(1, 59 + wait) == [0]  # what was promised holds
    assert waits(5, 60 + 30) == [0] * 4 + [waits(1, 60 + 30)[0]]
    assert waits(10, 60 * 5) == [0] * 10


def test_pace_is_counted_by_each_process_while_the_common_store_is_away(monkeypatch):
    class Away:
        def add(self, *args, **kwargs):
            raise ConnectionError("gone")

    monkeypatch.setattr(rate_limits, "cache", Away())

    assert [rate_limits.wait_s("lonely", 1, clock=lambda: 3e9) > 0 for _number in range(2)] == [False, True]
