"""Trouble of one image, registry or person is nobody else's: copies for machines that joined, and their turns."""

from __future__ import annotations

import os
import stat
from datetime import timedelta
from types import SimpleNamespace

import pytest

from aiplatform.lib.errors import DomainError
from tests.factories import work
from tests.fakes import registry as fake
from workers.core import clock
from workers.core.kinds import Launch
from workers.core.models import Node
from workers.execution import launch
from workers.images import tasks
from workers.images.containers import copies, patience, registry_client, room, stored
from workers.images.containers.reference import parse
from workers.images.containers.registry import refused
from workers.images.models import Image, ImageUse, NodeCopy, RegistryLogin, State
from workers.images.services import collecting
from workers.images.services.launch import with_image
from workers.images.store import engines, paths

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("a registry and a container engine of the tests")]
LAYER = fake.layer({"hello": b"world"})


def awaited(image, owner, cluster, digest="sha256:0") -> NodeCopy:
    """A copy on the machine, for which a job waits."""
    ImageUse.objects.create(job=work.job(owner, cluster), image=image, name=str(image))
    return NodeCopy.objects.create(image=image, digest=digest, node="node1")


@pytest.fixture
def other_processor(registry, waiting):
    """The copy of an image whose index, which is there, has nothing for the machine that waits."""
    own = registry.put("lab/torch", "own", [LAYER])
    registry.index("lab/torch", "2", {"amd64": own})
    waiting()
    Node.objects.filter(name="node1").update(facts={"machine": "s390x"})
    copy = NodeCopy.objects.get()
    folder = paths.blobs(stored.source_of(parse(copy.image.reference)))
    folder.mkdir(parents=True)
    paths.blob(folder, copy.digest).write_bytes(registry.manifests["lab/torch", "2"][1])
    return copy


def test_copy_for_another_processor_fails_alone_and_the_rest_goes_on(
    other_processor, machines, added, alice, cluster, monkeypatch
):
    machines("server")
    good = awaited(added("lab/none:1", tag="other"), alice, cluster)
    sent = []
    monkeypatch.setattr(collecting, "enqueue", lambda name, **more: sent.append((name, more["copy_id"])))

    collecting.go_on()
    other_processor.refresh_from_db()

    assert "this node is s390x." in str(other_processor.message)
    assert (other_processor.state, sent) == (State.FAILED, [("images.collect", good.pk)])


def test_machine_of_another_processor_marks_its_own_copy_as_failed(other_processor):
    copies.run(other_processor.pk)
    other_processor.refresh_from_db()

    assert other_processor.state == State.FAILED
    assert "this node is s390x." in str(other_processor.message)


def test_step_of_the_sweep_that_breaks_does_not_stop_the_others(node, root, monkeypatch, sent):
    done = []
    monkeypatch.setattr(collecting, "go_on", lambda: 1 / 0)
    monkeypatch.setattr(engines, "settle", lambda: done.append("settle"))

    tasks.sweep()

    assert done == ["settle"]


def test_blob_that_was_changed_in_the_data_folder_is_not_given_to_an_engine(registry, waiting, machines):
    registry.put("lab/torch", "2", [LAYER])
    waiting()
    copy = NodeCopy.objects.get()
    machines("server")
    collecting.collect(copy.pk)
    layer = paths.blob(paths.blobs(stored.source_of(parse(copy.image.reference))), stored.here(copy).layers[0].digest)
    layer.write_bytes(layer.read_bytes()[:-1] + b"x")
    machines("node1")

    copies.run(copy.pk)
    copy.refresh_from_db()

    assert (copy.state, "A damaged part of the image was removed from the platform" in str(copy.message)) == (
        State.FAILED,
        True,
    )
    assert not copies.is_here(copies.name_of(copy.image.reference, copy.digest))
    assert not layer.exists()


def test_blobs_are_read_by_the_platform_alone(registry, waiting, machines):
    registry.put("lab/torch", "2", [LAYER])
    waiting()
    copy = NodeCopy.objects.get()
    machines("server")
    mask = os.umask(0o022)
    try:
        collecting.collect(copy.pk)
    finally:
        os.umask(mask)

    folder = paths.blobs(stored.source_of(parse(copy.image.reference)))
    blobs = [paths.blob(folder, blob.digest) for blob in stored.here(copy).blobs]
    assert {stat.S_IMODE(path.stat().st_mode) for path in blobs} == {0o600}
    assert stat.S_IMODE(paths.packed(0).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(("code", "state"), [("too_many", State.READY), ("credentials", State.FAILED)])
def test_registry_that_refuses_ends_the_job_and_only_for_good_the_image(
    registry, waiting, machines, monkeypatch, code, state
):
    registry.put("lab/torch", "2", [LAYER])
    job, attempt = waiting(policy="newest")
    machines("server")
    with monkeypatch.context() as broken:
        broken.setattr(registry_client, "look_up", lambda image: (_ for _ in ()).throw(refused(code, "localhost")))
        collecting.newest(job.pk)
    machines("node1")

    launch.start(attempt.pk)
    attempt.refresh_from_db()
    use = ImageUse.objects.get(job=job)

    assert str(refused(code, "localhost").worded) in str(attempt.message)
    assert (use.image.state, bool(use.message)) == (state, False)  # a restore asks again


def test_job_with_a_digest_of_its_own_starts_though_its_image_failed(registry, waiting, added):
    registry.put("lab/torch", "2", [LAYER])
    job, _attempt = waiting()
    digest = ImageUse.objects.get(job=job).digest
    Image.objects.update(state=State.FAILED)

    assert with_image(Launch(argv=[]), job).container["digest"] == digest
    ImageUse.objects.update(digest="")
    with pytest.raises(DomainError, match=r"has not been found yet. Resolve it again on its page."):
        with_image(Launch(argv=[]), job)


def test_server_fetches_one_image_at_a_time(registry, waiting, machines):
    registry.put("lab/torch", "2", [LAYER])
    waiting()
    copy = NodeCopy.objects.get()
    machines("server")

    with collecting._turn() as first:
        collecting.collect(copy.pk)
        busy = stored.here(copy)
    collecting.collect(copy.pk)

    assert (first, busy, stored.here(copy) is not None) == (True, None, True)


def test_people_take_turns_when_the_server_fetches(
    registry, machines, added, login, alice, bob, root, tier4, cluster, monkeypatch
):
    """Bob was served last, and Alice asked later than he did."""
    machines("server")
    theirs = RegistryLogin.objects.create(owner=bob, host=registry.host, username="bob", secret=login.secret)
    first, second = added("lab/none:1"), added("lab/none:2", tag="two")
    Image.objects.filter(pk=first.pk).update(owner=bob, login=theirs)
    rows = [awaited(first, bob, cluster, f"sha256:{n}") for n in range(2)]
    alices = awaited(second, alice, cluster)
    sent = []
    monkeypatch.setattr(collecting, "enqueue", lambda name, **more: sent.append(more["copy_id"]))

    collecting.go_on()
    NodeCopy.objects.filter(pk=rows[0].pk).update(state=State.FAILED, changed_at=clock.now() + timedelta(seconds=1))
    collecting.go_on()
    NodeCopy.objects.filter(pk=alices.pk).delete()
    collecting.go_on()

    assert sent == [rows[0].pk, alices.pk, rows[1].pk]


def test_registry_that_is_slow_for_long_is_left(registry, waiting, machines, monkeypatch):
    registry.put("lab/torch", "2", [LAYER])
    waiting()
    copy = NodeCopy.objects.get()
    machines("server")
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=iter(range(0, 10**9, 400)).__next__))
    monkeypatch.setattr(patience.Patience, "extend", lambda *_given: None)

    collecting.collect(copy.pk)
    copy.refresh_from_db()

    assert (copy.state, "responds too slowly. Try again later, or use another registry." in str(copy.message)) == (
        State.FAILED,
        True,
    )


def test_pace_is_a_rate_on_average_and_ends(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def keeps_up(seconds: float, count: int) -> bool:
        now[0] = 0.0
        pace = patience.Pace()
        now[0] = seconds
        return pace.keeps_up(count)

    least = patience.MIN_BYTES_S
    assert [keeps_up(200, 0), keeps_up(400, 399 * least), keeps_up(400, 400 * least)] == [True, False, True]
    assert not keeps_up(patience.MAX_DURATION_S + 1, 1 << 50)


def test_machine_that_joined_takes_nothing_by_withdrawn_credentials(registry, waiting, machines, login, bob):
    """What lies in the data folder already is not given to the engine either."""
    registry.put("lab/torch", "2", [LAYER])
    waiting()
    copy = NodeCopy.objects.get()
    machines("server")
    collecting.collect(copy.pk)
    RegistryLogin.objects.update(owner=bob)
    machines("node1")

    copies.run(copy.pk)
    copy.refresh_from_db()

    assert (copy.state, "not shared" in str(copy.message)) == (State.FAILED, True)


def test_fetched_image_is_not_given_to_an_engine_without_room(registry, waiting, machines, monkeypatch):
    registry.put("lab/torch", "2", [LAYER])
    waiting()
    copy = NodeCopy.objects.get()
    machines("server")
    collecting.collect(copy.pk)
    machines("node1")
    monkeypatch.setattr(room, "shutil", SimpleNamespace(disk_usage=lambda _folder: SimpleNamespace(free=1000)))

    copies.run(copy.pk)
    copy.refresh_from_db()

    assert (copy.state, "has not enough space" in str(copy.message)) == (State.FAILED, True)
