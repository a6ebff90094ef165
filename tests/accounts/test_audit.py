"""The audit trail: what is written, that it stays, who reads it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from django.db import Error, connection, transaction
from django.test import Client
from django.utils import timezone, translation

from accounts.models import AuditEntry
from accounts.models.audit import AppendOnly
from accounts.presentation import audit_facts, audit_sentences
from accounts.services import audit, audit_triggers, roles
from tests.conftest import signed_in
from tests.factories import people

pytestmark = pytest.mark.postgres
ROOT = Path(__file__).resolve().parents[2]


def verbs():
    return list(AuditEntry.objects.order_by("pk").values_list("verb", flat=True))


def test_audit_trail_records_sign_ins_without_names_nobody_has(alice, client):
    client.post("/login/", {"username": "alice", "password": "wrong"})
    client.post("/login/", {"username": "my secret phrase", "password": "wrong"})
    client.post("/login/", {"username": "alice", "password": "correct horse"})
    client.post("/logout/")

    assert verbs() == ["sign_in_failed", "sign_in_failed", "signed_in", "signed_out"]
    assert list(AuditEntry.objects.order_by("pk").values_list("target", flat=True))[:2] == ["alice", ""]
    assert AuditEntry.objects.filter(address="127.0.0.1").count() == 4


def test_audit_trail_records_a_refusal_once_on_pages_and_api(alice, as_alice):
    AuditEntry.objects.all()._raw_delete("default")

    as_alice.get("/people/")
    as_alice.get("/api/v1/users/")

    rows = AuditEntry.objects.order_by("pk")
    assert [(row.actor, row.verb, row.target) for row in rows] == [
        ("alice", "denied", "/people/"),
        ("alice", "denied", "/api/v1/users/"),
    ]


def test_audit_trail_entries_are_neither_changed_nor_deleted(olga):
    entry = audit.record(olga, "role_made", "viewer")

    for act in (entry.save, entry.delete):
        with pytest.raises(AppendOnly):
            act()
    for act in (AuditEntry.objects.all().delete, lambda: AuditEntry.objects.update(actor="mallory")):
        with pytest.raises(RuntimeError):
            act()


@pytest.mark.parametrize("sql", ["UPDATE accounts_auditentry SET actor = 'mallory'", "DELETE FROM accounts_auditentry"])
def test_audit_trail_is_guarded_by_the_database(olga, sql):
    audit.record(olga, "role_made", "viewer")
    audit_triggers.guard()
    audit_triggers.guard()  # again, as after every migrate

    with pytest.raises(Error, match="only ever added to"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)

    assert AuditEntry.objects.filter(actor="olga").exists()


def test_audit_trail_entry_is_not_forged_by_a_name_and_holds_no_secrets(olga):
    entry = audit.record(olga, "role_made", "x\n2026 root signed in\x00", password="hunter2", note="a\nb")

    assert entry.target == "x 2026 root signed in "
    assert entry.facts == {"note": "a b"}


def test_audit_trail_page_searches_filters_and_is_for_administrators(olga, alice, as_olga, as_alice):
    audit.record(olga, "role_made", "viewer")
    audit.record(olga, "group_made", "lab")

    def shown(query):
        return [row.target for row in as_olga.get(f"/people/audit/?{query}").context["page"].rows]

    assert shown("q=view") == ["viewer"]
    assert shown("verb=group_made") == ["lab"]
    assert shown("since=2999-01-01") == []
    assert shown(f"person={alice.pk}&verb=role_made") == []
    assert as_alice.get("/people/audit/").status_code == 403
    assert as_alice.get("/people/audit/export/").status_code == 403


def test_fact_words_told_puts_facts_in_words():
    facts = {"before": {"roles": ["User"], "groups": []}, "to": "", "sign_ins": 3}

    assert audit_facts.to_texts(facts) == [("before", "roles: User; groups: –"), ("to", "–"), ("sign ins", "3")]


def test_fact_words_know_every_fact_and_name_the_zone_of_moments():
    with translation.override("zh-hans"), timezone.override("Asia/Shanghai"):
        said = audit_facts.to_texts({"expires_at": "2027-02-19T10:00:00.5+00:00", "level": "use", "name": "2027"})

    assert said == [("到期", "2027-02-19 18:00 CST"), ("级别", "使用"), ("名称", "2027")]


@pytest.mark.parametrize(
    ("language", "rights", "fields", "severity"),
    [("en", "View models, old.right", "e-mail", "Critical"), ("zh-hans", "查看模型, old.right", "邮箱", "严重")],
)
def test_fact_words_name_rights_fields_and_severities_and_leave_what_is_unknown(language, rights, fields, severity):
    held = ["models.view", "old.right"]
    facts = {"actions": held, "before": held, "after": [], "fields": ["email"], "severity": "critical", "least": "info"}

    with translation.override(language):
        said = [words for _name, words in audit_facts.to_texts(facts)]

    assert said[:5] == [rights, rights, "–", fields, severity]
    assert said[5] != "info"


def test_audit_trail_page_shows_what_a_role_may_do_in_words(olga, as_olga):
    made = roles.create(name="viewer", description="d", actions=["models.view"], by=olga)
    roles.update(role=made, name="viewer", description="d", actions=["jobs.view"], by=olga)

    page = as_olga.get("/people/audit/?q=viewer").content.decode()

    assert "View models" in page
    assert "View jobs and the queue" in page
    assert "models.view" not in page
    assert "jobs.view" not in page


def test_audit_trail_export_runs_nothing_in_a_spreadsheet(olga, as_olga):
    audit.record(olga, "role_made", "=HYPERLINK(1)")

    text = as_olga.get("/people/audit/export/?verb=role_made").content.decode()

    assert "'=HYPERLINK(1)" in text
    assert ",=HYPERLINK" not in text
    assert AuditEntry.objects.filter(verb="trail_exported").count() == 1


def test_audit_trail_api_reads_by_time_and_refuses_nonsense(olga, alice):
    audit.record(olga, "role_made", "viewer")
    client = signed_in(olga)

    rows = client.get("/api/v1/audit/?verb=role_made&since=2000-01-01T00:00:00Z").json()["results"]

    assert [row["target"] for row in rows] == ["viewer"]
    assert client.get("/api/v1/audit/?since=yesterday").status_code == 400
    assert client.delete(f"/api/v1/audit/{rows[0]['id']}/").status_code == 405
    assert signed_in(alice).get("/api/v1/audit/").status_code == 403


def test_audit_trail_records_lockouts_and_api_tokens(alice, as_alice, client):
    for _n in range(7):
        client.post("/login/", {"username": "alice", "password": "wrong"})
    client.get("/api/v1/me/", headers={"Authorization": "Bearer aip_guess"})
    as_alice.post("/account/tokens/", {"name": "laptop", "scope": "read", "days": "30"})
    as_alice.post(f"/account/tokens/{alice.api_tokens.get().pk}/revoke/")

    assert {"locked_out", "token_unknown", "token_issued", "token_revoked"} <= set(verbs())
    assert "aip_" not in str(list(AuditEntry.objects.values_list("facts", flat=True)))


def test_b02_audit_trail_records_requests_for_others_things_without_flooding(alice, bob, as_bob):
    from accounts.services import tokens

    _token, secret = tokens.issue(user=bob, name="laptop")
    by_token = Client(headers={"Authorization": f"Bearer {secret}"})

    page, api = as_bob.get("/datasets/4711/"), by_token.get("/api/v1/datasets/4711/")
    as_bob.get("/no/such/page/")
    Client().get("/datasets/4711/")
    for number in range(30):
        as_bob.get(f"/datasets/{5000 + number}/")

    written = list(AuditEntry.objects.filter(verb="denied").order_by("pk"))
    assert (page.status_code, api.status_code) == (404, 404)
    assert [(row.actor, row.target) for row in written[:2]] == [
        ("bob", "/datasets/4711/"),
        ("bob", "/api/v1/datasets/4711/"),
    ]
    assert {row.facts["code"] for row in written} == {"not_found"}
    assert len(written) == 20
    assert "others" in written[-1].facts


def test_audit_trail_reads_as_sentences_with_links_to_who_and_what(olga, alice, as_olga, cluster):
    gone = people.user("rosa")
    audit.record(olga, "clusters_of_person_changed", alice, clusters=[cluster.pk, 99_999])
    audit.record(olga, "account_disabled", gone)
    audit.record(olga, "cluster_changed", cluster)
    audit.record(olga, "signed_in", olga)
    number = gone.pk
    gone.delete()

    page = " ".join(as_olga.get("/people/audit/").content.decode().split())
    said = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))

    assert "olga changed the clusters of alice clusters: default, #99999" in said
    assert f'<a href="/people/{alice.pk}/">alice</a>' in page
    assert f'href="/people/{olga.pk}/">olga</a> changed the cluster <a href="/clusters/{cluster.pk}/">' in page
    assert "disabled the account rosa" in said
    assert f'<a href="/people/{number}/">' not in page
    assert "signed in olga" not in said
    assert re.search(r'<time [^>]+ data-moment="UTC" title="just now \(UTC\)">\d{4}-\d\d-\d\d \d\d:\d\d:\d\d<', page)


#: Actions whose label names the object, and those of users who are the object themselves.
NAMED = {"all_alarms_silenced", "all_alarms_silence_ended", "edge_key_rotated", "trail_exported"}
ITSELF = {"signed_in", "signed_out", "recovery_code_used", "registered"}


def said(actor, verb, target, reader, **facts):
    entry = audit.record(actor, verb, target, **facts)
    audit_sentences.add_display([entry], reader=reader)
    return audit_sentences.sentence(entry)


@pytest.mark.parametrize(("language", "own"), [("en", "their own"), ("zh-hans", "自己")])
def test_every_audit_action_is_a_sentence_with_actor_and_object(olga, alice, language, own):
    facts = {"cluster": "default", "name": "laptop"}
    wrong = []
    with translation.override(language):
        for verb in [name for name, _label in audit.verb_choices()]:
            about = said(olga, verb, alice, olga, **facts)
            itself = said(alice, verb, alice, olga, **facts)
            unknown = said(None, verb, alice, olga, **facts)
            if not (about.startswith("olga ") and about.count("alice") == 1) or "–" in about:
                wrong.append((verb, about))
            if not itself.startswith("alice ") or not (own in itself or itself.count("alice") == 2 or verb in ITSELF):
                wrong.append((verb, itself))
            if unknown.split(maxsplit=1)[0] not in {"System", "Anonymous", "系统", "匿名访客"}:
                wrong.append((verb, unknown))

    assert not wrong


def test_every_audit_action_of_the_sources_has_an_object():
    """Calls of `audit.record` name an object, unless the label of the action does."""
    calls, without = 0, []
    for room in ("accounts", "workers", "datasets", "annotation", "training", "inference"):
        sources = {path: path.read_text() for path in (ROOT / room).rglob("*.py")}
        for path, text in sources.items():
            tree = ast.parse(text) if "audit.record" in text else ast.Module([], [])
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("audit.record", "audit.record_refusal"):
                    calls += 1
                    if len(node.args) < 3 and ast.literal_eval(node.args[1]) not in NAMED:
                        without.append((path.name, node.lineno))

    assert calls > 90
    assert not without


@pytest.mark.parametrize(
    ("verb", "target", "sentence"),
    [
        ("sign_in_failed", None, "Anonymous failed to sign in as an unknown user"),
        ("token_unknown", "/api/v1/me/", "Anonymous used an unknown API token at /api/v1/me/"),
        ("edge_key_rotated", None, "System rotated the key that signs releases to edge devices"),
        ("cluster_member_added", "anna", "System added anna to the cluster default"),
    ],
)
def test_audit_action_without_an_actor_names_a_visitor_or_the_platform(olga, verb, target, sentence):
    assert said(None, verb, target, olga, cluster="default") == sentence


def test_audit_actions_on_ones_own_account_read_as_such(olga, alice):
    secret = said(alice, "secret_added", alice, olga, name="WANDB_API_KEY")
    password = said(alice, "password_changed", alice, olga)
    other = said(olga, "password_changed", alice, olga)

    assert secret == "alice stored their own secret WANDB_API_KEY"
    assert password == "alice changed their own password"
    assert other == "olga changed the password of alice"


def test_filter_of_audit_actions_has_no_placeholder():
    labels = dict(audit.verb_choices())

    assert labels["cluster_member_added"] == "added … to the cluster …"
    assert not [label for label in labels.values() if "%" in label or "–" in label]


def test_audit_log_names_who_changed_a_cluster_of_a_user(olga, alice, as_olga, cluster):
    form = {"roles": [alice.roles.get().pk], "clusters": []}
    as_olga.post(f"/people/{alice.pk}/rights/", form)
    as_olga.post(f"/people/{alice.pk}/rights/", form | {"clusters": [cluster.pk]})

    rows = AuditEntry.objects.filter(verb__startswith="cluster_member").values_list("verb", "actor", "target")
    assert set(rows) == {("cluster_member_removed", "olga", "alice"), ("cluster_member_added", "olga", "alice")}


def test_audit_trail_asks_once_for_each_kind_of_thing(olga, alice, bob, as_olga, django_assert_max_num_queries):
    for _again in range(10):
        for person in (alice, bob):
            audit.record(olga, "account_changed", person, fields=["email"])
    as_olga.get("/people/audit/")

    with django_assert_max_num_queries(12):
        as_olga.get("/people/audit/")
