"""Sign-in by OpenID Connect, against a provider that listens on this machine and signs for real."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.utils.timezone import now

from accounts.access.permissions import ANNOTATOR, SYSTEM_ADMIN, USER
from accounts.models import AuditEntry, Identity, Role, User
from accounts.services import account_deletion, registration, second_factor
from tests.factories import people as cast
from tests.fakes import provider as fake

pytestmark = [pytest.mark.postgres, pytest.mark.sockets("a provider of its own")]


@pytest.fixture
def there(db, settings):
    with fake.provider() as provider:
        settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID = provider.issuer, fake.CLIENT
        settings.OIDC_CLIENT_SECRET = fake.SECRET
        yield provider


def out(client, next_="") -> str:
    """Go to the provider; its address."""
    answer = client.get("/login/with/", {"next": next_} if next_ else {})
    assert answer.status_code == 302
    return answer["Location"]


def arrive(client, there, next_=""):
    """The whole way out and back."""
    return client.get("/login/with/back/?" + there.authorize(out(client, next_)))


def said(answer) -> str:
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


def signed_in(client) -> bool:
    return "_auth_user_id" in client.session


def test_openid_adds_a_new_person_and_knows_them_the_next_time(there, client):
    first = arrive(client, there, "/account/")
    grace = User.objects.get()
    there.person["preferred_username"] = "renamed"
    second = Client()
    arrive(second, there)

    assert first["Location"] == "/account/"
    assert (grace.username, grace.nickname) == ("grace", "Grace Hopper")
    assert not grace.has_usable_password()
    assert not grace.actions()
    assert signed_in(client)
    assert signed_in(second)
    assert (Identity.objects.get().issuer, Identity.objects.get().subject) == (there.issuer, "42")
    trail = AuditEntry.objects.order_by("pk").values_list("verb", flat=True)
    assert list(trail) == ["registered", "identity_linked", "signed_in", "signed_in"]
    assert AuditEntry.objects.filter(verb="signed_in").first().facts == {"way": "openid"}


def test_openid_button_shows_where_a_provider_is_set_and_keeps_next(there, client, settings):
    settings.OIDC_NAME = "Lab <Login>"

    page = client.get("/login/?next=/jobs/")
    settings.OIDC_ISSUER = ""

    assert 'href="/login/with/?next=/jobs/"' in page.content.decode()
    assert "Sign in with Lab &lt;Login&gt;" in page.content.decode()
    assert "/login/with/" not in client.get("/login/").content.decode()
    assert client.get("/login/with/").status_code == client.get("/login/with/back/").status_code == 404


def test_a06_openid_sign_in_changes_the_session_id_and_drops_its_content(there, client):
    address = out(client)
    before = client.session.session_key

    client.get("/login/with/back/?" + there.authorize(address))

    assert client.session.session_key != before
    assert "sign_on" not in client.session


@pytest.mark.parametrize("next_", ["//e.vil", "https://e.vil/", "/\\e.vil", "javascript:alert(1)"])
def test_a08_openid_next_stays_on_this_site(there, client, next_):
    assert arrive(client, there, next_)["Location"] == "/"


def test_openid_refuses_the_answer_of_another_browser(there, client):
    query = there.authorize(out(client))
    stranger = Client()

    answers = [
        stranger.get("/login/with/back/?" + query),  # never went out
        client.get("/login/with/back/?code=code-0&state=another"),
        client.get("/login/with/back/?" + query),  # what was kept counts once, also after a wrong state
    ]

    assert [answer["Location"] for answer in answers] == ["/login/"] * 3
    assert "This sign-in could not be completed. Start again." in said(answers[0])
    assert not signed_in(client)
    assert not User.objects.exists()


def test_openid_takes_no_answer_twice(there, client):
    query = there.authorize(out(client))

    client.get("/login/with/back/?" + query)
    again = Client()
    session = again.session
    session["sign_on"] = {"state": parse_qs(query)["state"][0], "nonce": "n", "verifier": "v", "at": time.time()}
    session.save()
    second = again.get("/login/with/back/?" + query)

    assert signed_in(client)
    assert "This sign-in could not be completed. Start again." in said(second)
    assert not signed_in(again)


@pytest.mark.parametrize(
    "lie",
    [
        {"claims": {"nonce": "another"}},
        {"claims": {"nonce": None}},
        {"claims": {"aud": "another"}},
        {"claims": {"aud": "another", "azp": fake.CLIENT}},
        {"claims": {"iss": "https://another.example"}},
        {"claims": {"exp": 1_000_000_000}},
        {"claims": {"exp": None}},
        {"claims": {"iat": 9_000_000_000}},
        {"claims": {"sub": None}},
        {"claims": {"sub": 42}},
        {"algorithm": "none"},
        {"algorithm": "HS256"},
        {"signed_by": "two"},
    ],
    ids=str,
)
def test_openid_lets_nobody_in_by_an_invalid_token(there, client, lie):
    for name, value in lie.items():
        setattr(there, name, value)

    answer = arrive(client, there)

    assert answer["Location"] == "/login/"
    assert "This sign-in could not be completed. Start again." in said(answer)
    assert not signed_in(client)
    assert not User.objects.exists()


def test_openid_provider_refuses_a_code_without_its_verifier(there, client):
    query = there.authorize(out(client))
    session = client.session
    session["sign_on"] |= {"verifier": "another"}
    session.save()

    assert "This sign-in could not be completed. Start again." in said(client.get("/login/with/back/?" + query))


def test_openid_refusal_at_the_provider_leads_back_to_sign_in(there, client):
    state = parse_qs(urlsplit(out(client)).query)["state"][0]

    answer = client.get(f"/login/with/back/?error=access_denied&state={state}")

    assert (answer["Location"], "This sign-in could not be completed. Start again." in said(answer)) == (
        "/login/",
        True,
    )


def test_openid_sign_in_that_took_too_long_counts_no_more(there, client):
    query = there.authorize(out(client))
    session = client.session
    session["sign_on"] |= {"at": time.time() - 601}
    session.save()

    assert "This sign-in could not be completed. Start again." in said(client.get("/login/with/back/?" + query))


def test_openid_says_when_the_provider_is_away_and_passwords_work(there, alice, client, settings):
    query = there.authorize(out(client))
    settings.OIDC_ISSUER = "http://127.0.0.1:9"  # nobody listens there

    begun, finished = Client().get("/login/with/"), client.get("/login/with/back/?" + query)
    local = client.post("/login/", {"username": "alice", "password": "correct horse"})

    assert begun["Location"] == finished["Location"] == "/login/"
    assert "The sign-in service does not respond correctly." in said(begun)
    assert "The sign-in service does not respond correctly." in said(finished)
    assert local["Location"] == "/"


def test_openid_refuses_a_provider_under_another_name(there, client, settings):
    settings.OIDC_ISSUER = there.issuer + "/realm"  # its description names another issuer

    assert "The sign-in service does not respond correctly. Try again in a" in said(client.get("/login/with/"))


def test_openid_numbers_a_taken_name_and_takes_over_no_account(there, client):
    grace = cast.user("Grace")

    arrive(client, there)

    assert User.objects.exclude(pk=grace.pk).get().username == "grace2"


@pytest.mark.parametrize(
    ("username", "email", "becomes"),
    [
        ("grace hopper", "", "grace-hopper"),
        ("../../etc", "", "etc"),
        ("root", "g.hopper@example.org", "g.hopper"),
        ("", "", "person"),
        ("数据", "", "数据"),
    ],
)
def test_openid_turns_names_from_outside_into_usernames(there, client, username, email, becomes):
    there.person |= {"preferred_username": username, "email": email, "email_verified": True}

    arrive(client, there)

    assert User.objects.get().username == becomes


def test_openid_links_by_email_only_where_allowed_and_verified(there, client, settings):
    there.person |= {"email": "ada@example.org", "email_verified": False}
    ada = cast.user("ada")
    User.objects.filter(pk=ada.pk).update(email="Ada@example.org")

    settings.OIDC_LINK_BY_EMAIL = True
    arrive(client, there)
    not_verified = Identity.objects.get().user
    Identity.objects.all().delete()
    there.person |= {"email_verified": True}
    settings.OIDC_LINK_BY_EMAIL = False
    arrive(Client(), there)
    not_allowed = Identity.objects.get().user
    Identity.objects.all().delete()
    User.objects.exclude(pk=ada.pk).update(email="")
    settings.OIDC_LINK_BY_EMAIL = True
    arrive(Client(), there)

    assert ada not in {not_verified, not_allowed}
    assert Identity.objects.get().user == ada


def test_c05_openid_never_links_the_first_administrator_by_email(there, client, settings, olga):
    settings.OIDC_LINK_BY_EMAIL = True
    User.objects.filter(pk=olga.pk).update(email="o@example.org", first=True)
    there.person |= {"email": "o@example.org", "email_verified": True}

    arrive(client, there)

    assert Identity.objects.get().user != olga


def test_openid_follows_the_rule_of_registration_for_new_people(there, client, olga):
    registration.set_mode("closed", by=olga)
    closed = arrive(client, there)
    none_made = User.objects.filter(username="grace").exists()
    registration.set_mode("approval", by=olga)
    asked = arrive(client, there)
    again = arrive(client, there)
    User.objects.filter(username="grace").update(awaiting=False, is_active=True)
    arrive(client, there)

    assert "registration is closed" in said(closed)
    assert not none_made
    assert "Your registration was received. You can sign in after an" in said(asked)
    assert "Your registration was received. You can sign in after an" in said(again)
    assert signed_in(client)
    assert AuditEntry.objects.filter(verb="identity_refused").count() == 3


def test_a06_openid_keeps_a_disabled_account_out(there, client):
    arrive(Client(), there)
    User.objects.update(is_active=False)

    answer = arrive(client, there)

    assert "disabled" in said(answer)
    assert not signed_in(client)
    assert AuditEntry.objects.filter(verb="identity_refused", target="grace").count() == 1


def test_openid_does_not_enter_a_deleted_account_again(there, client, olga):
    arrive(Client(), there)
    grace = User.objects.get(username="grace")

    account_deletion.delete(user=grace, by=olga)
    arrive(client, there)

    assert Identity.objects.get().user.username == "grace2"


def test_openid_roles_follow_the_providers_groups_and_others_stay(there, client, settings, olga):
    settings.OIDC_ROLE_CLAIM, settings.OIDC_ROLES = "groups", {"lab": USER, "ops": SYSTEM_ADMIN, "x": "missing"}
    cast.user("anna", role=ANNOTATOR)
    cast.user("bob")
    there.person["groups"] = ["lab", "ops", "x"]
    arrive(client, there)
    grace = User.objects.get(username="grace")
    had = set(grace.roles.values_list("name", flat=True))
    grace.roles.add(Role.objects.get(name=ANNOTATOR))

    there.person["groups"] = "lab"
    arrive(Client(), there)

    assert had == {USER, SYSTEM_ADMIN}
    assert set(grace.roles.values_list("name", flat=True)) == {USER, ANNOTATOR}


def test_openid_roles_may_have_the_former_name_of_a_preset_role(there, client, settings, olga):
    settings.OIDC_ROLE_CLAIM, settings.OIDC_ROLES = "groups", {"labelers": "Annotation person"}
    there.person["groups"] = ["labelers"]

    arrive(client, there)

    assert User.objects.get(username="grace").roles.get().name == ANNOTATOR


def test_c06_openid_does_not_take_the_last_administrators_role(there, client, settings):
    settings.OIDC_ROLE_CLAIM, settings.OIDC_ROLES = "groups", {"ops": SYSTEM_ADMIN}
    cast.user("olga", role=SYSTEM_ADMIN)
    User.objects.filter(username="olga").update(is_active=False)
    there.person["groups"] = ["ops"]
    arrive(client, there)

    there.person["groups"] = []
    arrive(Client(), there)

    assert User.objects.get(username="grace").can("people.manage")


def test_openid_reads_user_info_of_the_same_person_for_missing_claims(there, client):
    there.person = {"sub": "42"}
    there.userinfo = {"sub": "42", "preferred_username": "ada", "email": "a@example.org", "email_verified": True}
    arrive(client, there)
    there.userinfo = there.userinfo | {"sub": "43"}

    lied = arrive(Client(), there)

    assert list(User.objects.values_list("username", "email")) == [("ada", "a@example.org")]
    assert "This sign-in could not be completed. Start again." in said(lied)


def test_openid_sends_its_secret_in_the_body_where_the_provider_wants_it(there, client):
    there.methods = ["client_secret_post"]

    arrive(client, there)

    assert signed_in(client)


def test_openid_sign_in_still_requires_the_local_second_factor(there, client):
    arrive(Client(), there)
    grace = User.objects.get()
    phone = pyotp.TOTP(second_factor.start_setup(grace)[0])
    codes = second_factor.confirm(grace, phone.at(now()))

    answer = arrive(client, there, "/account/")
    half = signed_in(client)
    second = client.post("/login/code/", {"code": codes[0]})

    assert (answer["Location"], half) == ("/login/code/", False)
    assert second["Location"] == "/account/"
    assert AuditEntry.objects.filter(verb="signed_in").first().facts == {"way": "openid"}


def test_openid_identities_make_one_account_of_two_first_arrivals(there, monkeypatch):
    from accounts.services import identities

    arrival = identities.Arrival(issuer=there.issuer, subject="42", username="grace")
    other = identities.enter(arrival)
    asked = []

    def known(arrival, really=identities._find_user):
        asked.append(1)
        return really(arrival) if len(asked) > 1 else None  # the first look came too early

    monkeypatch.setattr(identities, "_find_user", known)

    assert identities.enter(arrival) == other
    assert User.objects.count() == 1
