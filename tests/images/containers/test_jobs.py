"""Jobs in container images: looked up, fetched by the machine, given to its engine, the same one in every attempt."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from aiplatform import env
from aiplatform.lib.errors import Invalid
from tests.fakes import registry as fake
from tests.fakes import slow_unpacking
from tests.running import wait_for as until
from tests.workers.engines import RealEngine
from training.environments import engine as environments
from workers.core import clock
from workers.core.kinds import Launch
from workers.core.models import Job, Node
from workers.core.runs import RunDir
from workers.execution import launch, tickets
from workers.images.containers import adding, copies, registry_client, tidying
from workers.images.containers.reference import OWN
from workers.images.models import Image, ImageUse, NodeCopy, State
from workers.images.services import uses
from workers.images.services.launch import with_image
from workers.images.store import paths as places
from workers.jobs import submission
from workers.planning import planner_input
from workers.planning.planner.fit import Space
from workers.supervisor import engines, records
from workers.supervisor.engine import Engine
from workers.supervisor.sandbox import CONTAINER

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("a registry and a container engine of the tests")]
LAYER = fake.layer({"hello": b"world"})


@pytest.fixture
def started(placed, kind, contained, root, tier4, monkeypatch):
    """`started(image)`: a job of Alice's in this image, placed here; the messages it sends are kept."""
    monkeypatch.setattr(env, "CONTAINER_PYTHON", sys.executable)

    def one(image, *, boxed=False):
        job, attempt = placed(["unused"])
        uses.attach(job, image, boxed=boxed)
        kind.prepare = lambda job, attempt, run: with_image(Launch(argv=["/bin/sh", "-c", "echo inside"]), job)
        return job, attempt

    return one


def log(job) -> str:
    return RunDir.for_attempt(job.pk, 1).log.read_text()


def fetched(attempt) -> NodeCopy:
    """Start, as the agent does, until the image is here, fetching what was asked for."""
    launch.start(attempt.pk)
    copy = NodeCopy.objects.get()
    copies.run(copy.pk)
    launch.start(attempt.pk)
    copy.refresh_from_db()
    return copy


def test_image_is_looked_up_with_credentials_and_its_facts_are_noted(registry, added):
    config = {"config": {"Env": ["PYTHON_VERSION=3.12.1", "CUDA_VERSION=12.4"]}}
    digest = registry.put("lab/torch", "2", [LAYER], **config)

    image = added()

    assert (image.status, image.digest) == (State.READY, digest)
    assert image.reference == f"{registry.host}/lab/torch:2"
    assert image.contents["python"] == "3.12.1"
    assert image.contents["architecture"] == "amd64"
    assert image.total_bytes > 0


@pytest.mark.parametrize("boxed", [False, True])
def test_container_is_told_the_index_of_the_house(registry, added, started, tmp_path, monkeypatch, boxed):
    registry.put("lab/torch", "2", [LAYER])
    job, _attempt = started(added(), boxed=boxed)

    monkeypatch.setattr(env, "ENGINE_INDEX", str(tmp_path))
    folder = with_image(Launch(argv=[]), job)
    monkeypatch.setattr(env, "ENGINE_INDEX", "https://mirror.example/simple")
    address = with_image(Launch(argv=[]), job)

    assert (folder.env["PIP_FIND_LINKS"], folder.env["PIP_NO_INDEX"]) == (str(tmp_path), "1")
    assert folder.read_only == [tmp_path]
    assert address.env["PIP_INDEX_URL"] == "https://mirror.example/simple"
    assert address.read_only == []


def test_image_that_is_not_there_says_so(added):
    image = added("lab/none:1")

    assert image.status == State.FAILED
    assert "has no image lab/none:1" in image.why


def test_job_waits_for_its_image_and_runs_in_it(registry, added, started):
    registry.put("lab/torch", "2", [LAYER])
    job, attempt = started(added())

    copy = fetched(attempt)
    record = until(lambda: records.read(RunDir.for_attempt(job.pk, 1).path / records.EXIT))

    assert copy.state == State.READY
    assert record["code"] == 0
    lines = log(job).splitlines()
    assert lines[0] == "[image] fetching name=torch done=0 total=0"
    assert [line for line in lines if line.startswith("[environment] attempt")]
    assert "inside" in lines[1:]
    attempt.refresh_from_db()
    assert attempt.image.startswith(f"{OWN}:")


def test_job_gets_the_same_image_again_though_its_tag_moved(registry, added, started):
    first = registry.put("lab/torch", "2", [LAYER])
    image = added(policy="newest")
    job, attempt = started(image)
    fetched(attempt)
    registry.put("lab/torch", "2", [LAYER, fake.layer({"more": b"x"})])

    again = with_image(Launch(argv=[]), job)

    assert again.container["image"] == copies.name_of(image.reference, first)


@pytest.mark.parametrize(("policy", "moves"), [("pinned", False), ("newest", True)])
def test_new_job_gets_the_noted_image_or_the_newest(registry, added, started, policy, moves):
    first = registry.put("lab/torch", "2", [LAYER])
    image = added(policy=policy)
    second = registry.put("lab/torch", "2", [LAYER, fake.layer({"more": b"x"})])
    job, attempt = started(image)

    fetched(attempt)

    assert ImageUse.objects.get(job=job).digest == (second if moves else first)


def test_index_gives_this_machines_own_image(registry, added, started):
    own = registry.put("lab/torch", "own", [LAYER])
    other = registry.put("lab/torch", "other", [LAYER], architecture="s390x")
    index = registry.index("lab/torch", "2", {"amd64": own, "arm64": own, "s390x": other})
    image = added()
    _job, attempt = started(image)

    copy = fetched(attempt)

    assert (image.digest, copy.state) == (index, State.READY)
    assert image.contents["architecture"] == "amd64, arm64, s390x"


def test_image_that_cannot_be_fetched_ends_the_job_with_the_reason(registry, added, started):
    registry.put("lab/torch", "2", [LAYER])
    job, attempt = started(added())
    registry.users["alice"] = "changed"

    fetched(attempt)
    attempt.refresh_from_db()

    assert "could not be downloaded" in str(attempt.message)
    assert "does not accept these credentials, or they do not permit" in str(attempt.message)
    assert Job.objects.get(pk=job.pk).state == "failed"


def test_fetch_that_was_killed_goes_on_with_what_is_there(registry, added, started, monkeypatch):
    registry.put("lab/torch", "2", [LAYER, fake.layer({"more": b"x" * 1000})])
    image = added()
    _job, attempt = started(image)
    launch.start(attempt.pk)
    copy = NodeCopy.objects.get()
    real, calls = copies._fetch, []

    def dying(*given):
        if len(calls) == 1:
            raise KeyboardInterrupt
        calls.append(given[2])
        real(*given)

    monkeypatch.setattr(copies, "_fetch", dying)
    with pytest.raises(KeyboardInterrupt):
        copies.run(copy.pk)
    NodeCopy.objects.update(renewed_at=None)  # its process is gone
    monkeypatch.setattr(copies, "_fetch", lambda *given: (calls.append(given[2]), real(*given)))
    copies.run(copy.pk)
    copy.refresh_from_db()

    assert copy.state == State.READY
    assert len(calls) == len(set(calls)) == 3
    assert not list(places.all_blobs().rglob(".*"))


def test_fetch_keeps_its_claim_while_the_engine_unpacks(registry, added, started, monkeypatch):
    registry.put("lab/torch", "2", [LAYER])
    _job, attempt = started(added())
    slow_unpacking.begin(monkeypatch)

    copy = fetched(attempt)

    assert copy.state == State.READY, str(copy.message)


def test_password_is_in_no_row_ticket_log_or_file_of_a_job(registry, added, started, login, root):
    registry.put("lab/torch", "2", [LAYER])
    job, attempt = started(added())
    fetched(attempt)
    until(lambda: records.read(RunDir.for_attempt(job.pk, 1).path / records.EXIT))

    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if b"opensesame" in path.read_bytes()]
    assert "opensesame" not in login.secret


def test_machine_without_containers_refuses_with_its_tier(registry, added, placed, kind, tier4, monkeypatch):
    registry.put("lab/torch", "2", [LAYER])
    monkeypatch.setattr(tickets, "tier", lambda: (2, ""))
    job, _attempt = placed(["unused"])
    uses.attach(job, added())

    with pytest.raises(Exception, match=r"The image torch requires a container, and node node1 has"):
        with_image(Launch(argv=[]), job)


def test_submission_refuses_what_no_machine_can_run(registry, added, alice, tier4):
    registry.put("lab/torch", "2", [LAYER])
    image = added()
    uses.check(alice, image)
    Node.objects.update(sandbox_tier=3)

    with pytest.raises(Invalid, match="node1: 3, separate user and limits") as caught:
        uses.check(alice, image)

    assert caught.value.blamed == "image"


def test_planner_gives_container_jobs_to_containers_and_others_elsewhere(registry, added, tier4, cluster, alice):
    registry.put("lab/torch", "2", [LAYER])
    asked = {"owner": alice, "cluster": cluster, "kind": "command", "gpus_per_node": 1}
    inside, anywhere = (submission.submit(name=name, **asked) for name in ("in", "out"))
    uses.attach(inside, added())

    found = {one.job: one.request for one in planner_input.read(clock.now(), ({}, {}), 1.0).waiting}

    assert (found[inside.pk].tiers, found[anywhere.pk].tiers) == ((4, 4), None)
    assert [fits(found[inside.pk], tier) for tier in (3, 4)] == [False, True]
    assert [fits(found[anywhere.pk], tier) for tier in (3, 4)] == [True, True]


def fits(request, tier) -> bool:
    """Whether a request fits the machines, were they of this tier."""
    space = Space([replace(one, tier=tier) for one in planner_input.machines()], planner_input.devices())
    return space.find(space.shape(request, None), space.free) is not None


def test_engine_forgets_what_no_image_names_any_more(registry, added, started, contained):
    registry.put("lab/torch", "2", [LAYER])
    image = added()
    job, attempt = started(image)
    fetched(attempt)
    until(lambda: records.read(RunDir.for_attempt(job.pk, 1).path / records.EXIT))
    assert tidying.tidy_engine() == 0
    ImageUse.objects.all().delete()
    Image.objects.filter(pk=image.pk).delete()

    assert tidying.tidy_engine() == 1
    assert not copies.is_here(copies.name_of(image.reference, image.digest))


def test_local_image_is_noted_by_its_id_and_the_platforms_own_cannot_be_named(contained, tier4, alice):
    image = adding.add(user=alice, name="mine", reference="docker.io/library/image", source="local")
    adding.run(image.pk)
    image.refresh_from_db()
    assert image.status == State.FAILED

    with pytest.raises(Invalid):
        adding.add(user=alice, name="theirs", reference=f"{OWN}:{'0' * 64}", source="local")


def test_lost_message_is_sent_again(added, monkeypatch):
    image = added("lab/none:1")
    adding.look_up_again(image)
    sent = []
    monkeypatch.setattr(adding, "enqueue", lambda name, **more: sent.append((name, more["image_id"])))

    adding.resend()

    assert sent == [("images.look", image.pk)]


def test_image_is_looked_up_by_one_at_a_time(registry, added, monkeypatch):
    registry.put("lab/torch", "2", [LAYER])
    image = added()
    adding.look_up_again(image)
    sent, asked = [], []
    monkeypatch.setattr(adding, "enqueue", lambda name, **more: sent.append(name))

    def slow(image):
        asked.append(image)
        adding.run(image.pk)
        adding.resend()
        raise ValueError("Port out of range")

    monkeypatch.setattr(adding, "_remote", slow)
    adding.run(image.pk)
    image.refresh_from_db()

    assert (len(asked), sent) == (1, [])
    assert (image.state, image.holder) == (State.FAILED, "")
    assert image.why == "The image could not be resolved: Port out of range"


def test_blobs_of_one_name_are_not_given_to_another(registry, added, started):
    """A manifest may name any digest: to know one is not to be allowed to read it."""
    registry.put("lab/torch", "2", [LAYER])
    _job, attempt = started(added())
    fetched(attempt)
    kept = {path.name for path in places.all_blobs().rglob("*") if path.is_file()}

    elsewhere = places.blobs(f"{registry.host}/lab/other")

    names = {copies.name_of(f"{registry.host}/lab/{name}:2", "sha256:x") for name in ("torch", "other")}

    assert (len(kept), len(names)) == (2, 2)
    assert not [name for name in kept if places.blob(elsewhere, name).exists()]


def test_machine_that_joined_says_that_it_cannot_open_credentials(added, login, monkeypatch):
    monkeypatch.setattr(env, "NODE_JOINED", True)
    login.secret = "sealed elsewhere"

    with pytest.raises(
        registry_client.RegistryRefused, match=r". Restore the job; if that does not help, ask an operator"
    ):
        registry_client.registry(login.host, login)


def test_environment_is_offered_in_container_images_and_in_those_alone(registry, added, alice, tier4):
    registry.put("lab/torch", "2", [LAYER])
    environments.check(alice, added())

    with pytest.raises(Invalid, match="Choose a container image with JupyterLab") as caught:
        environments.check(alice, None)

    assert caught.value.blamed == "image"


def small() -> bytes:
    """A layer with a shell of this machine and what it is linked with."""
    shell = Path("/bin/sh").resolve()
    linked = subprocess.run(["ldd", shell], capture_output=True, text=True, check=True).stdout
    paths = [word for word in linked.split() if word.startswith("/")]
    return fake.layer({"bin/sh": shell.read_bytes()} | {path.strip("/"): Path(path).read_bytes() for path in paths})


def test_real_engine_takes_and_runs_what_was_fetched_over_https(
    registry, added, placed, kind, root, tier4, monkeypatch
):
    real = RealEngine()
    monkeypatch.setattr(tickets, "tier", lambda: (CONTAINER, ""))
    monkeypatch.setattr(tickets, "containers", lambda: engines.Offer(container=real.about, engine="real"))
    registry.put("lab/torch", "2", [small(), LAYER])
    job, attempt = placed(["unused"])
    uses.attach(job, added())
    kind.prepare = lambda job, attempt, run: with_image(Launch(argv=["/bin/sh", "-c", "read x < /hello; echo $x"]), job)

    copy = fetched(attempt)
    record = until(lambda: records.read(RunDir.for_attempt(job.pk, 1).path / records.EXIT))
    name = copies.name_of(ImageUse.objects.get(job=job).image.reference, copy.digest)
    Engine(real.socket).remove_image(name)

    assert (copy.state, record["code"]) == (State.READY, 0), (copy.message, log(job))
    assert "world" in log(job).splitlines()
