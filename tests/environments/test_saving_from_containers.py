"""Saving from containers: an image of the job's packages, without its secrets, which another machine loads."""

from __future__ import annotations

import hashlib
import json
import os

import pytest
import zstandard
from django.db import connections

from aiplatform.lib.errors import DomainError, StillInUse
from datasets.files import homes
from tests.environments.in_containers import (
    end,
    engine,
    image,
    machine,
    ready,
    root,
    said,
    started,
)
from tests.fakes import slow_unpacking
from tests.images.wheels import wheel
from tests.running import printed
from tests.running import wait_for as until
from training.commands import services as commands
from training.commands.services import CommandRequest
from training.environments import services
from workers.core.models import Node
from workers.core.runs import RunDir
from workers.execution import launch
from workers.images.containers import archive, committing, copies, exported, tidying
from workers.images.models import Image, NodeCopy, State
from workers.images.services import images, saving
from workers.images.store import paths
from workers.scheduling import placing
from workers.supervisor import records
from workers.supervisor.engine import Engine, Refused

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("a container engine, exec servers of jobs, JupyterLab"),
]
__all__ = ["engine", "image", "machine", "root", "started"]
SECRET = "open-sesame-of-alice"


@pytest.fixture
def filled(started, alice):
    """An environment in which a package was installed, with secrets round it."""
    row = ready(started(secrets={"HUB": SECRET}))
    home = homes.path_of(alice)
    wheel(home / "wheels", "ring", "1.0")
    said(row, 'python3 -m pip install --no-index --find-links "$HOME/wheels" ring > "$HOME/pip.log" 2>&1')
    said(row, f'echo {SECRET} > "$AIP_PACKAGES/.netrc"; echo {SECRET} > /tmp/mine; ln -s /etc/shadow "$AIP_PACKAGES/s"')
    assert said(row, "python3 -c 'import ring; print(ring.__file__)'").startswith("/opt/packages/0/"), (
        home / "pip.log"
    ).read_text()
    return row


def saved(row, alice, name="mine") -> Image:
    image = saving.request(job=row.job, by=alice, name=name)
    saving.run(image.pk)
    image.refresh_from_db()
    return image


def unpacked(image) -> bytes:
    with paths.packed(image.pk).open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read()


def test_container_image_is_saved_of_an_environment_without_its_secrets(filled, engine, image, alice):
    made = saved(filled, alice)
    own = Engine(str(engine.socket))

    assert (made.status, made.kind, made.source) == (State.READY, "container", "saved"), made.why
    assert made.left_out == [".netrc", "pip.conf"]
    assert said(filled, "echo goes on") == "goes on\n"
    below, config = (own.image(name).get("Config") or {} for name in (image.digest, made.reference))
    added = {word.partition("=")[0] for word in set(config.get("Env") or []) - set(below.get("Env") or [])}
    assert added <= {"PATH", "TERM", "container", "HOME", "HOSTNAME"}  # podman's own, the same for everybody
    for key in ("Labels", "Entrypoint", "Cmd"):
        assert (config.get(key) or None) == (below.get(key) or None)
    held = unpacked(made)
    assert (made.size_bytes, made.sha256) == (
        paths.packed(made.pk).stat().st_size,
        hashlib.sha256(paths.packed(made.pk).read_bytes()).hexdigest(),
    )
    for secret in (SECRET, services.token_of(filled)):
        assert secret.encode() not in held
    assert own.named(committing.helpers()) == []


def test_environment_starts_from_a_saved_container_image_on_a_machine_that_never_had_it(
    filled, started, engine, image, alice
):
    made = saved(filled, alice)
    own = Engine(str(engine.socket))
    tidying.tidy_engine()
    assert copies.is_here(made.reference)
    end(RunDir.for_attempt(filled.pk, 1).path)
    own.remove_image(made.reference)

    row = ready(started(image=made))

    assert NodeCopy.objects.get(image=made).state == State.READY
    found = said(row, "python3 -c 'import ring; print(ring.__file__)'")
    assert found.startswith("/opt/packages/0/")
    said(row, 'echo more > "$AIP_PACKAGES/note"')
    again_saved = saved(row, alice, "twice")
    assert (again_saved.state, again_saved.facts["saved"]) == (State.READY, 2), again_saved.why
    with pytest.raises(StillInUse):
        images.delete(image=made, by=alice)
    images.delete(image=again_saved, by=alice)
    assert not paths.packed(again_saved.pk).exists()
    tidying.tidy_engine()
    assert not copies.is_here(again_saved.reference)


def test_command_finds_the_packages_of_a_saved_container_image(filled, engine, alice):
    made = saved(filled, alice)
    script = "python3 -c 'import ring; print(ring.__file__)'; echo $PATH; echo ${AIP_PACKAGES:-none}"

    job = commands.submit(user=alice, request=CommandRequest(command=script, image=made, cpus=1.0)).job
    node = Node.objects.get()
    attempt = placing.place(job.pk, [(node.pk, [(node.devices.get(kind="cpu").pk, 1)])])
    launch.start(attempt.pk)
    run = RunDir.for_attempt(job.pk, 1)
    record = until(lambda: records.read(run.path / records.EXIT), 60)

    where, path, own = printed(run.log).splitlines()
    assert record["code"] == 0
    assert where.startswith("/opt/packages/0/site/")
    assert (path.split(":")[0], own) == ("/opt/packages/0/bin", "none")


def test_saved_container_image_that_was_changed_is_not_given_to_an_engine(filled, engine, alice):
    made = saved(filled, alice)
    Engine(str(engine.socket)).remove_image(made.reference)
    path = paths.packed(made.pk)
    path.write_bytes(path.read_bytes()[:-1] + b"x")

    copy = copies.request(made.pk, made.digest)
    copies.run(copy.pk)
    copy.refresh_from_db()

    assert copy.state == State.FAILED
    assert "checksum" in str(copy.message)
    assert not copies.is_here(made.reference)


def test_saving_that_was_killed_leaves_nothing_and_is_done_by_the_next(filled, engine, image, alice, monkeypatch):
    own = Engine(str(engine.socket))
    row = saving.request(job=filled.job, by=alice, name="mine")
    packed = paths.packed(row.pk)

    def killed(*_given):
        os._exit(9)

    child = os.fork()
    if child == 0:  # nothing of it is cleaned up
        connections.close_all()
        monkeypatch.setattr(Engine, "commit", killed)
        saving.run(row.pk)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    connections.close_all()
    assert own.named(committing.helpers()) == [committing.helper(row.pk)]
    packed.with_name(f".{packed.name}.export").write_bytes(b"half")

    saving.run(row.pk)
    row.refresh_from_db()

    assert row.state == State.READY, row.why
    assert own.named(committing.helpers()) == []
    assert [path.name for path in packed.parent.iterdir() if path.is_file()] == [packed.name]


@pytest.mark.parametrize(
    "given",
    [
        lambda whole: [whole[:-1024] + json.dumps({"message": "unexpected EOF"}).encode() + b"\n"],
        lambda whole: [whole[: len(whole) // 2]],
        lambda whole: [bytes(10240)],
        lambda whole: [],
    ],
    ids=["an error at its end", "half", "no image", "nothing"],
)
def test_archive_that_an_engine_did_not_give_whole_is_not_kept(tmp_path, given):
    whole = b"".join(archive._pieces({"layer.tar": b"x" * 100_000, "manifest.json": b"[]"}, {}))

    with pytest.raises(DomainError, match=r"The container engine returned an incomplete image. Save it"):
        exported.write(given(whole), tmp_path / "1.tar.zst", lambda count: None)

    assert list(tmp_path.iterdir()) == []
    assert exported.write([whole[:700], whole[700:]], tmp_path / "1.tar.zst", lambda count: None)[0] == len(whole)


def test_saved_container_image_keeps_its_claim_while_the_engine_unpacks(filled, engine, alice, monkeypatch):
    made = saved(filled, alice)
    Engine(str(engine.socket)).remove_image(made.reference)
    slow_unpacking.begin(monkeypatch)

    copy = copies.request(made.pk, made.digest)
    copies.run(copy.pk)
    copy.refresh_from_db()

    assert copy.state == State.READY, str(copy.message)


def test_container_image_whose_saving_failed_leaves_the_engine(filled, engine, alice, monkeypatch):
    made = saved(filled, alice)
    Image.objects.filter(pk=made.pk).update(state=State.FAILED)  # as after the third kill

    tidying.tidy_engine()

    assert not copies.is_here(made.reference)


def test_container_image_is_saved_again_after_the_engine_failed(filled, engine, alice, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(Engine, "commit", lambda *_given: (_ for _ in ()).throw(Refused(500, "no space")))
        row = saved(filled, alice)
    assert (row.state, "no space" in row.why) == (State.FAILED, True)
    assert not paths.packed(row.pk).exists()

    images.make(row, by=alice)
    saving.run(row.pk)
    row.refresh_from_db()

    assert row.state == State.READY
    assert unpacked(row)
