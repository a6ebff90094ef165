"""An administrator acts as somebody: traced, bannered, bounded, ended by one click."""

from __future__ import annotations

import pytest

from accounts.models import AuditEntry, NoticeChoices, User
from accounts.services import roles
from tests.conftest import signed_in
from tests.factories import people as cast

pytestmark = pytest.mark.postgres


def test_acting_as_is_traced_and_bannered_and_ends_by_one_click(olga, alice, as_olga):
    as_olga.post(f"/people/{alice.pk}/take-over/")
    page = as_olga.get("/account/")
    api = as_olga.get("/api/v1/me/").json()
    refused = as_olga.get("/people/")
    back = as_olga.post("/people/give-back/")

    assert page.context["user"] == alice
    assert "acting as <strong>alice</strong>" in page.content.decode()
    assert api["username"] == "alice"
    assert refused.status_code == 403
    assert back["Location"] == f"/people/{alice.pk}/"
    assert as_olga.get("/people/").status_code == 200
    trail = AuditEntry.objects.filter(verb__in=["takeover_began", "denied", "takeover_ended"]).order_by("pk")
    assert [(row.actor, row.behind, row.verb) for row in trail] == [
        ("olga", "", "takeover_began"),
        ("alice", "olga", "denied"),
        ("olga", "olga", "takeover_ended"),
    ]


def test_acting_as_leaves_what_belongs_to_the_person_alone(alice, as_olga):
    as_olga.post(f"/people/{alice.pk}/take-over/")

    answers = [
        as_olga.post("/account/tokens/", {"name": "x", "scope": "write", "days": ""}),
        as_olga.post("/account/password/", {}),
        as_olga.post("/account/", {"nickname": "x", "refresh_s": 5}),
        as_olga.get("/account/second-factor/"),
        as_olga.patch("/api/v1/me/", {"nickname": "x"}, "application/json"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 5
    assert not alice.api_tokens.exists()


def test_c05_acting_as_is_refused_beyond_ones_own_rights_and_in_a_chain(olga, alice, bob, as_olga):
    clerk = cast.user("clerk", role=None)
    clerk.roles.add(roles.create(name="clerks", actions=["people.manage"], by=None))
    as_clerk = signed_in(clerk)
    bob.roles.set(clerk.roles.all())

    above = as_clerk.post(f"/people/{olga.pk}/take-over/")
    as_clerk.post(f"/people/{bob.pk}/take-over/")
    chain = as_clerk.post(f"/people/{clerk.pk}/take-over/")
    own = as_olga.post(f"/people/{olga.pk}/take-over/")
    User.objects.filter(pk=clerk.pk).update(first=True)
    first = as_olga.post(f"/people/{clerk.pk}/take-over/")

    assert [answer.status_code for answer in (above, chain, own, first)] == [403] * 4


def test_acting_as_ends_with_the_administrators_right(olga, alice, as_olga):
    as_olga.post(f"/people/{alice.pk}/take-over/")
    olga.roles.clear()

    assert as_olga.get("/account/").status_code == 403  # olga herself, without rights
    assert as_olga.get("/api/v1/me/").status_code == 403


def test_acting_as_ends_when_the_person_may_more_than_the_administrator(db):
    clerk, carol = cast.user("clerk", role=None), cast.user("carol", role=None)
    clerk.roles.add(roles.create(name="clerks", actions=["people.manage"], by=None))
    client = signed_in(clerk)
    client.post(f"/people/{carol.pk}/take-over/")

    carol.roles.add(roles.create(name="strong", actions=["tasks.manage"], by=None))

    assert client.get("/account/").context["user"] == clerk


def test_acting_as_is_known_to_raw_applications(olga, alice, as_olga):
    from accounts.sign_in.asgi import find_user

    as_olga.post(f"/people/{alice.pk}/take-over/")
    cookie = f"sessionid={as_olga.session.session_key}".encode()

    assert find_user({"method": "GET", "path": "/", "headers": [(b"cookie", cookie)]}) == alice


@pytest.mark.parametrize("path", ["/account/notifications/", "/api/v1/me/notifications/"])
def test_c05_acting_as_shows_no_webhook_secret_of_the_person(alice, as_olga, path):
    NoticeChoices.objects.create(user=alice, webhook_url="https://example.org/", webhook_secret="s3cret" * 6)
    as_olga.post(f"/people/{alice.pk}/take-over/")

    answer = as_olga.get(path)

    assert answer.status_code == 403
    assert "s3cret" not in answer.content.decode()


def test_acting_as_ends_first_when_signing_out(olga, alice, as_olga):
    as_olga.post(f"/people/{alice.pk}/take-over/")

    as_olga.post("/logout/")

    trail = AuditEntry.objects.filter(verb__in=["takeover_ended", "signed_out"]).order_by("pk")
    assert [(row.actor, row.verb, row.target) for row in trail] == [
        ("olga", "takeover_ended", "alice"),
        ("olga", "signed_out", "olga"),
    ]
    assert as_olga.get("/account/").status_code == 302
