"""A script that repeats its request gets one thing, whatever happens to the process that works on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import timedelta

import pytest
from django.db import connection
from django.utils.timezone import now

from accounts.models import IdempotencyRecord
from aiplatform.cli import web as web_server
from aiplatform.lib import claims, idempotency
from datasets.models import Dataset
from tests import migrated
from tests.running import HERE, MANAGE, environment, free_port, wait_for

URL, KEY = "/api/v1/datasets/", {"Idempotency-Key": "one-intention"}


@pytest.fixture
def record(api, alice):
    """The record of a request that another process began with this key."""
    api.post(URL, {"name": "streets"}, format="json", headers=KEY)
    Dataset.objects.all().delete()
    return IdempotencyRecord.objects.filter(user=alice)


def began(record, holder, *, seconds_ago=0):
    record.update(status=0, body=None, holder=holder, renewed_at=now() - timedelta(seconds=seconds_ago))


def name_of(process_id, begin, machine=None):
    return f"web-1:{machine or claims._machine()}:{process_id}:{begin}:0123456789abcdef"


@pytest.fixture
def gone():
    """The id of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.mark.django_db
def test_idempotency_record_of_a_dead_process_is_taken_over_at_once(api, record, gone):
    began(record, name_of(gone, "123"))

    answer = api.post(URL, {"name": "streets"}, format="json", headers=KEY)

    assert (answer.status_code, answer.json()["id"]) == (201, Dataset.objects.get().pk)


@pytest.mark.django_db
def test_idempotency_record_is_taken_over_from_a_process_whose_number_another_has_now(api, record):
    began(record, name_of(os.getpid(), "1"))

    assert api.post(URL, {"name": "streets"}, format="json", headers=KEY).status_code == 201


@pytest.mark.django_db
def test_idempotency_record_of_a_zombie_is_taken_over(api, record):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began(record, name_of(child.pid, claims._start_time(child.pid)))

    early = api.post(URL, {"name": "streets"}, format="json", headers=KEY)
    child.stdin.close()
    wait_for(lambda: not claims._start_time(child.pid))  # ended, and nobody has asked how
    late = api.post(URL, {"name": "streets"}, format="json", headers=KEY)
    child.wait()

    assert (early.status_code, early.json()["code"]) == (409, "idempotency_in_progress")
    assert late.status_code == 201


@pytest.mark.django_db
@pytest.mark.parametrize("holder", [name_of(1, "1", machine="elsewhere-1"), "old:name", ""])
def test_idempotency_record_of_another_machine_is_taken_over_after_its_silence(api, record, gone, holder):
    began(record, holder or name_of(gone, "1", machine=f"{claims._machine()}0"), seconds_ago=25)

    early = api.post(URL, {"name": "streets"}, format="json", headers=KEY)
    record.update(renewed_at=now() - timedelta(seconds=31))
    late = api.post(URL, {"name": "streets"}, format="json", headers=KEY)

    assert (early.status_code, late.status_code) == (409, 201)


@pytest.mark.django_db(transaction=True)
def test_idempotency_record_taken_over_meanwhile_undoes_the_slower_ones_work(api, alice, monkeypatch):
    kept = idempotency.store_response

    def late(request, response):
        IdempotencyRecord.objects.update(holder="another", tries=2)
        return kept(request, response)

    monkeypatch.setattr(idempotency, "store_response", late)
    answer = api.post(URL, {"name": "streets"}, format="json", headers=KEY)

    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_in_progress")
    assert not Dataset.objects.exists()
    assert not connection.in_atomic_block


SIGNED_IN = """
import django; django.setup()
from accounts.models import Role
from accounts.services import tokens
from tests.factories import people
print(tokens.issue(user=people.user("alice"), name="script")[1])
"""


@pytest.fixture
def web(tmp_path):
    """Two web processes on a database of their own, of which the one that works on a POST dies where `web` says."""
    root, port = tmp_path / "root", free_port()
    root.mkdir()
    env = os.environ | environment(root) | {"AIP_TEST_DEATH": str(root / "death")}
    if not migrated.take(root / "aiplatform.sqlite3"):
        subprocess.run([sys.executable, MANAGE, "migrate", "--noinput", "-v", "0"], cwd=HERE, env=env, check=True)
    done = subprocess.run([sys.executable, "-c", SIGNED_IN], cwd=HERE, env=env, check=True, stdout=subprocess.PIPE)
    listener = web_server.listen("127.0.0.1", port)
    listener.set_inheritable(True)
    servers = [
        subprocess.Popen(
            web_server.command("127.0.0.1", port, "tests.fakes.dying_web:application"), cwd=HERE,
            env=env | {web_server.LISTENER_VARIABLE: str(listener.fileno())}, pass_fds=[listener.fileno()],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]  # fmt: skip

    def ask(method, body=None):
        headers = {"Authorization": f"Bearer {done.stdout.decode().strip()}", "Content-Type": "application/json", **KEY}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"http://127.0.0.1:{port}{URL}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)
        except (OSError, ValueError):
            return 0, {}

    try:
        wait_for(lambda: ask("GET")[0] == 200, 60, "the web server does not answer")
        yield root / "death", ask
    finally:
        for server in servers:
            server.kill()
            server.wait()
        listener.close()


@pytest.mark.sockets("web processes of its own")
@pytest.mark.parametrize(
    "place",
    [
        "before the commit",
        *(pytest.param(name, marks=pytest.mark.proof) for name in ("before the work", "after the commit")),
    ],
)
def test_web_process_killed_inside_a_post_leaves_its_key_to_the_next(web, place):
    death, ask = web
    death.write_text(place)

    first = ask("POST", {"name": "streets"})
    begun = time.monotonic()
    answers = []
    while not answers or (answers[-1][0] == 0 and time.monotonic() - begun < 60):
        answers.append(ask("POST", {"name": "streets"}))
    rows = ask("GET")[1]["results"]

    assert first == (0, {})
    assert not death.exists()
    assert answers[-1][0] == 201
    assert [row["id"] for row in rows] == [answers[-1][1]["id"]]
    print(f"{place}: the next answer came after {time.monotonic() - begun:.2f} s")
