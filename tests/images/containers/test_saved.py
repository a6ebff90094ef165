"""Images saved from containers: for which processors, read by whom, with room for them, by a container nobody ends."""

from __future__ import annotations

import json
import os
import stat
import urllib.parse
from types import SimpleNamespace

import pytest

from aiplatform import env
from tests.factories import work
from workers.execution.agent import containers
from workers.images.containers import committing, copies, exported, manifests, room
from workers.images.models import Image, ImageUse, State
from workers.images.services import saving
from workers.images.store import paths
from workers.supervisor import container, engines
from workers.supervisor.engine import Engine

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("a container engine of the tests")]


@pytest.fixture
def below(contained, root, tier4, alice):
    """`below(Labels={…})`: Alice's image on this machine, of an index for several processors."""

    def one(**config) -> Image:
        about = {"Architecture": manifests.architecture(), "Config": config}
        folder = contained.folder.with_name(f"{contained.folder.name}.images")
        folder.mkdir(exist_ok=True)
        (folder / urllib.parse.quote("image", safe="")).write_text(json.dumps(about))
        return Image.objects.create(
            kind=Image.Kind.CONTAINER, owner=alice, name="lab", source=Image.Source.LOCAL, reference="image",
            state=State.READY, digest="image", facts={"architecture": "386, amd64, arm, arm64"},
        )  # fmt: skip

    return one


@pytest.fixture
def saved(alice, cluster, settings):
    """`saved(image)`: what Alice saves of a job that is over, with one package of its own."""

    def one(image: Image) -> Image:
        job = work.job(alice, cluster, state="stopped")
        ImageUse.objects.create(
            job=job, image=image, name="lab", boxed=True, node=settings.NODE, digest=image.digest
        )  # fmt: skip
        upper = paths.box(job.pk) / "upper"
        upper.mkdir(parents=True)
        (upper / "ring.py").write_text("x = 1\n" * 100)
        made = saving.request(job=job, by=alice, name="mine")
        saving.run(made.pk)
        made.refresh_from_db()
        return made

    return one


def loaded(image: Image, engine):
    """The copy of a saved image on a machine that never had it."""
    Engine(str(engine.socket)).remove_image(image.reference)
    copy = copies.request(image.pk, image.digest)
    copies.run(copy.pk)
    copy.refresh_from_db()
    return copy


def test_image_saved_from_one_of_several_processors_starts_on_machines_of_its_own(below, saved, contained):
    made = saved(below())

    copy = loaded(made, contained)

    assert (made.state, made.facts["architecture"]) == (State.READY, manifests.architecture()), made.why
    assert copy.state == State.READY, str(copy.message)


def test_image_saved_for_another_processor_names_the_machine(below, saved, contained, settings):
    made = saved(below())
    Image.objects.filter(pk=made.pk).update(facts=made.facts | {"architecture": "s390x"})

    copy = loaded(made, contained)

    assert f"for s390x CPUs, {settings.NODE} has" in str(copy.message)


def test_saved_image_is_read_by_the_platform_alone(below, saved):
    mask = os.umask(0o022)
    try:
        packed = paths.packed(saved(below()).pk)
    finally:
        os.umask(mask)

    assert [stat.S_IMODE(path.stat().st_mode) for path in (packed, packed.parent)] == [0o600, 0o700]


def test_sweep_of_an_agent_leaves_the_container_that_an_image_is_made_of(
    below, saved, contained, settings, monkeypatch
):
    monkeypatch.setattr(engines, "sockets", lambda _chosen: [str(contained.socket)])
    real, swept = Engine.upload, []

    def put(self, name, layer):
        swept.append(containers.sweep())
        real(self, name, layer)

    monkeypatch.setattr(Engine, "upload", put)
    made = saved(below(Labels={container.LABEL: str(settings.DATA_ROOT), "aip.job": "1", "aiplane": "kept"}))

    labels = Engine(str(contained.socket)).image(made.reference)["Config"]["Labels"]
    assert (made.state, swept) == (State.READY, [0]), made.why
    assert labels == {container.LABEL: "", "aip.job": "", "aiplane": "kept"}


def test_sweep_of_an_agent_ends_containers_that_say_nothing_of_their_job(contained, root, settings, monkeypatch):
    monkeypatch.setattr(engines, "sockets", lambda _chosen: [str(contained.socket)])
    own = Engine(str(contained.socket))
    own.create("odd", {"Image": "image", "Labels": {container.LABEL: str(settings.DATA_ROOT)}})

    assert containers.sweep() == 1
    assert own.named("odd") == []


@pytest.fixture
def full(monkeypatch):
    """The disk of the engine is full, the platform's is not."""
    monkeypatch.setattr(room, "shutil", SimpleNamespace(disk_usage=lambda _folder: SimpleNamespace(free=1000)))


def test_image_is_not_saved_where_the_engine_has_no_room(below, saved, contained, full):
    made = saved(below())

    assert made.state == State.FAILED
    assert made.why.startswith(
        "The container engine of node node1 has not enough space: 2 GiB must be free on the disk of"
    )
    assert Engine(str(contained.socket)).named(committing.helpers()) == []


def test_saved_image_is_not_given_to_an_engine_without_room(below, saved, contained, request):
    made = saved(below())
    request.getfixturevalue("full")

    copy = loaded(made, contained)

    assert (copy.state, "has not enough space" in str(copy.message)) == (State.FAILED, True)


def test_engine_whose_folder_cannot_be_seen_finds_out_by_itself(contained, monkeypatch):
    monkeypatch.setattr(Engine, "folder", lambda _self: "/nowhere/at/all")

    room.check(Engine(str(contained.socket)), 1 << 60)


def test_box_that_is_too_large_is_not_saved(below, saved, monkeypatch):
    monkeypatch.setattr(env, "MAX_SAVED_BYTES", 10)

    made = saved(below())

    assert made.state == State.FAILED
    assert "can be saved. Remove some packages, then save again." in made.why


def test_archive_is_not_written_through_a_link(tmp_path):
    target, other = tmp_path / "1.tar.zst", tmp_path / "other"
    other.write_text("kept")
    (tmp_path / ".1.tar.zst.export").symlink_to(other)

    with pytest.raises(OSError, match="symbolic link"):
        exported.write([b"x"], target, lambda _count: None)

    assert other.read_text() == "kept"
