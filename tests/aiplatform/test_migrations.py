"""Squashed migrations: the same tables and rows as by the single ones, and a way up from every earlier state."""

from __future__ import annotations

import os
import re
from itertools import product
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from accounts.access.permissions import SYSTEM_ADMIN
from aiplatform.cli import doctor, schema
from tests import old_databases, stored_sentences
from workers.core.models import Curve
from workers.jobs.output import point_files

#: Tables that were renamed, by both names.
RENAMED = ("accounts_keptanswer", "accounts_idempotencyrecord", "accounts_doorrules", "accounts_registrationpolicy")
#: Names of indexes and constraints that Django made of the table and columns of their time.
AUTOMATIC = re.compile(rf"\b(?:{'|'.join(RENAMED)})_\w+|\b\w+_[0-9a-f]{{8}}(?:_\w+)?\b")
#: Migrations one by one take minutes: in short on PostgreSQL alone, which is stricter with tables that hold rows.
ONE_BY_ONE = pytest.mark.proof if "AIP_TEST_DATABASE_URL" in os.environ else pytest.mark.long


@pytest.fixture(scope="module")
def upgraded(django_db_setup, django_db_blocker, tmp_path_factory):
    """A database migrated one by one with rows from early on, then filled, then upgraded to today."""
    with django_db_blocker.unblock(), old_databases.empty(tmp_path_factory.mktemp("single")):
        _early_people(old_databases.by_single_ones([("accounts", "0005_audit_trail_and_first_administrator")]))
        _early_clusters(old_databases.by_single_ones([("workers", "0005_cluster_quotas_and_bounds")]))
        last = old_databases.by_single_ones(old_databases.last_single())
        told = SimpleNamespace(schema=old_databases.schema(), early=_take_early_rows(last))
        told.seeded = old_databases.rows()
        told.filled = old_databases.fill(last)
        told.before = old_databases.rows()
        squashed = old_databases.by_squashed_ones()
        told.after = old_databases.rows()
        told.applied = set(MigrationRecorder(connection).applied_migrations())
        stored_sentences.write(squashed)
        call_command("migrate", verbosity=0, interactive=False)
        told.messages = stored_sentences.read()
        told.points = [(curve, _points(curve)) for curve in Curve.objects.select_related("attempt")]
        told.today = old_databases.schema()
        told.ahead = MigrationExecutor(connection).migration_plan(MigrationLoader(connection).graph.leaf_nodes())
    return told


def _points(curve: Curve) -> list[tuple[int, float, float]]:
    path = point_files.path(curve.attempt.job_id, curve.attempt.number, curve.key)
    return point_files.read(path, curve.count).tolist()


def _early_people(apps) -> None:
    role = apps.get_model("accounts", "Role").objects.get(name=SYSTEM_ADMIN)
    for name in ("olga", "later"):
        apps.get_model("accounts", "User").objects.create(username=name).roles.add(role)


def _early_clusters(apps) -> None:
    clusters = apps.get_model("workers", "VirtualCluster").objects
    clusters.create(name="lab", gpu_quota=3, gpus_per_user=2)
    clusters.create(name="free")


def _take_early_rows(apps) -> tuple[list, list]:
    """What became of the early rows; they are deleted."""
    quotas = apps.get_model("workers", "ClusterDevice").objects
    first = apps.get_model("accounts", "User").objects.filter(first=True)
    became = (
        list(quotas.values_list("cluster__name", "kind", "guaranteed", "per_user")),
        list(first.values_list("username", flat=True)),
    )
    apps.get_model("workers", "VirtualCluster").objects.exclude(name="default").delete()
    apps.get_model("accounts", "User").objects.all().delete()
    return became


@pytest.fixture(scope="module")
def fresh(django_db_setup, django_db_blocker, tmp_path_factory):
    """A new database by the squashed migrations."""
    with django_db_blocker.unblock(), old_databases.empty(tmp_path_factory.mktemp("squashed")):
        old_databases.by_squashed_ones()
        made = SimpleNamespace(schema=old_databases.schema(), rows=old_databases.rows())
        made.applied = set(MigrationRecorder(connection).applied_migrations())
    return made


@pytest.mark.long
@pytest.mark.proof
@pytest.mark.postgres
def test_squashed_migrations_make_the_tables_of_the_single_ones(fresh, upgraded):
    assert len(fresh.schema) >= 2
    assert fresh.schema == upgraded.schema


@pytest.mark.long
@pytest.mark.proof
@pytest.mark.postgres
def test_squashed_migrations_seed_the_rows_of_the_single_ones(fresh, upgraded):
    assert len(fresh.rows["accounts_role"]) == 3
    assert [row["name"] for row in fresh.rows["workers_virtualcluster"]] == ["default"]
    assert fresh.rows == upgraded.seeded


@ONE_BY_ONE
@pytest.mark.postgres
def test_database_that_is_created_from_the_models_equals_a_migrated_one(upgraded, fresh, django_db_blocker, tmp_path):
    with django_db_blocker.unblock(), old_databases.empty(tmp_path):
        schema.create()
        created, rows = old_databases.schema(), old_databases.rows()
        assert schema.pending() == []

    different = {what: _comparable(created[what]) ^ _comparable(upgraded.today[what]) for what in created}
    assert {what: lines for what, lines in different.items() if lines} == {}
    assert [row["name"] for row in rows["workers_virtualcluster"]] == ["default"]
    assert {row["name"] for row in rows["accounts_role"]} == {row["name"] for row in fresh.rows["accounts_role"]}


def test_creation_refuses_a_database_that_has_tables(django_db_setup, django_db_blocker, tmp_path):
    with django_db_blocker.unblock(), old_databases.empty(tmp_path):
        schema.create()
        with pytest.raises(RuntimeError, match="The database already has tables"):
            schema.create()


def test_creation_that_is_interrupted_leaves_an_empty_database(
    django_db_setup, django_db_blocker, monkeypatch, tmp_path
):
    def interrupt(_recorder):
        raise KeyboardInterrupt

    with django_db_blocker.unblock(), old_databases.empty(tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(MigrationRecorder, "ensure_schema", interrupt)
            with pytest.raises(KeyboardInterrupt):
                schema.create()
        remaining = connection.introspection.table_names()
        schema.bring_up_to_date(lambda _line: None)
        pending = schema.pending()

    assert remaining == []
    assert pending == []


def _comparable(found: set[tuple]) -> set[tuple]:
    """A part of a schema without what tells its history.

    Indexes keep names of renamed tables and columns; Django's own table of groups has wider ids after migrations.
    """
    words = (repr(line) for line in found if "auth_group_permissions" not in repr(line))
    return {AUTOMATIC.sub("automatic", line) for line in words}


@ONE_BY_ONE
@pytest.mark.postgres
def test_migrate_marks_squashed_migrations_applied_and_changes_no_row(upgraded):
    empty = {t for t, rows in upgraded.before.items() if not rows and t.startswith(old_databases.OURS)}
    assert upgraded.filled > 50
    assert empty == {"accounts_user_groups", "accounts_user_user_permissions"}  # of Django's own, unused
    assert upgraded.after == upgraded.before
    assert {(app, name) for app, (name, _) in old_databases.squashed().items()} <= upgraded.applied
    assert upgraded.ahead == []


@ONE_BY_ONE
@pytest.mark.postgres
def test_migrate_moves_quotas_and_marks_the_first_administrator(upgraded):
    assert upgraded.early == ([("lab", "gpu", 3, 2)], ["olga"])


@ONE_BY_ONE
@pytest.mark.postgres
def test_migrate_turns_stored_sentences_into_codes_and_facts(upgraded):
    kept = upgraded.messages

    assert kept.job_events == stored_sentences.EXPECTED
    assert kept.unknown == ("text", {"text": "sentence é"})
    assert [str(message) for message in kept.told] == [
        "Training “a” failed", "The program exited with code 3. See its log.", "Mine: 50 % done", "",
    ]  # fmt: skip
    assert kept.proof == {"driver": "580", "ok": False, "message": {
        "code": "node.eviction_not_proven", "facts": {"why": "it could not leave the card"}}}  # fmt: skip
    assert kept.alarms == [("gpu_sick", "n1 gpu0", {"note": {"code": "card.driver_hangs", "facts": {}}}),
                           ("storage_quota", "alice", {"user": 1})]  # fmt: skip


def _closed(loader: MigrationLoader, wanted: set) -> set:
    """With everything that `wanted` needs, by the graph of single migrations."""
    return {node for key in wanted for node in loader.graph.forwards_plan(key)}


@pytest.mark.long
def test_loader_takes_every_earlier_state_as_a_consistent_history(monkeypatch):
    """How far two apps were when the program was exchanged, in every combination that could be."""
    single = MigrationLoader(None, replace_migrations=False)
    chains = {app: replaced for app, (_, replaced) in old_databases.squashed().items()} | {"training": ["0001_initial"]}
    asked = 0
    for below, above in (("accounts", "workers"), ("workers", "inference"), ("workers", "training"),
                         ("datasets", "annotation"), ("datasets", "inference"), ("datasets", "training")):  # fmt: skip
        for low, high in product([None, *chains[below]], [None, *chains[above]]):
            applied = _closed(single, {(app, name) for app, name in ((below, low), (above, high)) if name})
            monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda self, a=applied: dict.fromkeys(a))
            loader = MigrationLoader(connection)
            loader.check_consistent_history(connection)
            for key in loader.graph.leaf_nodes():
                assert loader.graph.forwards_plan(key)
            asked += 1
    assert asked > 300


def test_makemigrations_numbers_the_next_migration_after_the_replaced_ones():
    from django.db.migrations.autodetector import MigrationAutodetector

    for name, replaced in old_databases.squashed().values():
        assert MigrationAutodetector.parse_number(name) == len(replaced)


def test_doctor_takes_a_database_of_replaced_migrations_for_todays(db):
    assert [finding.level for finding in doctor._schema()] == [doctor.OK]


def test_doctor_names_a_database_of_a_newer_program(db):
    MigrationRecorder(connection).record_applied("workers", "9999_of_tomorrow")

    assert [finding.text for finding in doctor._schema()] == ["this program is older than the database"]


@ONE_BY_ONE
@pytest.mark.postgres
def test_points_of_curves_move_into_files(upgraded):
    was = upgraded.before["workers_metricpoint"]

    assert was
    assert [(curve.key, curve.count, curve.step, curve.value) for curve, _points in upgraded.points] == [
        (row["key"], 1, row["step"], row["value"]) for row in was
    ]
    for curve, points in upgraded.points:
        assert points == [(curve.step, curve.value, curve.at.timestamp())]
        assert (curve.lowest, curve.highest, curve.attempt.metrics_step) == (curve.value, curve.value, curve.step)
