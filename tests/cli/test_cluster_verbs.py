"""`aip clusters`, `resource-groups`, `alarms`, `nodes devices`, `decision`: each against the real API."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from accounts.models import UserGroup
from tests.factories import people, work
from tests.factories import training as factory
from workers.core.models import AlarmAddress, Approval, ResourceGroup, VirtualCluster
from workers.planning import planner_input
from workers.planning.planner import record
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import bounds, clusters, members
from workers.resources.monitoring import alarms

pytestmark = pytest.mark.django_db


@pytest.fixture
def node1(db):
    return work.node("node1", gpus=4, cores=32)


@pytest.fixture
def lab(node1):
    return clusters.save(None, name="lab", devices={"gpu": Quota(2, per_user=1)})


def test_clusters_command_creates_changes_and_deletes(real_aip, olga, node1, capsys):
    limits_given = ("--cards", "gpu=3", "--borrow", "gpu", "--per-user", "gpu=2", "--jobs", "5", "--hours", "12")
    assert real_aip(olga, "clusters", "create", "lab", *limits_given, "--json") == 0
    made = VirtualCluster.objects.get(name="lab")
    assert json.loads(capsys.readouterr().out)["id"] == made.pk
    assert planner_input.quotas_of(made)["gpu"] == Quota(3, borrows=True, per_user=2)
    assert (made.jobs_per_user, made.max_runtime.total_seconds()) == (5, 12 * 3600)
    assert real_aip(olga, "clusters", "change", "lab", "--disk", "20GiB", "--max-disk", "1TiB") == 0
    made.refresh_from_db()
    assert (made.default_disk_bytes, made.max_disk_bytes) == (20 << 30, 1 << 40)
    assert real_aip(olga, "clusters", "change", "lab", "--max-disk", "none") == 0
    made.refresh_from_db()
    assert (made.default_disk_bytes, made.max_disk_bytes) == (20 << 30, None)
    capsys.readouterr()

    changes = ("--cards", "gpu=4", "--no-borrow", "gpu", "--jobs", "none", "--name", "vision")
    assert real_aip(olga, "clusters", "change", "lab", *changes) == 0
    made.refresh_from_db()
    assert planner_input.quotas_of(made)["gpu"] == Quota(4, borrows=False, per_user=2)  # what was left out stays
    assert (made.name, made.jobs_per_user, made.max_runtime.total_seconds()) == ("vision", None, 12 * 3600)

    assert real_aip(olga, "clusters", "change", "vision", "--cards", "gpu=5") == 1
    assert "5 × GPU requested; the nodes have 4." in capsys.readouterr().err
    assert real_aip(olga, "clusters", "delete", "vision") == 2  # nobody was asked
    assert real_aip(olga, "clusters", "delete", "vision", "--yes") == 0
    assert not VirtualCluster.objects.filter(pk=made.pk).exists()


@pytest.mark.parametrize(
    "words",
    [
        ("change", "lab"),
        ("change", "lab", "--cards", "gpu"),
        ("change", "lab", "--cards", "gpu=many"),
        ("change", "lab", "--jobs", "-3"),
        ("bounds", "lab", "--kind", "gpu"),
        ("bounds", "lab", "--kind", "tpu", "--cpus-max", "4"),
        ("add-member", "lab"),
        ("priority", "lab", "3", "soon"),
    ],
    ids=" ".join,
)
def test_clusters_command_answers_wrong_usage_and_changes_nothing(real_aip, olga, lab, words, capsys):
    assert real_aip(olga, "clusters", *words) == 2
    assert capsys.readouterr().err
    assert planner_input.quotas_of(lab)["gpu"] == Quota(2, per_user=1)


def test_clusters_command_shows_cards_and_use(real_aip, olga, alice, lab, node1, capsys):
    members.add(lab, [alice])
    running = work.job(alice, lab, state="running", gpus_per_node=1)
    work.hold(running, node1.devices.get(kind="gpu", index=0))

    assert real_aip(olga, "clusters", "kinds") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["gpu", "GPU", "Test", "card", "4", "2", "2"]
    assert real_aip(alice, "clusters", "status", "lab") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["gpu", "2", "1", "0", "0", "1"]
    assert lines[2].split()[0] == "cpu"
    assert lines[4].split() == ["alice", "1", "1", "0"]
    assert real_aip(olga, "nodes", "devices", "--kind", "gpu", "--node", "node1", "--json") == 0
    assert [row["used"] for row in json.loads(capsys.readouterr().out)] == [8, 0, 0, 0]
    assert real_aip(olga, "nodes", "devices") == 0
    assert "gpu0" in capsys.readouterr().out


def test_clusters_command_adds_and_removes_people_and_groups(real_aip, olga, alice, bob, lab, capsys):
    team = UserGroup.objects.create(name="team")
    team.users.add(bob)

    assert real_aip(olga, "clusters", "add-member", "lab", "--user", "alice", "--group", "team") == 0
    assert set(lab.memberships.values_list("user__username", "direct")) == {("alice", True), ("bob", False)}
    assert real_aip(olga, "clusters", "charge", "lab", "alice") == 0
    assert lab.memberships.get(user=alice).administers
    capsys.readouterr()
    assert real_aip(alice, "clusters", "members", "lab", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert ([row["user"] for row in told["people"]], told["groups"]) == (["alice", "bob"], ["team"])
    assert real_aip(olga, "clusters", "remove-member", "lab", "--user", "bob") == 0
    assert "remains a member through a group until removed from it." in capsys.readouterr().err
    assert real_aip(olga, "clusters", "charge", "lab", "alice", "--end") == 0
    assert real_aip(olga, "clusters", "remove-member", "lab", "--group", "team", "--user", "alice") == 0
    assert not lab.memberships.exists()
    assert real_aip(bob, "clusters", "members", str(lab.pk)) == 5


def test_clusters_command_refuses_who_is_no_administrator(real_aip, alice, bob, lab):
    members.add(lab, [alice])

    assert real_aip(alice, "clusters", "add-member", "lab", "--user", "bob") == 5
    assert real_aip(alice, "clusters", "change", "lab", "--cards", "gpu=4") == 1
    assert lab.memberships.count() == 1


def test_bounds_command_changes_one_kind_alone(real_aip, olga, lab, capsys):
    assert real_aip(olga, "clusters", "bounds", "lab", "--kind", "gpu", "--cpus-max", "8", "--memory-max", "32") == 0
    assert "32 GiB" in capsys.readouterr().out

    changed = bounds.bounds(lab, "gpu")
    assert (changed.cpus_min, changed.cpus_max) == (2, 8)
    assert (changed.memory_min_mib, changed.memory_max_mib) == (400, 32 * 1024)
    assert bounds.bounds(lab, "cpu") == bounds.Bounds()


def test_cluster_administrator_orders_queue_and_answers_by_command(real_aip, alice, bob, lab, capsys):
    members.add(lab, [alice, bob])
    members.set_administrator(lab, alice, on=True)
    waiting, running = work.job(bob, lab), work.job(bob, lab, state="running", max_runtime=timedelta(hours=2))

    assert real_aip(alice, "clusters", "priority", "lab", waiting.pk, "70") == 0
    waiting.refresh_from_db()
    assert waiting.priority == 70
    assert real_aip(bob, "extend", running.pk, "--hours", "5", "--reason", "two epochs") == 0
    asked = running.time_requests.get()
    capsys.readouterr()
    assert real_aip(alice, "requests", "list", "--cluster", "lab", "--answer", "open", "--json") == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [asked.pk]
    assert real_aip(alice, "requests", "grant", asked.pk, "--hours", "3", "--word", "until six") == 0
    running.refresh_from_db()
    assert running.more_time == timedelta(hours=3)
    approval = Approval.objects.create(job=waiting)
    assert real_aip(alice, "approvals", "refuse", approval.pk, "--word", "not today") == 0
    waiting.refresh_from_db()
    assert (waiting.state, waiting.reason) == ("stopped", "refused")
    capsys.readouterr()
    assert real_aip(alice, "approvals", "list", "--cluster", "lab", "--json") == 0
    assert [row["answer"] for row in json.loads(capsys.readouterr().out)] == ["denied"]


def test_resource_groups_command_keeps_machines_for_kinds_of_jobs(real_aip, olga, node1, capsys):
    window = ("--window", "mon-fri@09:00-21:00", "--window", "sat,mon@22:00-02:00")
    assert real_aip(olga, "resource-groups", "create", "dev", "--node", "node1", "--kind", "evaluation", *window) == 0
    kept = ResourceGroup.objects.get(name="dev")
    assert [(one.weekdays, one.begins.hour) for one in kept.windows.order_by("pk")] == [
        ([0, 1, 2, 3, 4], 9),
        ([0, 5], 22),
    ]
    capsys.readouterr()
    assert real_aip(olga, "resource-groups", "show", "dev") == 0
    told = capsys.readouterr().out
    assert "mon-fri@09:00-21:00, mon,sat@22:00-02:00" in told
    assert "UTC" in told

    assert real_aip(olga, "resource-groups", "change", "dev", "--kind", "training") == 0
    kept.refresh_from_db()
    assert (kept.kinds, kept.windows.count(), kept.nodes.get()) == (["training"], 2, node1)
    assert real_aip(olga, "resource-groups", "change", "dev", "--always", "--name", "training") == 0
    assert not kept.windows.exists()
    assert (
        real_aip(olga, "resource-groups", "create", "x", "--node", "node1", "--kind", "training", "--window", "9-21")
        == 2
    )
    assert real_aip(olga, "resource-groups", "list") == 0
    assert "always" in capsys.readouterr().out
    assert real_aip(olga, "resource-groups", "delete", "training", "--yes") == 0
    assert not ResourceGroup.objects.exists()
    assert real_aip(olga, "resource-groups", "show", "training") == 5


def test_alarms_command_changes_rules_and_addresses(real_aip, olga, alice, capsys):
    alarms.ensure_rules()

    assert real_aip(olga, "alarms", "rules") == 0
    assert "node_silent" in capsys.readouterr().out
    changed = ("--off", "--severity", "info", "--for", "90", "--no-send")
    assert real_aip(olga, "alarms", "rule", "node_silent", *changed, "--json") == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["enabled"], row["severity"], row["for_s"], row["send"]) == (False, "info", 90, False)
    assert real_aip(olga, "alarms", "rule", "node_silent") == 2
    assert real_aip(olga, "alarms", "rule", "nothing", "--on") == 5
    assert real_aip(olga, "alarms", "tell", "ops@example.org", "--least", "critical") == 0
    told = AlarmAddress.objects.get()
    assert (told.channel, told.target, told.least) == ("mail", "ops@example.org", "critical")
    assert real_aip(olga, "alarms", "addresses") == 0
    assert "ops@example.org" in capsys.readouterr().out
    assert real_aip(alice, "alarms", "untell", told.pk) == 1
    assert real_aip(olga, "alarms", "untell", told.pk) == 0
    assert not AlarmAddress.objects.exists()


def test_alarms_command_shows_a_webhooks_secret_once(real_aip, olga, monkeypatch, capsys):
    monkeypatch.setattr("accounts.services.outbox.check_address", lambda target: None)

    assert real_aip(olga, "alarms", "tell", "https://hooks.example.org/a") == 0

    assert capsys.readouterr().out.strip() == AlarmAddress.objects.get().secret
    assert real_aip(olga, "alarms", "addresses", "--json") == 0
    assert "secret" not in json.loads(capsys.readouterr().out)[0]


def test_jobs_command_finds_by_cluster_and_stops_together(real_aip, olga, alice, lab, cluster, capsys):
    here, there = work.job(alice, lab, name="seg"), work.job(alice, cluster, name="seg")

    assert real_aip(olga, "jobs", "list", "--cluster", "lab", "--search", "se", "--json") == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [here.pk]
    assert real_aip(olga, "jobs", "stop-many", here.pk, there.pk, 10**6) == 0
    assert "Requested a stop of 2; 0 had ended." in capsys.readouterr().err
    assert real_aip(people.user("carl"), "jobs", "stop-many", here.pk) == 1


def test_jobs_command_forces_a_stop_and_says_what_came_of_it(real_aip, olga, alice, lab, capsys):
    job = work.job(alice, lab, state="running")

    assert real_aip(alice, "jobs", "stop", job.pk, "--force") == 1
    assert real_aip(olga, "jobs", "stop", job.pk, "--force") == 0

    assert "Force stop requested." in capsys.readouterr().err
    job.refresh_from_db()
    assert job.forced_at is not None


def test_train_command_forces_a_stop_by_the_number_of_the_training(real_aip, olga, alice, lab, capsys):
    work.job(alice, lab)  # so that training and job have different numbers
    members.add(lab, [alice])
    training = factory.training(alice, cluster=lab, state="running")

    assert real_aip(alice, "train", "stop", training.pk, "--force") == 1
    assert real_aip(olga, "train", "stop", training.pk, "--force") == 0

    assert "Force stop requested." in capsys.readouterr().err
    training.job.refresh_from_db()
    assert training.job.forced_at is not None


def test_decision_command_writes_a_file_and_shows_history(real_aip, olga, lab, tmp_path, capsys):
    kept = tmp_path / "now.json"

    assert real_aip(olga, "decision", "--to", kept) == 0
    assert [node.name for node in record.load(json.loads(kept.read_text())).snapshot.nodes] == ["node1"]
    assert real_aip(olga, "history", "--of", "machines", "--node", "node1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["step"] == 10
    assert real_aip(olga, "history", "--span", "5y") == 2
