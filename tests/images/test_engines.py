"""Engines: what is asked for is built once, by a job, and shared."""

from __future__ import annotations

import stat

import pytest
from django.utils.timezone import now

from aiplatform import env
from aiplatform.lib.errors import Invalid, NameTaken
from aiplatform.lib.wording import message
from tests.factories import work
from tests.running import wait_for
from workers.core import held_back, kinds, wait_reasons
from workers.core.kinds import Launch, NotYet
from workers.core.models import Attempt, Dependency, Device, Job
from workers.core.runs import RunDir
from workers.execution import launch, results
from workers.execution.agent.attempt_monitor import AttemptMonitor
from workers.images.kind import NothingToBuild
from workers.images.models import Engine, Image, ImageUse, State
from workers.images.services import images, uses
from workers.images.services import launch as in_image
from workers.images.store import catalog, engines, paths
from workers.scheduling import placing
from workers.supervisor import records

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(db, settings):
    settings.NODE = "node1"
    return work.node(cores=4)


def place(job: Job) -> Attempt:
    cpu = Device.objects.get(kind="cpu")
    return placing.place(job.pk, [(cpu.node_id, [(cpu.pk, 8)])])


def ended(job: Job, code: int) -> None:
    """As the agent would after the job's program ended."""
    run = RunDir.for_attempt(job.pk, 1)
    assert wait_for(lambda: records.read(run.path / records.EXIT), 120)["code"] == code, run.log.read_text()
    state = "failed" if code else "succeeded"
    job.attempts.update(state=state, ended_at=now())
    Job.objects.filter(pk=job.pk).update(state=state)
    results.publish(job.pk)


@pytest.mark.proof
def test_engine_is_built_by_a_job_and_belongs_to_the_platform(alice, machine, wheels, monkeypatch):
    monkeypatch.setattr(env, "ENGINE_INDEX", str(wheels))
    image = engines.build(user=alice, name="mine", requirements="ring==1.0\n", with_platform=True)
    assert (image.status, image.engine.job.kind) == (State.BUILDING, "image_build")

    launch.start(place(image.engine.job).pk)
    ended(image.engine.job, 0)
    image.engine.refresh_from_db()

    folder = paths.engine(image.engine.digest)
    ring = next(folder.glob("lib/python3*/site-packages/ring/__init__.py"))
    assert image.engine.state == State.READY, str(image.engine.message)
    assert image.engine.facts["python"].startswith("3.")
    assert image.engine.facts["torch"]
    assert image.engine.size_bytes > 1000
    assert (ring.stat().st_uid, stat.S_IMODE(ring.stat().st_mode)) == (folder.parent.stat().st_uid, 0o644)
    assert "[build] ready" in RunDir.for_attempt(image.engine.job_id, 1).log.read_text()
    assert engines.build(user=alice, name="twin", requirements="# mine\n\nring==1.0").status == State.READY
    assert Job.objects.filter(kind="image_build").count() == 1


@pytest.mark.proof
def test_engine_that_cannot_be_built_says_why_and_leaves_nothing(alice, machine, wheels, monkeypatch):
    monkeypatch.setattr(env, "ENGINE_INDEX", str(wheels))
    image = engines.build(user=alice, name="mine", requirements="no-such-package==9")
    job = image.engine.job

    launch.start(place(job).pk)
    ended(job, 1)
    image.engine.refresh_from_db()

    assert image.engine.state == State.FAILED
    assert str(image.engine.message) == f"Job {job.pk}, which built the image, failed. See its log."
    assert "no-such-package" in RunDir.for_attempt(job.pk, 1).log.read_text()
    assert not paths.engine(image.engine.digest).exists()
    assert engines.ensure(image, by=alice).pk != job.pk


def test_engine_build_without_facts_is_no_engine(alice, machine, root):
    image = engines.build(user=alice, name="mine", requirements="ring")
    job = image.engine.job
    job.attempts.create(number=1, state="succeeded", ended_at=now())
    RunDir.for_attempt(job.pk, 1).outputs.mkdir(parents=True)
    (RunDir.for_attempt(job.pk, 1).outputs / "engine.json").symlink_to("/etc/hostname")

    kinds.get("image_build").ended(job, job.attempts.get())
    image.engine.refresh_from_db()

    assert str(image.engine.message).startswith(f"Job {job.pk}, which built the image, left no complete engine")


def test_engine_request_is_refused_with_all_that_is_wrong(alice, machine, root):
    engines.build(user=alice, name="mine", requirements="ring")

    with pytest.raises(NameTaken) as name:
        engines.build(user=alice, name="mine", requirements="--index-url http://x\n/etc/passwd\nok==1")
    with pytest.raises(Invalid) as tag:
        engines.build(user=alice, name="other", tag="a/b", requirements="ring")

    said = [refusal.message for refusal in name.value.every]
    assert said[0] == "You already have an image named “mine”. Use another name or tag."
    assert [text.partition("”")[0] for text in said[1:]] == ["“--index-url http://x", "“/etc/passwd"]
    assert tag.value.blamed == "tag"


def test_builtin_images_are_there_without_being_built(alice, machine, root):
    jupyter = catalog.builtin("jupyter")

    assert (jupyter.status, jupyter.owner) == (State.NEW, None)
    assert Image.objects.usable_by(alice).filter(pk=jupyter.pk).exists()
    assert not Image.objects.editable_by(alice).filter(pk=jupyter.pk).exists()
    job = engines.ensure(jupyter, by=alice)
    assert job == engines.ensure(catalog.builtin("jupyter"), by=alice)
    assert "jupyterlab" in Engine.objects.get(job=job).requirements


def test_job_in_an_image_that_is_not_built_follows_the_build(alice, bob, cluster, machine, root):
    jobs = [work.job(person, cluster) for person in (alice, bob)]
    for job in jobs:
        uses.attach(job, catalog.builtin("jupyter"), boxed=True)

    build = Job.objects.get(kind="image_build")
    assert [(row.job, row.on, row.needs) for row in Dependency.objects.order_by("pk")] == [
        (job, build, "success") for job in jobs
    ]


def test_job_waits_for_its_engine_and_fails_with_the_build(alice, cluster, machine, root):
    job = work.job(alice, cluster, state="assigned")
    uses.attach(job, catalog.builtin("jupyter"), boxed=True)

    with pytest.raises(NotYet):
        in_image.with_image(Launch(argv=["true"]), job)
    build = Job.objects.get(kind="image_build")
    Job.objects.filter(pk=build.pk).update(state="failed")
    engines.failed(Engine.objects.get(), build, message("image.build_failed", job=build.pk))

    with pytest.raises(
        in_image.CannotUse, match=f"The image jupyter is not built: Job {build.pk}, which built the image"
    ):
        in_image.with_image(Launch(argv=["true"]), job)


def test_job_that_waits_for_its_image_names_the_image_and_the_build_and_shows_its_progress(
    alice, as_alice, cluster, machine, root
):
    job = work.job(alice, cluster)
    uses.attach(job, catalog.builtin("jupyter"), boxed=True)
    build = Job.objects.get(kind="image_build")
    Job.objects.filter(pk=build.pk).update(state="running", progress=0.4, started_at=now())

    held = held_back.reasons(now())[job.pk]
    panel = as_alice.get(f"/jobs/{job.pk}/panels/order/").content.decode()

    assert (held.code, held.args) == ("waits_for_image", {"job": build.pk, "image": "jupyter"})
    said = wait_reasons.sentence(held.code, held.args)
    assert said == f"Waits for the image jupyter, which job {build.pk} builds first."
    assert "40 %" in panel.replace("\xa0", " ")
    assert "every 5s" in panel


def test_engine_that_was_built_and_is_not_taken_over_yet_is_not_built_again(alice, cluster, machine, root):
    job = work.job(alice, cluster, state="assigned")
    uses.attach(job, catalog.builtin("jupyter"), boxed=True)
    build = Job.objects.get(kind="image_build")
    Job.objects.filter(pk=build.pk).update(state="succeeded", attempt_number=1)

    with pytest.raises(NotYet, match="is being built"):
        in_image.with_image(Launch(argv=["true"]), job)

    assert Engine.objects.get().job == build
    Job.objects.filter(pk=build.pk).update(published_attempt=1)  # and nothing came of it
    assert engines.ensure(catalog.builtin("jupyter"), by=alice) != build


def test_job_that_waits_for_its_engine_is_not_given_up(alice, cluster, machine, root, kind):
    job = work.job(alice, cluster)
    uses.attach(job, catalog.builtin("platform"), boxed=False)
    kind.prepare = lambda job, attempt, run: in_image.with_image(Launch(argv=["true"]), job)
    job.dependencies.all().delete()  # it was placed after the build, whose folder was lost since
    attempt = place(job)

    launch.start(attempt.pk)
    monitor = AttemptMonitor(attempt)
    monitor.seen -= 3600

    monitor.check(attempt)
    attempt.refresh_from_db()
    assert (attempt.ended_at, attempt.state) == (None, "assigned")


def test_engine_nobody_names_is_swept_with_its_folder(engine, image):
    folder = paths.engine(engine.digest)
    engines.forget_unused()
    assert folder.is_dir()

    images.delete(image=image, by=image.owner)
    engines.forget_unused()

    assert not folder.exists()
    assert not Engine.objects.exists()


def test_engine_below_a_box_stays_when_the_image_is_deleted(engine, image, alice, cluster):
    job = work.job(alice, cluster, state="stopped")
    ImageUse.objects.create(job=job, image=image, engine=engine, name="mine", boxed=True)

    images.delete(image=image, by=image.owner)
    engines.forget_unused()

    assert paths.engine(engine.digest).is_dir()
    with pytest.raises(uses.ImageGone, match="The image mine was deleted"):
        uses.check_restore(job)


def test_engine_is_built_by_one_job_at_a_time_and_only_its_own_counts(alice, cluster, machine, root):
    image = engines.build(user=alice, name="mine", requirements="ring")
    other, build = work.job(alice, cluster, spec={"engine": image.engine_id}), kinds.get("image_build")

    with pytest.raises(NothingToBuild, match=r"Another job is already building this image."):
        build.check_restore(other)
    with pytest.raises(NothingToBuild, match=r"Another job is already building this image."):
        build.prepare(other, None, None)
    engines.seal(image.engine, other, {})
    image.engine.refresh_from_db()
    assert (image.engine.state, image.engine.job_id != other.pk) == (State.BUILDING, True)

    Engine.objects.update(state=State.READY)
    with pytest.raises(NothingToBuild, match=r"This image was already built or deleted."):
        build.prepare(image.engine.job, None, None)
