import re

import pytest
from django.utils.timezone import now

from aiplatform import env
from aiplatform.lib.errors import Invalid
from inference.registry import registration as registry
from inference.serving import endpoints
from inference.serving.addresses import Place
from inference.serving.kind import ServiceKind
from inference.serving.models import Service
from tests.factories import models as factory
from tests.factories import work
from tests.inference import conftest, tiny
from tests.inference.running import set_state
from tests.inference.weights import safetensors_file, tensor
from workers.core.models import Membership
from workers.core.runs import RunDir
from workers.jobs.resource_request import NotAMember
from workers.planning import planner_input
from workers.planning.planner.order import queue_order

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.sockets("a model server of its own")]


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


def test_service_starts_as_a_job_that_restarts_on_failure(alice, version):
    service = endpoints.create(user=alice, name="demo", model_version=version)

    assert (service.job.kind, service.job.restart, service.job.state) == ("service", "on_failure", "queued")
    assert (service.state, service.visibility) == ("queued", "private")
    assert service.slug.startswith("demo-")
    assert service.running is None


def test_service_that_stopped_starts_again_at_the_same_address(alice, version):
    service = endpoints.create(user=alice, name="demo", model_version=version)
    first = service.job
    with pytest.raises(endpoints.AlreadyUp):
        endpoints.start(service=service, by=alice)
    set_state(first, "stopped")
    service.refresh_from_db()
    assert service.state == "stopped"

    again = endpoints.start(service=service, by=alice)

    assert again.slug == service.slug
    assert again.job != first
    assert again.state == "queued"


def test_service_that_is_started_again_comes_before_trainings_in_the_queue(alice, version, cluster):
    work.node(cores=4)
    service = endpoints.create(user=alice, name="demo", model_version=version)
    set_state(service.job, "stopped")
    batch = [work.job(alice, cluster, name=f"train{number}") for number in range(3)]
    endpoints.start(service=Service.objects.get(pk=service.pk), by=alice)

    picture = planner_input.read(now(), ({alice.pk: 50.0}, {}), 3600.0)
    order = [row.job for row in queue_order(picture, now().timestamp())]

    assert order[0] == Service.objects.get(pk=service.pk).job_id
    assert set(order[1:]) == {row.pk for row in batch}


def test_service_run_time_stops_growing_when_it_is_over(alice, version):
    service = endpoints.create(user=alice, name="demo", model_version=version)
    set_state(service.job, "stopped")
    type(service.job).objects.filter(pk=service.job_id).update(ended_at=service.job.started_at)
    service.job.refresh_from_db()

    assert service.running.total_seconds() == 0


def test_service_is_ready_once_it_was_seen_to_answer(alice, version):
    service = endpoints.create(user=alice, name="demo", model_version=version)
    set_state(service.job, "running")
    assert service.state == "starting"

    endpoints.remember_ready(service, 1)
    service.refresh_from_db()
    assert service.state == "ready"

    set_state(service.job, "running").attempt_number = 2  # restarted after a failure
    assert Service(job=service.job, ready_attempt=1).state == "starting"


@pytest.mark.parametrize(
    "wrong",
    [{"name": "two/words"}, {"name": " "}, {"max_batch": 0}, {"cpus": 0}, {"visibility": "all"}, {"max_delay_ms": -1}],
)
def test_service_refuses_wrong_values(alice, version, wrong):
    with pytest.raises(Invalid):
        endpoints.create(user=alice, **{"name": "demo", "model_version": version, **wrong})


def test_service_without_a_name_takes_the_models_and_an_address_of_plain_letters(alice, tmp_path):
    version = factory.model_version(alice, tmp_path, name="细胞 Cells (new)")

    first, second = (endpoints.create(user=alice, name="", model_version=version) for _ in range(2))
    chinese = endpoints.create(user=alice, name="细胞", model_version=version)

    assert (first.name, second.name) == ("细胞_Cells_new", "细胞_Cells_new_2")
    assert re.fullmatch(r"_?cells_new-[0-9a-f]{8}", first.slug)
    assert re.fullmatch(r"service-[0-9a-f]{8}", chinese.slug)


def test_service_refuses_weights_alone(alice, tmp_path):
    path = safetensors_file(tmp_path, {"a": tensor(0, 16, [4])}, bytes(16))
    version = registry.register_upload(user=alice, archive=path, filename="a.safetensors", name="weights")

    with pytest.raises(endpoints.CannotServe):
        endpoints.create(user=alice, name="demo", model_version=version)


def test_service_name_is_taken_once_per_person(alice, bob, version, tmp_path):
    endpoints.create(user=alice, name="demo", model_version=version)
    endpoints.create(user=bob, name="demo", model_version=factory.model_version(bob, tmp_path, name="other"))

    with pytest.raises(registry.NameTaken):
        endpoints.create(user=alice, name="demo", model_version=version)


def test_service_start_is_refused_to_who_left_every_cluster(alice, version):
    Membership.objects.filter(user=alice).delete()

    with pytest.raises(NotAMember):
        endpoints.create(user=alice, name="demo", model_version=version)


def test_service_key_belongs_to_one_attempt(alice):
    keys = {endpoints.key_for(job, attempt) for job, attempt in ((1, 1), (1, 2), (2, 1), (1, 1))}

    assert len(keys) == 3  # the same one each time for the same attempt, so that the proxy knows it


def test_service_prepare_fills_a_run_that_needs_nothing_of_us(alice, version, tmp_path):
    """The copied code starts from its own folder and answers."""
    service = endpoints.create(user=alice, name="demo", model_version=version)
    set_state(service.job, "running")
    attempt = service.job.attempts.get()
    run = RunDir(tmp_path / "run")
    run.code.mkdir(parents=True)

    launch = ServiceKind().prepare(service.job, attempt, run)
    ServiceKind().prepare(service.job, attempt, run)  # a crash in between: again

    process, port = conftest.launch(launch.argv, run.code, launch.env)
    try:
        assert endpoints.is_ready(Place("127.0.0.1", port), endpoints.key_for(service.job_id, 1))
        assert not endpoints.is_ready(Place("127.0.0.1", port), endpoints.key_for(service.job_id, 2))
    finally:
        process.terminate()
        process.wait(10)
    assert launch.ports == 1
    assert launch.read_only == [version.path]
    assert launch.env["AIP_SERVE_MAX_PIXELS"] == str(env.MAX_IMAGE_PIXELS)  # one limit for imports and questions


def test_service_deletion_stops_it_and_keeps_the_model(alice, version):
    service = endpoints.create(user=alice, name="demo", model_version=version)
    job = service.job

    endpoints.delete(service=service, by=alice)

    job.refresh_from_db()
    assert job.desired == "stop" or job.is_final
    version.refresh_from_db()
    assert not Service.objects.exists()


def test_service_serves_tensor_models_too(alice, tmp_path):
    tiny.identity(tmp_path)
    version = registry.register_upload(user=alice, archive=tmp_path / "model.onnx", filename="net.onnx", name="net")

    assert endpoints.create(user=alice, name="demo", model_version=version).state == "queued"
