"""Secrets by name: what goes in never comes out, and nobody sees those of others."""

import logging

import pytest

from accounts.models import AuditEntry, NamedSecret
from accounts.services import named_secrets
from aiplatform.lib import sealed
from aiplatform.lib.errors import Invalid, NameTaken

pytestmark = pytest.mark.django_db
VALUE = "s3cr3t of alice, not to be told"


def test_h06_value_of_a_secret_goes_in_and_never_comes_out(client, alice, bob, caplog):
    caplog.set_level(logging.DEBUG)
    client.force_login(alice)
    answers = [
        client.post("/account/secrets/", {"name": "HF_TOKEN", "value": VALUE + "\r\n", "note": "hub"}, follow=True),
        client.post("/account/secrets/", {"name": "HF_TOKEN", "value": VALUE}),
        client.post("/account/secrets/", {"name": "9", "value": VALUE}),
        client.post("/api/v1/secrets/", {"name": "HF_TOKEN", "value": VALUE}, content_type="application/json"),
        client.post("/api/v1/secrets/", {"name": "Lower", "value": VALUE}, content_type="application/json"),
        client.get("/api/v1/secrets/"),
        client.get("/account/secrets/"),
    ]
    row = NamedSecret.objects.get()
    answers += [client.get(f"/account/secrets/{row.pk}/"), client.get(f"/api/v1/secrets/{row.pk}/")]

    assert [one.status_code for one in answers] == [200, 422, 422, 409, 400, 200, 200, 200, 200]
    assert named_secrets.values(alice, ["HF_TOKEN"]) == {"HF_TOKEN": VALUE}
    told = [one.content.decode() for one in answers] + [row.sealed, caplog.text, str(list(AuditEntry.objects.values()))]
    assert not [text for text in told if "s3cr3t" in text]
    assert AuditEntry.objects.filter(verb="secret_added", facts={"name": "HF_TOKEN"}).count() == 1
    client.force_login(bob)
    for path in (f"/account/secrets/{row.pk}/", f"/api/v1/secrets/{row.pk}/"):
        assert client.get(path).status_code == 404
    assert client.post(f"/account/secrets/{row.pk}/delete/").status_code == 404
    assert client.get("/api/v1/secrets/").json()["results"] == []


def test_a_secret_is_replaced_and_forgotten_and_what_is_wrong_is_said_without_it(client, alice, monkeypatch):
    row = named_secrets.add(user=alice, name="KEY", value="first value")
    client.force_login(alice)
    changed = {"value": "line 1 of it\r\nline 2 of it\n"}
    client.patch(f"/api/v1/secrets/{row.pk}/", changed, content_type="application/json")
    assert named_secrets.values(alice, ["KEY", "KEY"]) == {"KEY": "line 1 of it\nline 2 of it"}
    client.post(f"/account/secrets/{row.pk}/", {"value": "", "note": "new note"})
    row.refresh_from_db()
    assert (row.note, row.used_at is not None) == ("new note", True)

    for value, said in [
        ("abc  \n", "at least 6"),
        ("x" * 16_385, "at most 16384"),
        ("a\0bcdefg", "it contains characters that programs cannot read, or"),
    ]:
        with pytest.raises(Invalid, match=said) as refused:
            named_secrets.change(row, by=alice, value=value)
        assert value not in refused.value.sentences
    with pytest.raises(Invalid, match=r": names starting with AIP_ are reserved."):
        named_secrets.add(user=alice, name="AIP_TOKEN", value="something")
    with pytest.raises(NameTaken):
        named_secrets.add(user=alice, name="KEY", value="something")
    monkeypatch.setattr(named_secrets, "MAX_SECRETS", 1)
    with pytest.raises(Invalid, match="At most 1"):
        named_secrets.add(user=alice, name="OTHER", value="something")
    monkeypatch.setattr(sealed, "_fernet", lambda _key: sealed.Fernet(sealed.Fernet.generate_key()))
    with pytest.raises(Invalid, match="another key"):
        named_secrets.values(alice, ["KEY"])
    assert client.delete(f"/api/v1/secrets/{row.pk}/").status_code == 204
    with pytest.raises(named_secrets.MissingSecret, match="You have no secret KEY"):
        named_secrets.values(alice, ["KEY"])
