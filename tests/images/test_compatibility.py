"""Engine compatibility: what an image needs, which machines have it, and that nothing starts where it cannot run."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.utils.timezone import now

from tests.factories import work
from training.commands.services import CommandRequest, submit
from workers.core import machine_needs
from workers.core.machine_needs import Needs
from workers.core.models import Job, Node
from workers.images.models import Engine, Image, State
from workers.images.store import compatibility
from workers.jobs.submission import NeverFits
from workers.planning import planner_input
from workers.planning.planner.plan import plan

API = "/api/v1/commands/"


def image(owner, cuda="12.4", machine="x86_64", name="torch"):
    """An image whose engine was built and looked at."""
    facts = {"python": "3.11.7", "torch": "2.6.0", "cuda": cuda, "machine": machine}
    engine = Engine.objects.create(digest=f"{name}{cuda}{machine}", python="3.11.7", state=State.READY, facts=facts)
    return Image.objects.create(kind=Image.Kind.ENGINE, name=name, owner=owner, engine=engine)


def machine(name, driver, gpus=1, arch="x86_64"):
    return work.node(name, gpus=gpus, facts={"driver": driver, "machine": arch})


@pytest.fixture
def ready(monkeypatch):
    """Engines count as built, though their folders are not there."""
    monkeypatch.setattr("workers.images.store.engines.ensure", lambda image, **_more: None)


@pytest.fixture
def three(db):
    return [machine("gpu-01", "550.54.15"), machine("gpu-02", "535.183.01"), machine("gpu-03", "470.82.01")]


@pytest.mark.parametrize(
    ("cuda", "driver", "fits"),
    [("12.4", "525.60.13", True), ("12.4", "470.82", False), ("11.8", "450.80", True), ("13.0", "575.1", False),
     ("14.1", "575.1", False), ("", "470.1", True), ("12.4", "", True)],
)  # fmt: skip
def test_needs_of_cuda_are_the_drivers_of_minor_version_compatibility(cuda, driver, fits):
    needs = machine_needs.of_facts({"cuda": cuda})

    assert machine_needs.fits(needs, driver=machine_needs.driver_number(driver), arch="", cards=True) is fits


def test_needs_of_a_program_without_cards_are_its_processor_alone():
    needs = Needs(cuda=12040, arch="aarch64")

    assert machine_needs.fits(needs, driver=470, arch="aarch64", cards=False)
    assert not machine_needs.fits(needs, driver=550, arch="x86_64", cards=False)


def test_sentence_names_the_machines_on_which_an_image_does_not_run(alice, three):
    said = compatibility.sentence(image(alice), cards=True)

    assert said == "Fits 2 of 3 nodes; gpu-03: driver 470 is too old for CUDA 12.4."
    assert compatibility.sentence(image(alice, name="other"), cards=False) == "Fits 3 of 3 nodes."


def test_submission_is_refused_where_no_machine_runs_the_image(api, alice, ready):
    machine("gpu-03", "470.82.01")
    wanted = image(alice)

    answer = api.post(API, {"command": "true", "cpus": 1, "gpus_per_node": 1, "image": wanted.pk}, format="json")
    on_processor = api.post(API, {"command": "true", "cpus": 1, "image": wanted.pk}, format="json")

    assert "it needs 525, the newest is 470" in answer.json()["errors"]["image"][0]
    assert on_processor.status_code == 201


def test_submission_is_refused_for_another_processor(alice, ready):
    machine("arm-01", "", gpus=0, arch="aarch64")

    with pytest.raises(NeverFits, match=r"The image was built for x86_64 CPUs, the nodes have aarch64."):
        submit(user=alice, request=CommandRequest(command="true", cpus=1.0, image=image(alice)))


def test_planner_places_an_image_only_where_it_runs(alice, three, ready):
    Node.objects.filter(name="gpu-01").update(state=Node.State.SUSPECT)
    request = CommandRequest(command="true", cpus=1.0, gpus_per_node=1, image=image(alice))
    first, second = (submit(user=alice, request=request) for _ in range(2))

    moment = now()
    decided = plan(planner_input.read(moment, ({}, {}), 3600.0), moment.timestamp())

    assert [(one.job, one.places[0][0]) for one in decided.assignments] == [(first.pk, three[1].pk)]
    assert second.pk in decided.waits


def test_jobs_that_wait_for_an_engine_learn_what_it_needs(alice, three, ready):
    wanted = image(alice)
    Engine.objects.update(facts={}, state=State.BUILDING)
    wanted.refresh_from_db()
    command = submit(user=alice, request=CommandRequest(command="true", cpus=1.0, image=wanted))
    Engine.objects.update(facts={"cuda": "12.4", "machine": "x86_64"}, state=State.READY)

    compatibility.note(Engine.objects.get())

    assert Job.objects.get(pk=command.pk).needs == {"cuda": 12040, "arch": "x86_64"}


def test_image_is_not_started_on_a_machine_that_cannot_run_it(alice, db):
    machine(settings.NODE, "470.82.01")

    why = compatibility.why_not_here(image(alice), settings.NODE, cards=True)

    assert str(why) == f"The driver of {settings.NODE}, 470, is too old for CUDA 12.4 of the image. Choose another one."
    assert compatibility.why_not_here(image(alice, name="other"), settings.NODE, cards=False) is None


def test_form_says_beside_the_image_where_it_runs(as_alice, alice, three):
    sent = {"command": "true", "image": image(alice).pk, "gpus_per_node": 1, "cpus": 1, "device": "gpu"}

    said = as_alice.post("/commands/fit/", sent).content.decode()

    assert "Fits 2 of 3 nodes" in said


def test_page_of_an_image_lists_the_machines(as_olga, alice, three):
    wanted = image(alice)
    Image.objects.filter(pk=wanted.pk).update(visibility="public")

    shown = as_olga.get(f"/images/{wanted.pk}/").content.decode()

    assert "driver 470 is too old for CUDA 12.4" in shown
    assert "needs driver 525" in shown
