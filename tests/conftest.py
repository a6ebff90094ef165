"""The cast. Alice and Bob are researchers, Anna only annotates, Olga runs the machines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from celery import current_app
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.cache import cache
from django.db import connection
from django.test import Client, TransactionTestCase
from django.utils import translation
from rest_framework.test import APIClient

from accounts.access.permissions import ANNOTATOR, SYSTEM_ADMIN
from aiplatform.cli import gate_steps
from aiplatform.frame import badges
from aiplatform.lib import header_sources, process_startup
from aiplatform.lib.static_files import StaticMiddleware
from inference.registry import inspections
from inference.registry.inspector.inspection import perform
from tests import migrated, network, restored
from tests import settings as test_settings
from tests.factories import people

pytest_plugins = ["tests.worker_pool", "tests.cpu_time", "tests.postgres_selection"]

# The gate asks the same questions every time, however slow the machine; `--hypothesis-profile explore` asks new ones.
hypothesis.settings.register_profile("gate", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile("gate")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Look for no garbage among thousands of tests and what they import: a third of the time of reading them."""
    process_startup.begins()
    try:
        return (yield)
    finally:
        process_startup.ended()


def pytest_collection_finish():
    if test_settings.WITHOUT_THREADS:  # for imports only
        os.environ.pop("OPENBLAS_NUM_THREADS", None)


def pytest_worker_start(name):
    test_settings.enter_worker(name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The gate reads only files that name the mark of its step: no test may have one by way of a helper."""
    named: dict[tuple[Path, str], bool] = {}
    for item in items:
        for mark in gate_steps.NAMED:
            if item.get_closest_marker(mark):
                key = item.path, mark
                if key not in named:
                    named[key] = gate_steps.names(*key)
                if not named[key]:
                    raise pytest.UsageError(f"{item.nodeid} has the mark {mark}; write that in its file.")


_running: dict[str, pytest.Item] = {}


def has_shared_data(item: pytest.Item) -> bool:
    """Return whether a test shares its data folder with others: the platform or server it uses lives longer."""
    return any(item.get_closest_marker(mark) for mark in ("journey", "chaos", "browser"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    _running["item"] = item
    network.begin(item)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    try:
        return (yield)
    finally:
        if refused := network.end():
            pytest.fail(f"It reached for a network it may not use: {', '.join(refused)}. See tests/network.py.")


@pytest.fixture(scope="session")
def django_db_keepdb(request, django_db_modify_db_settings) -> bool:
    """Begin with a migrated database of an earlier run, where there is one."""
    wanted = settings.DATABASES["default"]
    if not wanted["ENGINE"].endswith("sqlite3"):
        return request.config.getvalue("reuse_db")
    return not request.config.getvalue("create_db") and migrated.take(Path(wanted["TEST"]["NAME"]))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_keepdb, django_db_blocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        if not django_db_keepdb and connection.vendor == "sqlite":
            migrated.keep(Path(connection.settings_dict["NAME"]))
        beginning = restored.Beginning()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            TransactionTestCase, "_fixture_teardown",
            lambda case: beginning.restore(ids=not has_shared_data(_running["item"])),
        )  # fmt: skip
        yield


@pytest.fixture(scope="session", autouse=True)
def _static_files_looked_for_once() -> Iterator[None]:
    """Each test client has a middleware of its own, which looks for all static files: 40 ms, thousands of times."""
    found: dict[tuple[str, int | None], dict[str, Any]] = {}
    look = StaticMiddleware.add_files_from_finders

    def add(middleware: StaticMiddleware) -> None:
        key = middleware.static_prefix, middleware.max_age
        if finders.get_finders is not real_finders:  # a test has files of its own
            look(middleware)
        elif key in found:
            middleware.files.update(found[key])
        else:
            look(middleware)
            found[key] = dict(middleware.files)

    real_finders = finders.get_finders
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticMiddleware, "add_files_from_finders", add)
        yield


@pytest.fixture
def cluster(db):
    from workers.core.models import VirtualCluster

    return VirtualCluster.objects.get_or_create(name="default")[0]  # a test may have made it away


@pytest.fixture
def alice(db, cluster):
    return people.user("alice", cluster=cluster)


@pytest.fixture
def bob(db, cluster):
    return people.user("bob", cluster=cluster)


@pytest.fixture
def anna(db):
    return people.user("anna", role=ANNOTATOR)


@pytest.fixture
def olga(db, cluster):
    return people.user("olga", role=SYSTEM_ADMIN, cluster=cluster)


@pytest.fixture
def sent(monkeypatch):
    """Names and arguments of the Celery tasks handed over; nothing runs.

    Sends happen on commit: use `django_capture_on_commit_callbacks(execute=True)` or a transactional test.
    """
    calls: list[tuple[str, dict]] = []

    def send_task(name, kwargs=None, queue=None, **options):
        calls.append((name, kwargs or {}))

    monkeypatch.setattr(current_app, "send_task", send_task)
    return calls


@pytest.fixture(autouse=True)
def _own_data_root(request):
    """Row numbers repeat from test to test, so each test has its own run directories."""
    if not has_shared_data(request.node):
        request.getfixturevalue("settings").DATA_ROOT = request.getfixturevalue("tmp_path")


@pytest.fixture(autouse=True)
def _empty_cache():
    """What one test counted there (`aiplatform.lib.rates`) is nothing to the next."""
    cache.clear()


@pytest.fixture(autouse=True)
def _no_banner():
    """Each process looks for what is wrong every ten seconds; whose page that falls on is no matter of its queries."""
    header_sources.forget_troubles()
    badges.forget()
    with header_sources.TROUBLE_SOURCE.temporarily(None):
        yield


@pytest.fixture(autouse=True)
def _english():
    """A request leaves its language behind in the thread; no test hears of another's."""
    with translation.override("en"):
        yield


@pytest.fixture(autouse=True)
def _model_files_read_in_this_process(request, monkeypatch):
    """A process for each model would cost 0.6 s of CPU; tests that use `inspector_processes` start them."""
    if "inspector_processes" not in request.fixturenames:
        monkeypatch.setattr(inspections, "_run", lambda asked, *_limits: json.loads(json.dumps(perform(asked))))


@pytest.fixture
def inspector_processes():
    """Model files are read by the sandboxed program itself."""


@pytest.fixture(autouse=True)
def _no_broker(request, monkeypatch):
    """No test talks to a broker unless it asks for one (`@pytest.mark.journey`, chaos)."""
    if "sent" not in request.fixturenames and not request.node.get_closest_marker("journey"):
        monkeypatch.setattr(current_app, "send_task", lambda *args, **kwargs: None)


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def as_alice(alice):
    return signed_in(alice)


@pytest.fixture
def as_bob(bob):
    return signed_in(bob)


@pytest.fixture
def as_anna(anna):
    return signed_in(anna)


@pytest.fixture
def as_olga(olga):
    return signed_in(olga)


@pytest.fixture
def api(alice) -> APIClient:
    """The REST API as Alice."""
    client = APIClient()
    client.force_authenticate(alice)
    return client
