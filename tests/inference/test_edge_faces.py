"""Pages and API of device groups, and the rules behind them."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from aiplatform.lib.errors import DomainError, Invalid
from inference.delivery.edge import agent_download, fleet, keys, packages, rollout
from inference.delivery.edge.models import EdgeDevice, EdgeGroup, EdgePackage, EdgeReport
from tests.cases import case_table
from tests.factories import models as factory

pytestmark = pytest.mark.django_db


@pytest.fixture
def group(alice):
    return fleet.create(user=alice, name="Gates")


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


def devices(group, alice, count):
    for number in range(count):
        fleet.add_device(group=group, name=f"gate-{number}", by=alice)
    EdgeDevice.objects.update(token_digest="x")
    return list(EdgeDevice.objects.filter(group=group).select_related("group__wanted", "group__before"))


def report(device, outcome, package=""):
    device = EdgeDevice.objects.select_related("group__wanted", "group__before").get(pk=device.pk)
    fleet.report(device, {"outcome": outcome, "package": package})


@pytest.mark.parametrize(("share", "reached"), [(1, 1), (10, 1), (50, 5), (100, 10)])
def test_release_reaches_the_share_that_was_asked_for_and_always_the_same(group, alice, version, share, reached):
    devices(group, alice, 10)
    fleet.release(group=group, version=version, share=share, by=alice)
    rows = EdgeDevice.objects.filter(group=group).select_related("group__wanted", "group__before")

    first = {row.pk for row in rows if fleet.wanted_by(row) is not None}

    assert len(first) == reached
    if share < 100:
        fleet.release(group=EdgeGroup.objects.get(), version=version, share=100, by=alice)
        assert first < {row.pk for row in rows.all() if fleet.wanted_by(row) is not None}


def test_others_keep_the_model_before_until_the_release_reaches_them(group, alice, version, tmp_path):
    devices(group, alice, 10)
    fleet.release(group=group, version=version, share=100, by=alice)
    newer = factory.model_version(alice, tmp_path, name="newer", task="tagging")
    fleet.release(group=group, version=newer, share=10, by=alice)
    rows = EdgeDevice.objects.filter(group=group).select_related("group__wanted", "group__before")

    assert sorted(fleet.wanted_by(row).model_label for row in rows) == ["cells v1"] * 9 + ["newer v1"]
    back = fleet.roll_back(group=EdgeGroup.objects.get(), by=alice)
    assert (back.wanted.model_label, back.before.model_label, back.number) == ("cells v1", "newer v1", 3)


def test_pages_name_what_a_device_runs_and_say_that_it_has_not_asked_since_a_release(
    group, alice, version, tmp_path, as_alice
):
    (device,) = devices(group, alice, 1)
    fleet.release(group=group, version=version, share=100, by=alice)
    report(device, "same", EdgePackage.objects.get().sha256)
    newer = factory.model_version(alice, tmp_path, name="newer", task="tagging")
    fleet.release(group=EdgeGroup.objects.get(), version=newer, share=100, by=alice)

    (shown,) = as_alice.get(f"/edge/{group.pk}/").context["devices"]
    page = as_alice.get(f"/edge/devices/{device.pk}/").context

    assert (shown.runs, shown.words, shown.look) == ("cells v1", "Not contacted since the release", "wait")
    assert (page["runs"], page["reports"][0]["package"]) == ("cells v1", "cells v1")


def test_release_is_halted_where_a_fifth_of_its_devices_fail(group, alice, version):
    rows = devices(group, alice, 10)
    sha = fleet.release(group=group, version=version, share=100, by=alice).wanted.sha256
    report(rows[0], "updated", sha)
    report(rows[1], "rolled_back")
    assert not EdgeGroup.objects.get().halted

    report(rows[2], "failed_self_test")

    held = EdgeGroup.objects.get()
    assert (held.halted, held.number) == (True, 2)
    fresh = EdgeDevice.objects.select_related("group__wanted", "group__before")
    assert fleet.wanted_by(fresh.get(pk=rows[0].pk)).sha256 == sha  # it runs there
    assert fleet.wanted_by(fresh.get(pk=rows[3].pk)) is None
    assert not fleet.release(group=held, version=version, share=10, by=alice).halted


def test_release_that_reached_few_is_no_model_before_of_the_next(group, alice, version, tmp_path):
    devices(group, alice, 10)
    fleet.release(group=group, version=version, share=100, by=alice)
    for number, name in enumerate(("second", "third")):
        fleet.release(group=group, version=factory.model_version(alice, tmp_path, name=name), share=10, by=alice)
        rows = EdgeDevice.objects.select_related("group__wanted", "group__before")
        labels = sorted(fleet.wanted_by(row).model_label for row in rows)
        assert labels == ["cells v1"] * 9 + [f"{name} v1"], number
    held = EdgeGroup.objects.get()
    assert fleet.reached_in(held) == {row.pk for row in rows if fleet.reached(row)}


def test_model_that_fails_with_pictures_halts_its_release(group, alice, version):
    made = devices(group, alice, 4)
    sha = fleet.release(group=group, version=version, share=100, by=alice).wanted.sha256

    def counted(requests, errors):
        device = EdgeDevice.objects.select_related("group__wanted", "group__before").get(pk=made[0].pk)
        counters = {"requests": requests, "errors": errors}
        fleet.report(device, {"outcome": "same", "package": sha, "counters": counters})
        device.refresh_from_db()
        return device.outcome, EdgeGroup.objects.get().halted

    assert counted(19, 19) == ("same", False)  # too few to say
    assert counted(100, 12) == ("same", False)  # may be chance
    assert counted(100, 30) == ("errors", True)


def test_device_whose_code_is_spent_is_added_once_more(group, alice):
    device, code = fleet.add_device(group=group, name="gate", by=alice)
    fleet.enrol(code=code, hardware={})
    with pytest.raises(DomainError):
        fleet.add_device(group=group, name="gate", by=alice)
    device.refresh_from_db()
    fleet.revoke(device=device, by=alice)

    again, fresh = fleet.add_device(group=group, name="gate", by=alice)

    assert (again.pk, again.uid == device.uid) == (device.pk, False)
    assert fleet.enrol(code=fresh, hardware={})["device"] == again.uid
    with pytest.raises(fleet.NotKnown):
        fleet.enrol(code=code, hardware={})


def test_command_rotates_the_key_that_signs_releases(group, alice, capsys):
    devices(group, alice, 1)
    number = keys.trust()["version"]

    call_command("rotate_edge_key")

    assert keys.trust()["version"] == number + 1
    assert str(number + 1) in capsys.readouterr().out


def test_release_goes_on_by_itself_where_devices_run_it_well(group, alice, version):
    made = devices(group, alice, 20)
    fleet.release(group=group, version=version, share=1, soak_minutes=30, by=alice)
    group.refresh_from_db()
    first = next(device for device in made if fleet.reached(EdgeDevice.objects.get(pk=device.pk)))
    report(first, "updated", group.wanted.sha256)
    rollout.sweep()
    group.refresh_from_db()
    assert (group.share, group.number) == (1, 1)  # its time has not come

    EdgeGroup.objects.update(stage_at=now() - timedelta(minutes=31))
    rollout.sweep()
    group.refresh_from_db()
    assert group.share == 1  # it runs there for a moment only
    EdgeDevice.objects.update(runs_well_since=now() - timedelta(minutes=31), seen_at=now() - timedelta(hours=1))
    rollout.sweep()
    group.refresh_from_db()
    assert group.share == 1  # nobody knows whether it runs there still
    EdgeDevice.objects.update(seen_at=now())
    rollout.sweep()
    rollout.sweep()
    group.refresh_from_db()
    assert (group.share, group.number) == (10, 2)
    EdgeGroup.objects.update(stage_at=now() - timedelta(minutes=31))
    rollout.sweep()
    group.refresh_from_db()
    assert group.share == 10  # the second of its devices does not run it yet
    second = next(device for device in made if device != first and fleet.reached(EdgeDevice.objects.get(pk=device.pk)))
    report(second, "rolled_back", "0" * 64)
    EdgeGroup.objects.update(stage_at=now() - timedelta(minutes=31))
    rollout.sweep()
    group.refresh_from_db()
    assert (group.share, group.halted) == (10, True)


def test_release_of_a_person_waits_for_the_person(group, alice, version):
    made = devices(group, alice, 2)
    fleet.release(group=group, version=version, share=50, by=alice)
    group.refresh_from_db()
    for device in made:
        report(device, "updated", group.wanted.sha256)
    EdgeGroup.objects.update(stage_at=now() - timedelta(days=31))

    rollout.sweep()

    group.refresh_from_db()
    assert group.share == 50
    with pytest.raises(Invalid):
        fleet.release(group=group, version=version, share=50, soak_minutes=-1, by=alice)


def test_reports_are_kept_when_something_changed_and_odd_ones_do_no_harm(group, alice, version):
    (device,) = devices(group, alice, 1)
    for outcome in ("offline", "same", "same", "later"):
        report(device, outcome)
    assert [row.outcome for row in EdgeReport.objects.order_by("pk")] == ["offline", "same", "later"]
    with pytest.raises(DomainError):
        report(device, "everything is fine")
    fleet.report(device, {
        "outcome": "same", "detail": "\x00", "package": 7, "number": float("inf"),
        "counters": {"requests": float("nan"), "x": [1], "y" * 99: "z" * 999}, "hardware": [1],
    })  # fmt: skip
    device.refresh_from_db()
    assert (device.detail, device.package, device.number, device.hardware) == ("", "", 0, {})
    assert list(device.counters.values()) == ["z" * 100]


def test_version_without_a_description_is_no_package(group, alice, tmp_path):
    mute = factory.model_version(alice, tmp_path, name="mute", task="tensor")

    with pytest.raises(packages.CannotRelease):
        fleet.release(group=group, version=mute, share=100, by=alice)
    with pytest.raises(DomainError):
        fleet.release(group=group, version=mute, share=33, by=alice)
    with pytest.raises(packages.CannotRelease):
        fleet.roll_back(group=group, by=alice)


def test_device_api_wants_a_token_of_a_device(client, api, group, alice, version):
    sha = fleet.release(group=group, version=version, share=100, by=alice).wanted.sha256
    for path in ("word", f"packages/{sha}"):
        assert client.get(f"/api/v1/edge/{path}").status_code == 401
        assert client.get(f"/api/v1/edge/{path}", headers={"Authorization": "Edge aipe_nobody"}).status_code == 401
        assert api.get(f"/api/v1/edge/{path}").status_code == 401  # a person is no device
    assert client.post("/api/v1/edge/report", {"outcome": "same"}).status_code == 401
    assert client.post("/api/v1/edge/enrol", {"code": "x"}).status_code == 401
    _made, code = fleet.add_device(group=group, name="gate", by=alice)
    own = client.post("/api/v1/edge/enrol", {"code": code}, content_type="application/json").json()
    headers = {"Authorization": f"Edge {own['token']}"}
    word = client.get("/api/v1/edge/word", headers=headers)
    again = client.get("/api/v1/edge/word", headers=headers | {"If-None-Match": word.headers["ETag"]})
    assert (word.status_code, again.status_code) == (200, 304)
    assert client.get(f"/api/v1/edge/packages/{'0' * 64}", headers=headers).status_code == 404
    part = client.get(f"/api/v1/edge/packages/{sha}", headers=headers | {"Range": "bytes=10-19"})
    assert part.status_code == 206
    assert len(b"".join(part.streaming_content)) == 10


def test_edge_api_of_people(api, bob, version):
    made = api.post("/api/v1/edge-groups/", {"name": "Gates"}, format="json").json()
    route = f"/api/v1/edge-groups/{made['id']}/"
    added = api.post(f"{route}enrolment/", {"name": "gate-1"}, format="json")
    assert added.status_code == 201
    assert added.json()["code"]
    released = api.post(f"{route}release/", {"version": "cells:1", "share": 10}, format="json").json()
    assert (released["wanted"], released["share"], released["number"], released["devices"]) == ("cells v1", 10, 1, 1)
    assert api.get(f"{route}devices/").json()[0]["enrolled"] is False
    assert api.post(f"{route}rollback/").status_code == 409
    stranger = APIClient()
    stranger.force_authenticate(bob)
    device = f"/api/v1/edge-devices/{added.json()['id']}/"
    for path in (route, device):
        assert stranger.get(path).status_code == 404
        assert stranger.delete(path).status_code == 404
    assert api.post(f"{device}revoke/").status_code == 200
    assert api.delete(device).status_code == 204
    assert api.delete(route).status_code == 204


def test_edge_pages(client, alice, bob, version):
    client.force_login(alice)
    assert "No devices yet" in client.get(reverse("inference:edge-list")).content.decode()
    assert client.post(reverse("inference:edge-new"), {"name": "/", "days_offline": 0}).status_code == 422
    made = client.post(reverse("inference:edge-new"), {"name": "Gates", "days_offline": 7})
    page = made.headers["Location"]
    group = EdgeGroup.objects.get()
    added = client.post(reverse("inference:edge-device-add", args=[group.pk]), {"name": "gate-1"})
    assert "enrol --server http://testserver --code" in added.content.decode()
    assert "enrol --server" not in client.get(page).content.decode()
    add = reverse("inference:edge-device-add", args=[group.pk])
    assert "--code" in client.post(add, {"name": "gate-1"}).content.decode()  # its code was not used
    EdgeDevice.objects.update(token_digest="x")
    assert client.post(add, {"name": "gate-1"}).status_code == 422
    EdgeDevice.objects.update(token_digest="")
    sent = {"version": version.pk, "share": 10}
    assert client.post(reverse("inference:edge-release", args=[group.pk]), sent).headers["Location"] == page
    assert "reached 10 %" in client.get(page).content.decode()
    assert client.post(reverse("inference:edge-release", args=[group.pk]), {"share": 3}).status_code == 422
    device = EdgeDevice.objects.get()
    shown = client.get(reverse("inference:edge-device", args=[device.pk])).content.decode()
    assert "Not set up yet" in shown
    client.force_login(bob)
    for name, pk in (("edge-group", group.pk), ("edge-device", device.pk)):
        assert client.get(reverse(f"inference:{name}", args=[pk])).status_code == 404
    assert client.post(reverse("inference:edge-delete", args=[group.pk]), {"confirm": "Gates"}).status_code == 404
    client.logout()
    agent = client.get(reverse("inference:edge-agent"))
    assert agent.content == agent_download.agent()


def test_deleting_a_model_leaves_what_devices_run(alice, group, version):
    from inference.registry import registration as registry

    sha = fleet.release(group=group, version=version, share=100, by=alice).wanted.sha256
    registry.delete(model=version.model, by=alice)

    group.refresh_from_db()
    assert group.wanted.sha256 == sha
    assert packages.package_file(sha).exists()


def test_packages_that_no_group_runs_are_removed_a_day_later(alice, group, version, tmp_path):
    first = fleet.release(group=group, version=version, share=100, by=alice).wanted
    for name, task in (("second", "tagging"), ("third", "segmentation")):
        fleet.release(
            group=group, version=factory.model_version(alice, tmp_path, name=name, task=task), share=100, by=alice
        )
    assert packages.package_file(first.sha256).exists()
    EdgePackage.objects.update(created_at=now() - timedelta(days=2))

    fleet.release(group=EdgeGroup.objects.get(), version=version, share=100, by=alice)
    assert {package.model_label for package in EdgePackage.objects.all()} == {"cells v1", "third v1"}
    assert packages.package_file(first.sha256).exists()
    fleet.delete(group=EdgeGroup.objects.get(), by=alice)

    assert not EdgePackage.objects.exists()
    assert not list((keys.folder() / "packages").iterdir())


@case_table("value", ["\\u0000", "\\ud800", "1e999", "[" * 2000 + "]" * 2000, "NaN", "9" * 5000], rollback=True)
@case_table("field", ["outcome", "detail", "package", "number", "counters", "hardware"], rollback=True)
def test_device_that_reports_what_nobody_can_keep_is_refused_or_passed_over(client, group, alice, field, value):
    _made, code = fleet.add_device(group=group, name="gate", by=alice)
    own = client.post("/api/v1/edge/enrol", {"code": code}, content_type="application/json").json()
    written = f'"{value}"' if value.startswith("\\u") else value
    body = f'{{"outcome": "same", "{field}": {written}}}'

    answer = client.post(
        "/api/v1/edge/report", body, content_type="application/json", headers={"Authorization": f"Edge {own['token']}"}
    )

    assert answer.status_code in (204, 400)
