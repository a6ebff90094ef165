"""The command palette and the badges: what they offer, and to whom."""

from __future__ import annotations

import pytest
from django.utils.timezone import now

from accounts.models import Role
from aiplatform.frame import badges, palette
from aiplatform.lib import fuzzy
from annotation.models import ImageTask
from annotation.services import projects
from datasets.models import Dataset
from inference.registry.models import Model
from tests.factories import annotation as make
from tests.factories import work
from workers.core.models import Alarm, AlarmRule, Approval, Membership, VirtualCluster


def names(client, query: str, group: str = "") -> list[str]:
    rows = client.get("/search/", {"q": query}).json()["results"]
    return [row["name"] for row in rows if group in ("", row["group"])]


def dataset(owner, name: str, **version) -> Dataset:
    made = Dataset.objects.create(owner=owner, name=name)
    made.versions.create(number=1, state="ready", image_count=3, annotated=True, **({"task": "detection"} | version))
    return made


@pytest.mark.parametrize(
    ("better", "worse", "query"),
    [
        ("Presets", "Parameter sets", "presets"),
        ("Parameter sets", "Presets", "sets"),
        ("Hyperparameter search", "Audit log", "hs"),
        ("Virtual clusters", "Ports", "vc"),
        ("New training", "Training", "new tr"),
        ("节点", "用量", "节"),
    ],
)
def test_fuzzy_score_prefers_the_nearer_text(better, worse, query):
    assert fuzzy.score(query, better) > fuzzy.score(query, worse)


@pytest.mark.parametrize(
    ("query", "text"), [("xyz", "Training"), ("", "Training"), ("g", ""), ("alic", "Virtual clusters")]
)
def test_fuzzy_score_of_no_match_is_zero(query, text):
    assert fuzzy.score(query, text) == 0


def test_palette_without_a_query_lists_pages_and_commands_of_the_reader(as_alice, as_anna):
    assert {"Presets", "Nodes"} <= set(names(as_alice, "", "page"))
    assert "Alerts" not in names(as_alice, "", "page")
    assert names(as_anna, "", "page") == ["Home", "Annotation"]
    assert "New training" in names(as_alice, "", "command")
    assert "New training" not in names(as_anna, "", "command")


def test_pages_of_commands_open_for_those_who_are_offered_them(as_alice, as_anna, as_olga):
    for client in (as_alice, as_anna, as_olga):
        rows = client.get("/search/").json()["results"]
        opened = {row["url"]: client.get(row["url"]).status_code for row in rows if row["url"] and not row.get("post")}
        assert {url: code for url, code in opened.items() if code != 200} == {}


def test_palette_finds_pages_by_their_entry_and_by_initials(as_alice):
    assert names(as_alice, "training presets")[0] == "Presets"
    assert names(as_alice, "hs")[0] == "Hyperparameter search"
    former = {"studies": "Hyperparameter search", "environments": "Workspaces", "commands": "Custom jobs"}
    assert {query: names(as_alice, query, "page")[0] for query in former} == former


def test_palette_offers_a_training_on_the_dataset_that_the_query_names(alice, as_alice, as_bob):
    version = dataset(alice, "bccd").versions.get()
    dataset(alice, "plain", task="")

    row = next(row for row in palette.results(alice, "new train bccd") if "bccd" in row["name"])

    assert (row["name"], row["url"], row["post"]) == (
        "New training on bccd", f"/training/new/?version={version.pk}", False,
    )  # fmt: skip
    assert [name for name in names(as_alice, "new training on plain") if "plain" in name] == []
    assert "New training on bccd" in names(as_alice, "train bccd", "command")
    assert [name for name in names(as_alice, "on", "command") if "bccd" in name] == []
    assert names(as_alice, "bccd") == ["bccd", "New training on bccd"]
    assert "New training on bccd" not in names(as_bob, "new train bccd")


def test_palette_stops_a_job_by_its_number(alice, as_alice, as_bob, cluster):
    job = work.job(alice, cluster, state="running", name="nightly")
    label = f"Stop job {job.pk} · nightly"

    row = next(row for row in palette.results(alice, f"stop {job.pk}") if row["name"] == label)
    answer = as_alice.post(row["url"], row["fields"])

    assert (row["post"], row["question"]) == (True, "Stop nightly?")
    assert answer.status_code == 302
    job.refresh_from_db()
    assert job.desired == "stop"
    assert label not in names(as_bob, f"stop {job.pk}")


def test_palette_offers_only_what_a_job_allows_now(alice, as_alice, cluster):
    work.job(alice, cluster, state="queued", name="nightly")

    assert [name for name in names(as_alice, "stop nightly") if "nightly" in name] != []
    assert [name for name in names(as_alice, "pause nightly", "command") if "nightly" in name] == []


def test_palette_switches_the_cluster(alice, as_alice, cluster):
    other = VirtualCluster.objects.create(name="lab two")
    Membership.objects.create(user=alice, cluster=other)
    alice.memberships.filter(cluster=cluster).update(is_current=True)

    row = next(row for row in palette.results(alice, "switch lab") if row["group"] == "command")
    as_alice.post(row["url"], row["fields"])

    assert row["name"] == "Switch to cluster lab two"
    assert alice.memberships.get(is_current=True).cluster == other


def test_palette_takes_chinese_words(alice, as_alice):
    dataset(alice, "bccd")
    alice.language = "zh-hans"
    alice.save()

    assert any("bccd" in name for name in names(as_alice, "new training bccd", "command"))
    assert names(as_alice, "节点", "page") == ["节点"]


def test_palette_shows_nothing_that_the_role_does_not_allow(alice, as_alice, cluster):
    dataset(alice, "bccd")
    work.job(alice, cluster, state="running", name="nightly")
    Model.objects.create(owner=alice, name="net")
    alice.roles.set([Role.objects.create(name="reader", actions=["overview.view", "self.manage"])])

    for query in ("stop nightly", "new training bccd", "deploy net", "bccd", "nightly", "net"):
        assert [
            row for row in palette.results(alice, query) if row["group"] != "page" and "theme" not in row["name"]
        ] == []


def test_badge_of_alerts_counts_active_ones_for_operators_only(olga, alice, as_olga, django_assert_num_queries):
    rule = AlarmRule.objects.get_or_create(key="node_silent")[0]
    Alarm.objects.create(rule=rule, subject="gpu-1", severity="critical", raised_at=now())
    Alarm.objects.create(rule=rule, subject="gpu-2", severity="critical", raised_at=now(), ended_at=now())
    Alarm.objects.create(rule=rule, subject="gpu-3", severity="critical")

    assert badges.counts_for(olga) == {"alerts": 1}
    assert badges.counts_for(alice) == {}
    with django_assert_num_queries(0):
        badges.counts_for(olga)
    assert "1 active alert" in as_olga.get("/account/").content.decode()


def test_badges_count_what_waits_for_the_reader_only(alice, bob, anna, cluster):
    task = make.first_task(alice)
    projects.add_member(task.set.project, username="anna", by=alice)
    ImageTask.objects.filter(pk=task.pk).update(state=ImageTask.State.REJECTED)
    cluster.approves_environments = True
    cluster.save()
    Approval.objects.create(job=work.job(bob, cluster, state="queued", kind="environment"))
    alice.memberships.filter(cluster=cluster).update(administers=True)

    assert badges.counts_for(alice) == {"annotation": 1, "jobs": 1}
    assert badges.counts_for(anna) == {"annotation": 1}
    assert badges.counts_for(bob) == {}
