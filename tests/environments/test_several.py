"""Environments on several machines: how they are asked for, and what each machine runs."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils.timezone import now

from datasets.files import homes
from tests.factories import curves, work
from tests.running import wait_for
from training.environments import lifecycle, panel, services, several
from training.environments.kind import EnvironmentKind
from training.environments.models import Environment
from training.environments.request_schema import SCHEMA
from training.environments.services import EnvironmentRequest
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.models import ImageUse
from workers.scheduling import placing
from workers.supervisor import records

API, PAGE = "/api/v1/environments/", "/environments/new/"
FORM = {"gpus_per_node": 0, "cpus": 1, "priority": 0}
kind = EnvironmentKind()


@pytest.fixture
def two(db):
    return [work.node(name, cores=4, address=f"10.0.0.{n}") for n, name in enumerate(("first", "second"), start=1)]


@pytest.fixture
def placed(alice, two, stub):
    """An environment on two machines, placed; its row, launch and run directory."""
    row = services.submit(user=alice, request=EnvironmentRequest(nodes=2, cpus=1.0))
    placing.place(row.pk, [(node.pk, [(node.devices.get().pk, 8)]) for node in two])
    run = RunDir.for_attempt(row.pk, 1)
    run.path.mkdir(parents=True, exist_ok=True)
    attempt = Attempt.objects.select_related("job").get(job=row.pk)
    return row, kind.prepare(Job.objects.get(pk=row.pk), attempt, run), run


def test_distributed_environment_is_asked_for_by_page_and_api(as_alice, api, two):
    page = as_alice.post(PAGE, FORM | {"task_type": "distributed", "nodes": 2})
    answer = api.post(API, {"nodes": 2, "cpus": 1}, format="json")

    rows = list(Environment.objects.order_by("pk"))
    assert page["Location"] == f"/jobs/{rows[0].pk}/"
    assert answer.json()["nodes"] == 2
    assert [row.job.nodes for row in rows] == [2, 2]
    assert {use.boxed for use in ImageUse.objects.filter(job__kind="environment")} == {False}  # of no machine's disk


@pytest.mark.parametrize(
    ("nodes", "said"), [("", "Enter the number of nodes: 2 or more."), ("1", "greater than or equal to 2")]
)
def test_distributed_environment_has_to_say_on_how_many_machines(as_alice, two, nodes, said):
    answer = as_alice.post(PAGE, FORM | {"task_type": "distributed", "nodes": nodes})

    assert answer.status_code == 422
    assert said in answer.context["form"].errors["nodes"][0]
    assert not Environment.objects.exists()


@pytest.mark.parametrize("more", [{}, {"task_type": ""}, {"task_type": "regular", "nodes": "5"}, {"nodes": "x"}])
def test_regular_environment_runs_on_one_machine_whatever_stands_in_the_field(as_alice, two, more):
    as_alice.post(PAGE, FORM | more)

    assert Environment.objects.get().job.nodes == 1


def test_distributed_environment_is_cloned_and_written_as_a_request(as_alice, alice, two, stub):
    row = services.submit(user=alice, request=EnvironmentRequest(nodes=2, cpus=1.0))

    form = as_alice.get(f"{PAGE}?clone={row.pk}").context["form"]
    request = SCHEMA.of_job(row.job)
    begun = SCHEMA.initial(alice, request)

    assert (form.is_distributed, form["nodes"].value(), form.total_cards) == (True, 2, 0)
    assert request["nodes"] == 2
    assert (begun["task_type"], begun["nodes"]) == ("distributed", 2)
    assert SCHEMA.initial(alice, {})["task_type"] == "regular"


def test_distributed_environment_tells_programs_of_its_machines(placed, alice):
    row, launch, _run = placed
    packages = homes.path_of(alice) / ".packages" / str(row.pk)

    assert not launch.own_network
    assert not launch.overlay
    assert launch.env["MASTER_ADDR"] == "10.0.0.1"
    assert Path(launch.env["AIP_HOSTFILE"]).read_text() == "10.0.0.1 slots=1\n10.0.0.2 slots=1\n"
    assert launch.env["PIP_TARGET"] == str(packages)
    assert launch.env["PYTHONPATH"].split(os.pathsep)[0] == str(packages)
    assert launch.env["PATH"].split(os.pathsep)[0] == str(packages / "bin")


def test_distributed_environment_in_a_container_finds_its_own_packages_before_those_of_the_image(placed, alice):
    row, _launch, run = placed
    attempt, packages = Attempt.objects.get(job=row.pk), f"{homes.path_of(alice)}/.packages/{row.pk}"
    of_image = {"AIP_PYTHONPATH": "/opt/packages/0/site", "AIP_PATH": "/opt/packages/0/bin"}
    contained = Launch(argv=["true"], env=of_image, container={"image": "lab"})

    env = several.launched(contained, attempt, run, homes.path_of(alice)).env

    assert env["AIP_PYTHONPATH"] == f"{packages}:/opt/packages/0/site"
    assert env["AIP_PATH"] == f"{packages}/bin:/opt/packages/0/bin"
    assert not {"PATH", "PYTHONPATH"} & env.keys()  # the image knows its own


def test_other_machine_of_an_environment_waits_until_the_first_is_over(placed, tmp_path):
    _row, launch, run = placed
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)} | launch.env

    with subprocess.Popen(launch.argv, cwd=run.code, env=env | {"AIP_NODE_RANK": "1"}) as other:
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(1.5)
        records.write(run.path / records.EXIT, {"code": 0})
        assert other.wait(60) == 0
    with subprocess.Popen(launch.argv, cwd=run.code, env=env | {"AIP_NODE_RANK": "0"}) as first:
        try:
            wait_for((tmp_path / "jupyter.sock").exists)
        finally:
            first.kill()


def test_busy_processors_of_any_machine_are_a_sign_of_life(placed):
    row, *_rest = placed
    attempt = Attempt.objects.get(job=row.pk)
    begun = now() - timedelta(hours=1)
    Attempt.objects.filter(pk=attempt.pk).update(started_at=begun)
    attempt.refresh_from_db()
    row.attempt, row.idle_since, row.ready_at = 1, begun, begun

    at = begun + timedelta(minutes=5)
    curves.report(attempt, "system/node2/cpu", [(300, 90.0, at)])

    assert lifecycle._cpu_busy_at(row, attempt) == at


def test_page_of_a_distributed_environment_names_its_machines(placed, as_alice, alice):
    row, *_rest = placed
    row.refresh_from_db()

    assert panel.context(row.job, alice)["machines"] == [(0, "first", "10.0.0.1"), (1, "second", "10.0.0.2")]
    assert f"job-{row.pk}.1" in as_alice.get(f"/jobs/{row.pk}/").content.decode()
