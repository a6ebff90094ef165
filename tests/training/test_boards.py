"""TensorBoard on the event files of a job."""

import pytest

from tests.factories import work
from training.experiments.boards import services
from training.experiments.boards.kind import BoardKind
from training.experiments.boards.models import Board
from workers.access.proxy.models import PublishedPort
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.services import uses
from workers.images.store import catalog

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(db):
    return work.node(cores=8)


@pytest.fixture
def trained(alice, cluster, node):
    """An ended command of Alice's that wrote event files."""
    job = work.job(alice, cluster, name="run 7", state="succeeded")
    folder = work.run_dir(job).outputs / "logs"
    folder.mkdir(parents=True)
    (folder / "events.out.tfevents.1700000000.host").write_bytes(b"")
    return job


def test_board_starts_by_one_click_and_once(as_alice, trained):
    first = as_alice.post(f"/jobs/{trained.pk}/board/")
    again = as_alice.post(f"/jobs/{trained.pk}/board/")

    board = Board.objects.get()
    assert first["Location"] == again["Location"] == f"/jobs/{board.pk}/?tab=ports"
    assert (board.job.kind, board.job.owner, board.source) == ("board", trained.owner, trained)
    assert uses.image_of(board.job) == catalog.builtin("tensorboard")


def test_job_page_offers_tensorboard_where_there_are_event_files(as_alice, alice, cluster, trained):
    without = work.job(alice, cluster, state="succeeded")
    work.run_dir(without).outputs.mkdir(parents=True)

    offered = as_alice.get(f"/jobs/{trained.pk}/?tab=ports").content.decode()
    not_offered = as_alice.get(f"/jobs/{without.pk}/?tab=ports").content.decode()

    assert f'action="/jobs/{trained.pk}/board/"' in offered
    assert 'id="h-board"' not in not_offered


def test_board_api_starts_it_and_says_why_not(api, alice, cluster, trained):
    without = work.job(alice, cluster, state="succeeded")

    started = api.post(f"/api/v1/jobs/{trained.pk}/board/")
    refused = api.post(f"/api/v1/jobs/{without.pk}/board/")

    assert (started.status_code, started.json()["id"]) == (201, Board.objects.get().pk)
    assert (refused.status_code, refused.json()["code"]) == (409, "no_event_files")


def test_boards_of_others_jobs_are_not_started(as_bob, as_anna, as_olga, trained):
    assert as_bob.post(f"/jobs/{trained.pk}/board/").status_code == 404
    assert as_anna.post(f"/jobs/{trained.pk}/board/").status_code == 403
    assert as_olga.post(f"/jobs/{trained.pk}/board/").status_code == 302
    assert not Board.objects.exists()


@pytest.mark.parametrize(("named", "prefix"), [(False, True), (True, False)])
def test_i09_board_reads_only_the_outputs_and_is_published(alice, trained, monkeypatch, settings, named, prefix):
    settings.PORTS_HOST = "jobs.example.org" if named else ""
    monkeypatch.setattr("training.experiments.boards.kind.launching.with_image", lambda launch, job: launch)
    monkeypatch.setattr("training.experiments.boards.kind.launching.python", lambda job: "/engine/bin/python")
    job = services.show(trained, by=alice)
    attempt = Attempt(job=job, number=1)

    launch = BoardKind().prepare(job, attempt, RunDir.for_attempt(job.pk, 1))

    row = PublishedPort.objects.get(job=job)
    assert launch.read_only == [RunDir.for_attempt(trained.pk, 1).outputs]
    assert (launch.read_write, launch.own_network) == ([], True)
    assert launch.argv[:3] == ["/engine/bin/python", "-m", "tensorboard.main"]
    assert launch.argv[launch.argv.index("--port") + 1] == str(row.port)
    assert (f"/jobs/{job.pk}/tensorboard" in launch.argv) == prefix
    assert (row.name, row.by_platform, row.keeps_path) == ("tensorboard", True, True)


def test_board_survives_its_source(trained, alice):
    job = services.show(trained, by=alice)

    Job.objects.filter(pk=trained.pk).delete()

    assert [fact.value for fact in BoardKind().facts(job)] == ["run 7"]
