"""Several services in one process: who shares, what the process is told, how they leave it."""

import json
import time

import pytest
from django.utils.timezone import now
from PIL import Image

from aiplatform.lib.errors import DomainError
from inference.registry import model_jobs
from inference.serving import addresses, host_assignment, model_swaps
from inference.serving import endpoints as serving
from inference.serving.models import Service, ServiceTrial
from inference.serving.server import at_work
from inference.serving.server.host import ABOUT, FAILED
from inference.serving.shared_hosts import folders, separation
from inference.serving.shared_hosts.kind import HostKind
from inference.serving.traffic import trials
from tests.factories import models as factory
from tests.inference import pictures
from tests.inference.asking import call
from tests.inference.launching import get, launch
from tests.inference.programs import prepared
from tests.inference.running import set_state
from tests.inference.scaled import ending
from workers.access.proxy import endpoints
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir

pytestmark = [pytest.mark.django_db, pytest.mark.sockets("a model server of its own")]


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path, name="colours", task="tagging")


@pytest.fixture
def shared(alice, version):
    """Two services in one process that runs."""
    made = [serving.create(user=alice, name=n, model_version=version, share_process=True) for n in ("one", "two")]
    set_state(made[0].job, "running")
    return [fresh(service) for service in made]


def fresh(service):
    return Service.objects.select_related("job", "next_job", "old_job", "owner", "model_version").get(pk=service.pk)


def held(job):
    folders.sync(Job.objects.get(pk=job.pk))
    names = [path.name for path in host_assignment.folder(job.pk).iterdir()]
    return sorted(names, key=lambda name: [int(number) for number in name.split("-")])


def test_services_share_a_process_of_their_owner_alone_that_ends_with_the_last(alice, bob, shared, version, tmp_path):
    first, second = shared
    job = first.job
    other = factory.model_version(bob, tmp_path, name="others", task="tagging")
    bobs = serving.create(user=bob, name="one", model_version=other, share_process=True)
    larger = serving.create(user=alice, name="larger", model_version=version, share_process=True, cpus=2.0)
    alone = serving.create(user=alice, name="alone", model_version=version)

    assert (job.kind, second.job) == ("service_host", job)
    assert len({job.pk, bobs.job_id, larger.job_id, alone.job_id}) == 4
    assert held(job) == [f"{first.pk}-{version.pk}", f"{second.pk}-{version.pk}"]

    serving.stop(service=first, by=alice)
    job.refresh_from_db()
    assert (fresh(first).state, job.state, held(job)) == ("stopped", "running", [f"{second.pk}-{version.pk}"])
    serving.start(service=first, by=alice)
    assert fresh(first).job == job

    serving.stop(service=first, by=alice)
    serving.delete(service=second, by=alice)
    job.refresh_from_db()
    assert ending(job)
    assert serving.start(service=fresh(first), by=alice).job != job


def test_what_cannot_be_had_in_a_shared_process_is_refused_at_once(alice, version, monkeypatch):
    monkeypatch.setattr(host_assignment, "MAX_MIB", 0)

    with pytest.raises(DomainError) as refused:
        serving.create(
            user=alice, name="x", model_version=version, share_process=True, gpus_per_node=1, limits={"max_replicas": 2}
        )

    message = " ".join(error.message for error in refused.value.every)
    assert all(word in message for word in ("Request no GPU", "larger than 0 MiB", "Set the maximum to 1"))
    assert not Service.objects.exists()


def test_shared_service_changes_its_model_within_its_process(alice, shared, tmp_path, monkeypatch):
    first, _two = shared
    newer = factory.model_version(alice, tmp_path, name="newer", task="tagging")
    prefixes = []
    monkeypatch.setattr(endpoints, "endpoint", lambda job: ("127.0.0.1", 1))
    monkeypatch.setattr(serving, "is_ready", lambda where, key: prefixes.append(where.prefix) or True)

    model_swaps.change_model(service=first, version=newer, by=alice)
    assert held(first.job)[:2] == [f"{first.pk}-{first.model_version_id}", f"{first.pk}-{newer.pk}"]
    after = model_swaps.advance(fresh(first))

    assert prefixes[-1] == f"/m/{first.pk}-{newer.pk}"
    assert (after.model_version, after.job, after.next_job, after.old_job) == (newer, first.job, None, None)
    assert f"{first.pk}-{first.model_version_id}" not in held(first.job)


def test_version_tried_beside_a_shared_service_is_loaded_into_its_process_when_it_is_promoted(alice, shared, tmp_path):
    first, _two = shared
    newer = factory.model_version(alice, tmp_path, name="newer", task="tagging")
    trial = trials.start(service=first, version=newer, mode="canary", percent=10, by=alice)
    assert trial.job.kind == "service"
    set_state(trial.job, "running")
    ServiceTrial.objects.filter(pk=trial.pk).update(ready_attempt=1)

    trials.promote(service=first, by=alice)

    after = fresh(first)
    assert (after.job, after.next_job, after.next_version, after.old_job) == (first.job, first.job, newer, trial.job)
    assert name(after) in held(first.job)
    assert f"{first.pk}-{newer.pk}" in held(first.job)


def test_slot_of_a_model_says_while_it_runs_and_is_free_again(tmp_path):
    path, states = tmp_path / at_work.FILE, []
    slots = at_work.Slots(path)

    class Engine:
        inputs = outputs = ()
        provider, batches, even = "cpu", True, True

        def run(self, feeds, wanted=None):
            states.append(at_work.read(path.read_bytes()))
            raise ArithmeticError

    slots.acquire("1-1")
    slot = slots.acquire("2-2")
    with pytest.raises(ArithmeticError):
        at_work.Marked(Engine(), slot).run({})

    assert states == [{"2-2": at_work.RUNS}]
    assert at_work.read(path.read_bytes()) == {}


def test_model_at_work_at_two_crashes_in_a_row_gets_a_process_of_its_own(alice, shared):
    first, second = shared
    job = first.job
    names = [addresses.name_of(service.pk, service.model_version_id) for service in shared]
    Attempt.objects.filter(job=job).delete()
    attempts = [
        crashed(job, number, dict.fromkeys(names, at_work.RUNS) | {names[0]: at_work.LOADS}) for number in (1, 2)
    ]

    HostKind().ended(job, attempts[0])
    assert fresh(first).job == job
    HostKind().ended(job, attempts[1])

    gone, stays = fresh(first), fresh(second)
    assert (gone.job.kind, gone.options["share_process"], stays.job) == ("service", False, job)
    assert "one left the shared process:" in str(gone.sharing_message)
    assert job.events.filter(event="service_parted").count() == 1
    assert separation.suspects({"1-1": at_work.RUNS}, {"2-2": at_work.RUNS}) == []


@pytest.mark.django_db(transaction=True)
def test_process_answers_while_models_come_and_go_and_comes_back_from_a_kill(shared, version, alice, monkeypatch):
    first, second = shared
    argv, env, run = prepared(HostKind(), first.job)
    process, port = launch(argv, run.code, env)
    monkeypatch.setattr(endpoints, "endpoint", lambda job: ("127.0.0.1", port))
    try:
        until(lambda: answers(first, alice) and answers(second, alice))
        assert model_swaps.refresh(fresh(second)).state == "ready"
        assert get(port, f"/m/{name(first)}/v2", "another") == get(port, "/m/1-2/v2", "another") == 401
        assert get(port, "/m/1-2/v2", env["AIP_SERVICE_KEY"]) == 503

        three = serving.create(user=alice, name="three", model_version=version, share_process=True)
        folders.sync(first.job)
        until(lambda: answers(three, alice) and answers(first, alice))

        process.kill()
        process.wait()
        serving.stop(service=second, by=alice)
        argv, env, run = prepared(HostKind(), first.job)
        process, port = launch(argv, run.code, env)
        until(lambda: answers(first, alice) and answers(three, alice))
        assert call("GET", f"{second.url}/v2", user=alice).status == 410
        assert get(port, f"/m/{name(second)}/v2", env["AIP_SERVICE_KEY"]) == 503

        broken = host_assignment.folder(first.job_id) / name(three)
        (broken / "model" / "model.onnx").unlink()
        (broken / ABOUT).write_text(json.dumps({"env": {}}))
        until(lambda: name(three) in model_jobs.read(run.outputs, FAILED))
        monkeypatch.setattr(folders, "sync", lambda job: None)
        separation.sweep()
        assert (fresh(three).job.kind, fresh(first).job) == ("service", first.job)
        assert "could not be loaded" in str(fresh(three).sharing_message)
        assert answers(first, alice)
    finally:
        process.kill()
        process.wait()


def name(service):
    return addresses.name_of(service.pk, service.model_version_id)


def answers(service, user):
    picture = pictures.encoded(Image.new("RGB", (8, 8), "red"), "PNG")
    answer = call("POST", f"{service.url}/predict", user=user, body=picture)
    return answer.status == 200 and answer.json["predictions"][0]["name"] == "red"


def crashed(job, number, at_crash):
    """An attempt whose process died while models were at work."""
    outputs = RunDir.for_attempt(job.pk, number).outputs
    outputs.mkdir(parents=True)
    slots = b"".join(act + name.encode().ljust(at_work.SLOT - 1, b"\0") for name, act in at_crash.items())
    (outputs / at_work.FILE).write_bytes(slots)
    return Attempt.objects.create(job=job, number=number, state="failed", ended_at=now())


def until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)  # pause: another process loads
