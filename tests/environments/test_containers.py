"""Environments in container images: started, opened, stopped and restored, and what pip installs in them is kept."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import sys
import tempfile
from pathlib import Path

import pytest
import zstandard
from django.db import connections

from aiplatform import env
from aiplatform.lib.errors import Invalid, StillInUse
from tests.environments.conftest import STUB
from tests.environments.test_vscode import FAKE as CODE_SERVER
from tests.factories import work
from tests.images.conftest import root
from tests.images.wheels import wheel
from tests.running import printed
from tests.running import wait_for as until
from tests.workers.engines import FakeEngine, RealEngine
from training.environments import jupyter, life, services, vscode
from training.environments.models import Environment
from training.environments.services import EnvironmentRequest
from training.services import homes
from workers.exec import channels, programs
from workers.execution import launching, tickets
from workers.images.containers import adding, committing, copies, tidying
from workers.images.models import Image, ImageUse, NodeCopy, State
from workers.images.services import boxes, images, places, saving, uses
from workers.jobs import actions
from workers.models import Attempt, Job, Node
from workers.proxy.models import PublishedPort
from workers.runs import RunDir
from workers.scheduling import placing
from workers.states import JobState
from workers.supervisor import engines, exec_socket, processes, records
from workers.supervisor.engine import Engine, Refused
from workers.supervisor.sandbox import CONTAINER

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("a container engine, exec servers of jobs, JupyterLab"),
]
__all__ = ["root"]


def installed(folder: Path, text: str) -> Path:
    """A program called jupyter-lab, as an image has one on its PATH."""
    program = folder / "bin" / "jupyter-lab"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)
    folder.chmod(0o755)
    return program


@pytest.fixture(params=["fake", "real"])
def engine(request, root, monkeypatch):
    """An engine that this machine offers, with an image that has a JupyterLab."""
    if request.param == "real":
        made = RealEngine()
        offer = engines.Offer(container=made.about, engine="real")
        monkeypatch.setattr(env, "CONTAINER_PYTHON", "python3")
    else:
        installed(root / "image", STUB.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
        made = FakeEngine(root / "engine", image_path=f"{root}/image/bin:{Path(sys.executable).parent}:/usr/bin:/bin")
        about = made.about | {"user": f"{os.geteuid()}:{os.getegid()}"}
        offer = engines.Offer(container=about, engine="docker 1.0")
        monkeypatch.setattr(env, "CONTAINER_PYTHON", sys.executable)
    monkeypatch.setattr(tickets, "tier", lambda: (CONTAINER, ""))
    monkeypatch.setattr(tickets, "containers", lambda: offer)
    yield made
    if request.param == "fake":
        made.kill()


@pytest.fixture
def machine(db, settings):
    settings.NODE = "node1"
    node = work.node(cores=4)
    Node.objects.filter(pk=node.pk).update(sandbox_tier=CONTAINER)
    return node


@pytest.fixture
def image(engine, machine, alice):
    """Alice's container image, which lies on the machine already."""
    name = env.CONTAINER_IMAGE if isinstance(engine, RealEngine) else "image"
    row = Image.objects.create(
        kind=Image.Kind.CONTAINER, owner=alice, name="lab", source=Image.Source.LOCAL, reference=name,
        state=State.READY, digest=name,
    )  # fmt: skip
    if isinstance(engine, RealEngine):
        adding.look_again(row)
        adding.run(row.pk)
        row.refresh_from_db()
        assert row.state == State.READY, row.why
    return row


@pytest.fixture
def started(image, machine, alice, settings):
    """`started()`: Alice's environment in the image, begun as the agent does it."""
    begun = []
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder:
        settings.RUN_DIR = Path(folder)

        def one(**fields) -> Environment:
            request = EnvironmentRequest(**{"cpus": 1.0, "image": image, "folder": "work"} | fields)
            row = services.submit(user=alice, request=request)
            begun.append(row.pk)
            return begin(row)

        yield one
        for pk in begun:
            for attempt in Attempt.objects.filter(job=pk):
                path = RunDir.of(pk, attempt.number).path
                if records.is_alive(records.read(path / records.SUPERVISOR) or {}):
                    end(path)


def begin(row) -> Environment:
    attempt = placing.place(row.pk, [(Node.objects.get().pk, [(Node.objects.get().devices.get(kind="cpu").pk, 1)])])
    launching.start(attempt.pk)
    run = RunDir.of(row.pk, attempt.number)
    for copy in NodeCopy.objects.filter(state=State.NEW):
        copies.run(copy.pk)
        launching.start(attempt.pk)
    attempt.refresh_from_db()
    assert attempt.ended_at is None, attempt.message
    until((run.path / records.SUPERVISOR).exists)
    Job.objects.filter(pk=row.pk).update(state=JobState.RUNNING)
    Attempt.objects.filter(pk=attempt.pk).update(state=JobState.RUNNING)
    return again(row)


def end(run: Path, wish: str = "kill") -> dict:
    records.write_request(run, wish)
    return until(lambda: records.read(run / records.EXIT), 60)


def again(row) -> Environment:
    return Environment.objects.select_related("job__owner", "job__cluster").get(pk=row.pk)


def ready(row) -> Environment:
    home = RunDir.of(row.pk, row.job.attempt_number).path
    until(lambda: (home / records.EXIT).exists() or life.is_ready(life.see_ready(again(row))), 90, "no answer")
    assert not (home / records.EXIT).exists(), RunDir.of(row.pk, row.job.attempt_number).log.read_text()
    return again(row)


def said(row, command: str) -> str:
    """What a shell inside says."""
    return programs.run(channels.way_to(again(row).job), command, patience_s=60).output


def test_environment_in_a_container_is_ready_and_answers_through_its_own_way(started, alice):
    row = ready(started())
    run = RunDir.of(row.pk, 1)

    assert again(row).job.events.filter(event="ready").exists()
    attempt = Attempt.objects.get(job=row.pk)
    assert attempt.sandbox_tier == CONTAINER
    assert jupyter.ask(jupyter.whom(row.job, attempt, services.token_of(row))) is not None
    assert jupyter.ask(jupyter.whom(row.job, attempt, "another")) is None
    assert said(row, "echo $HOME; pwd").split()[0].endswith(f"home/{alice.username}")
    assert services.token_of(row) not in run.log.read_text()
    pids = processes.descendants(records.read(run.path / records.SUPERVISOR)["child"]["pid"])
    assert pids
    assert not [pid for pid in pids if services.token_of(row).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_environment_in_a_container_keeps_what_was_installed_over_stop_and_restore(started, alice):
    row = ready(started())
    said(row, 'mkdir -p "$AIP_PACKAGES/bin" && echo kept > "$AIP_PACKAGES/note" && echo home > "$HOME/note"')
    assert end(RunDir.of(row.pk, 1).path, "stop")["requested"] == "stop"
    Job.objects.filter(pk=row.pk).update(state=JobState.QUEUED)
    Attempt.objects.filter(job=row.pk).update(state=JobState.STOPPED, ended_at=again(row).job.created_at)

    assert boxes.machines(Job.objects.filter(pk=row.pk)) == {row.pk: "node1"}
    row = ready(begin(again(row)))

    assert said(row, 'cat "$AIP_PACKAGES/note" "$HOME/note"').split() == ["kept", "home"]
    assert said(row, 'echo "$PATH"').startswith("/opt/packages/0/bin:")


def test_environment_in_a_container_without_jupyterlab_ends_and_says_what_to_do(started, engine, root):
    if not isinstance(engine, FakeEngine):
        pytest.skip("the operator's image has one")
    (root / "image/bin/jupyter-lab").unlink()

    row = started()
    record = until(lambda: records.read(RunDir.of(row.pk, 1).path / records.EXIT), 60)

    assert record["code"] == 1
    assert "no jupyter-lab on its PATH. Choose an image with JupyterLab" in printed(RunDir.of(row.pk, 1).log)


def test_environment_in_a_container_without_python_ends_and_says_what_to_do(started, monkeypatch):
    monkeypatch.setattr(env, "CONTAINER_PYTHON", "/no/such/python3")

    row = started()
    record = until(lambda: records.read(RunDir.of(row.pk, 1).path / records.EXIT), 60)

    assert record["code"] == 1
    assert "no python3 on its PATH, which JupyterLab needs" in printed(RunDir.of(row.pk, 1).log)


def test_environment_in_a_container_goes_on_without_its_exec_server_and_ends_with_its_supervisor(started, engine):
    row = ready(started())
    run = RunDir.of(row.pk, 1).path
    kept = records.read(run / records.SUPERVISOR)
    for pid in processes.descendants(kept["child"]["pid"]):
        if processes.name(pid) == exec_socket.NAME:
            os.kill(pid, signal.SIGKILL)

    assert processes.descendants(kept["child"]["pid"])
    os.kill(kept["pid"], signal.SIGKILL)

    left = Engine(str(engine.socket))
    until(lambda: not left.labelled(f"aip.run={run}"), 60, "its container lives on")
    assert stat.S_ISDIR((places.box(row.pk) / boxes.UPPER).stat().st_mode)


def test_vscode_on_the_path_of_a_container_image_is_offered_and_opened(started, engine, root):
    if not isinstance(engine, FakeEngine):
        pytest.skip("the operator's image has none")
    installed(root / "image", CODE_SERVER.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
    (root / "image/bin/jupyter-lab").rename(root / "image/bin/code-server")
    installed(root / "image", STUB.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))

    row = ready(started())
    assert row.vscode == "code-server"
    vscode.start(PublishedPort.objects.get(job=row.pk, name=vscode.NAME))

    assert "listening" in (RunDir.of(row.pk, 1).outputs / vscode.LOG).read_text()


def test_environment_in_a_container_is_paused_and_goes_on(started):
    row = ready(started())
    run = RunDir.of(row.pk, 1).path
    asked = jupyter.whom(row.job, Attempt.objects.get(job=row.pk), services.token_of(row))

    records.write_request(run, "pause")
    until(lambda: (records.read(run / records.STATUS) or {}).get("state") == "paused", 60)
    records.write_request(run, "run")
    until(lambda: (records.read(run / records.STATUS) or {}).get("state") == "running", 60)

    until(lambda: jupyter.ask(asked) is not None, 60)


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
    with places.packed(image.pk).open("rb") as file:
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
    assert (config.get("Labels") or None) == (below.get("Labels") or None)
    held = unpacked(made)
    assert (made.size_bytes, made.sha256) == (
        places.packed(made.pk).stat().st_size,
        hashlib.sha256(places.packed(made.pk).read_bytes()).hexdigest(),
    )
    for secret in (SECRET, services.token_of(filled), f"home/{alice.username}"):
        assert secret.encode() not in held
    assert own.named(committing.helpers()) == []


def test_environment_starts_from_a_saved_container_image_on_a_machine_that_never_had_it(
    filled, started, engine, image, alice
):
    made = saved(filled, alice)
    own = Engine(str(engine.socket))
    tidying.tidy_engine()
    assert copies.is_here(made.reference)
    end(RunDir.of(filled.pk, 1).path)
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
    assert not places.packed(again_saved.pk).exists()
    tidying.tidy_engine()
    assert not copies.is_here(again_saved.reference)


def test_saved_container_image_that_was_changed_is_not_given_to_an_engine(filled, engine, alice):
    made = saved(filled, alice)
    Engine(str(engine.socket)).remove_image(made.reference)
    path = places.packed(made.pk)
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
    packed = places.packed(row.pk)

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


def test_container_image_is_saved_again_after_the_engine_failed(filled, engine, alice, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(Engine, "commit", lambda *_given: (_ for _ in ()).throw(Refused(500, "no space")))
        row = saved(filled, alice)
    assert (row.state, "no space" in row.why) == (State.FAILED, True)
    assert not places.packed(row.pk).exists()

    images.make(row, by=alice)
    saving.run(row.pk)
    row.refresh_from_db()

    assert row.state == State.READY
    assert unpacked(row)


def test_environment_without_an_image_is_refused_where_there_are_containers_alone(machine, alice):
    with pytest.raises(Invalid, match="Choose a container image with JupyterLab") as caught:
        services.check(alice, EnvironmentRequest(cpus=1.0))

    assert caught.value.blamed == "image"


def test_environment_form_offers_container_images(started, image, as_alice):
    page = as_alice.get("/environments/new/").content.decode()

    assert f'<option value="{image.pk}">' in page


def test_environment_in_a_container_is_stopped_by_its_owner(started, alice):
    row = ready(started())

    actions.stop(row.job, by=alice)

    assert ImageUse.objects.get(job=row.pk).node == "node1"
    assert uses.of(row.job).boxed
