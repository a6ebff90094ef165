"""Images that need credentials, on machines that joined: the server fetches them, the machine takes what is there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.fakes import registry as fake
from tests.running import wait_for as until
from workers.core import clock
from workers.core.models import Job, Node
from workers.core.runs import RunDir
from workers.execution import launch
from workers.images.containers import copies, stored
from workers.images.models import ImageUse, NodeCopy, State
from workers.images.services import collecting
from workers.images.store import paths
from workers.supervisor import records

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("a registry and a container engine of the tests")]
LAYER = fake.layer({"hello": b"world"})


def ended(job):
    return until(lambda: records.read(RunDir.for_attempt(job.pk, 1).path / records.EXIT))


def test_machine_that_joined_takes_what_the_server_fetched(registry, waiting, machines, login):
    registry.put("lab/torch", "2", [LAYER])
    job, attempt = waiting()
    copy = NodeCopy.objects.get()
    before = len(registry.seen)
    copies.run(copy.pk)
    copy.refresh_from_db()
    assert (copy.state, copy.tries, len(registry.seen)) == (State.NEW, 0, before)  # it waits, and asks nobody

    machines("server")
    collecting.collect(copy.pk)
    machines("node1")
    asked = len(registry.seen)
    copies.run(copy.pk)
    launch.start(attempt.pk)
    copy.refresh_from_db()

    assert (copy.state, len(registry.seen)) == (State.READY, asked)
    assert ended(job)["code"] == 0
    assert not [path for path in paths.all_blobs().rglob("*") if path.is_file() and b"opensesame" in path.read_bytes()]


def test_server_fetches_the_image_of_an_index_for_the_kind_of_the_machine(registry, waiting, machines):
    own = registry.put("lab/torch", "own", [LAYER])
    other = registry.put("lab/torch", "other", [LAYER, fake.layer({"arm": b"x"})], architecture="arm64")
    registry.index("lab/torch", "2", {"amd64": own, "arm64": other})
    Node.objects.filter(name="node1").update(facts={"machine": "aarch64"})
    _job, _attempt = waiting()
    copy = NodeCopy.objects.get()
    machines("server")

    collecting.collect(copy.pk)

    found = stored.here(copy)
    assert found is not None
    assert len(found.layers) == 2


def test_server_that_was_killed_is_followed_by_the_next_which_keeps_what_is_there(registry, waiting, machines):
    registry.put("lab/torch", "2", [LAYER, fake.layer({"more": b"x" * 1000})])
    waiting()
    copy = NodeCopy.objects.get()
    machines("server")
    real, calls = copies._fetch, []

    def dying(*given):
        if calls:
            raise KeyboardInterrupt
        calls.append(given[2])
        real(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "_fetch", dying)
        with pytest.raises(KeyboardInterrupt):
            collecting.collect(copy.pk)
    assert stored.here(copy) is None
    machines("node1")
    copies.run(copy.pk)  # half of it is no image
    NodeCopy.objects.update(renewed_at=None)  # its process is gone
    machines("server")
    fetched = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "_fetch", lambda *given: (fetched.append(given[2]), real(*given)))
        collecting.collect(copy.pk)

    assert (len(fetched), stored.here(copy) is not None) == (2, True)


def test_server_says_why_it_could_not_fetch(registry, waiting, machines):
    registry.put("lab/torch", "2", [LAYER])
    job, attempt = waiting()
    registry.users["alice"] = "changed"
    machines("server")
    collecting.collect(NodeCopy.objects.get().pk)
    machines("node1")

    launch.start(attempt.pk)
    attempt.refresh_from_db()

    assert "does not accept these credentials, or they do not permit" in str(attempt.message)
    job.refresh_from_db()
    assert job.state == "failed"


def test_newest_of_a_tag_is_looked_up_by_the_server(registry, waiting, machines, added):
    registry.put("lab/torch", "2", [LAYER])
    job, attempt = waiting(policy="newest")
    second = registry.put("lab/torch", "2", [LAYER, fake.layer({"more": b"x"})])
    assert ImageUse.objects.get(job=job).digest == ""
    assert not NodeCopy.objects.exists()
    machines("server")

    collecting.newest(job.pk)
    machines("node1")
    launch.start(attempt.pk)

    assert ImageUse.objects.get(job=job).digest == second
    assert NodeCopy.objects.get().digest == second


def test_sweep_of_the_server_sends_what_machines_wait_for(registry, waiting, machines, monkeypatch):
    registry.put("lab/torch", "2", [LAYER])
    waiting()
    sent = []
    monkeypatch.setattr(collecting, "enqueue", lambda name, **more: sent.append((name, more["queue"])))
    collecting.go_on()
    assert sent == []  # this machine has no key
    machines("server")

    collecting.go_on()
    collecting.collect(NodeCopy.objects.get().pk)
    collecting.go_on()

    assert sent == [("images.collect", "server.work"), ("images.fetch", "node1.work"), ("images.fetch", "node1.work")]


def test_sweep_of_the_server_sends_nothing_to_a_machine_that_does_not_answer(registry, waiting, machines, monkeypatch):
    registry.put("lab/torch", "2", [LAYER])
    waiting()
    sent = []
    monkeypatch.setattr(collecting, "enqueue", lambda name, **more: sent.append((name, more["queue"])))
    machines("server")
    Node.objects.filter(name="node1").update(state=Node.State.LOST)

    before = len(registry.seen)
    collecting.go_on()
    collecting.collect(NodeCopy.objects.get().pk)

    assert (sent, len(registry.seen)) == ([], before)
    assert NodeCopy.objects.get().state == State.NEW  # it may come back
    Node.objects.filter(name="node1").update(state=Node.State.LIVE)
    collecting.go_on()
    assert sent == [("images.collect", "server.work")]


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        (lambda job: Node.objects.filter(name="node1").update(state="removed"), "image.fetch_machine_gone"),
        (
            lambda job: Node.objects.filter(name="node1").update(
                state="lost", heartbeat_at=clock.now() - timedelta(hours=1)
            ),
            "image.fetch_machine_gone",
        ),
        (lambda job: Job.objects.filter(pk=job.pk).update(state="stopped"), "image.fetch_unwanted"),
        (lambda job: ImageUse.objects.filter(job=job).update(digest="sha256:other"), "image.fetch_unwanted"),
    ],
    ids=["removed", "lost for an hour", "job stopped", "job in another image"],
)
def test_copy_that_nobody_takes_any_more_is_ended_and_nothing_is_sent(
    registry, waiting, machines, monkeypatch, gone, why
):
    registry.put("lab/torch", "2", [LAYER])
    job, _attempt = waiting()
    copy, sent = NodeCopy.objects.get(), []
    monkeypatch.setattr(collecting, "enqueue", lambda name, **more: sent.append(name))
    machines("server")

    gone(job)
    collecting.go_on()
    collecting.collect(copy.pk)
    copy.refresh_from_db()

    assert (sent, copy.state, copy.message.code) == ([], State.FAILED, why)


def test_copy_that_is_being_fetched_is_not_ended_by_the_sweep(registry, waiting, machines):
    registry.put("lab/torch", "2", [LAYER])
    job, _attempt = waiting()
    copy = NodeCopy.objects.get()
    machines("server")
    assert copies.CLAIMS.acquire(NodeCopy.objects.filter(pk=copy.pk))
    Job.objects.filter(pk=job.pk).update(state="stopped")

    collecting.go_on()

    assert NodeCopy.objects.get().state == State.NEW


def test_copy_that_was_ended_is_fetched_for_the_next_job(registry, waiting, machines):
    registry.put("lab/torch", "2", [LAYER])
    _job, attempt = waiting()
    NodeCopy.objects.update(state=State.FAILED, changed_at=attempt.assigned_at - timedelta(seconds=1))

    launch.start(attempt.pk)

    assert NodeCopy.objects.get().state == State.NEW
