"""Each main page reads the database no more often than this."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from aiplatform.frame import badges
from aiplatform.lib import header_sources
from tests.bench import pages

USUAL = (
    9  # of a list: seven of the frame (session, account, rights, clusters, GPUs, bell, savepoint), rows, their number
)
#: page of the bench → queries for an operator, where they are more than `USUAL`.
MAX_QUERIES = {
    "overview": 34, "datasets": 11, "dataset": 14, "annotation": 15, "annotator": 17, "trainings": 13,
    "training": 22, "new training": 24, "new command": 19, "YAML editor": 18, "models": 13, "model": 23,
    "evaluation": 11, "new evaluation": 18, "new service": 13, "services": 10, "pipelines": 10, "pipeline": 14,
    "pipeline editor": 12, "queue": 14, "cluster": 15, "clusters": 15, "tasks": 13, "alarms": 11, "usage": 11,
    "images": 10, "people": 16, "audit": 11,
}  # fmt: skip


def test_main_pages_query_the_database_no_more_often_than_listed(as_olga, olga, alice, bob, tmp_path, monkeypatch):
    monkeypatch.setattr(header_sources, "LOOK_EVERY_S", float("inf"))  # what a page reads every ten seconds
    monkeypatch.setattr(badges, "LIFETIME_S", float("inf"))
    for name in ("DATASETS", "MODELS", "NOTIFICATIONS"):
        monkeypatch.setattr(pages, name, 3)
    addresses = pages.seed(olga, [alice, bob], tmp_path)

    counts = {}
    for name, address in addresses.items():
        as_olga.get(address)  # what is read once per process
        with CaptureQueriesContext(connection) as queries:
            assert as_olga.get(address).status_code == 200, address
        counts[name] = len(queries)

    assert {name: count for name, count in counts.items() if count > MAX_QUERIES.get(name, USUAL)} == {}
