"""A process that is killed at any moment while it takes in files: nothing is lost, nothing counts twice."""

import numpy as np
import pytest
from torch.utils.tensorboard import SummaryWriter

from tests.factories import work
from workers.core.models import Curve, ReportFile
from workers.jobs.output import media, metrics, point_files
from workers.jobs.output import report_ingestion as reporting

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Killed(BaseException):
    """As nobody catches a kill -9."""


MOMENTS = [
    *((point_files, "write", when, nth) for when in ("before", "after") for nth in (1, 2)),
    *((media.files, "write_atomically", when, nth) for when in ("before", "after") for nth in (1, 7)),
    *((module, name, when, 1) for module, name in ((reporting, "_save_row"), (metrics, "save"), (media, "save"))
      for when in ("before", "after")),
    (media, "prepare", "after", 1),
    (reporting, "_save", "after", 1),
]  # fmt: skip
NAMES = [f"{when} {name} {nth}" for _, name, when, nth in MOMENTS]


@pytest.fixture
def running(alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.run_dir(job).outputs.mkdir()
    return job


def fill(job, begin, end):
    with SummaryWriter(work.run_dir(job).outputs / "runs") as board:
        for step in range(begin, end):
            board.add_scalar("loss", step, step)
            board.add_scalar("acc", -step, step)
            board.add_image("picture", np.full((3, 4, 4), step, np.uint8), step)


@pytest.mark.parametrize(("module", "name", "when", "nth"), MOMENTS, ids=NAMES)
def test_reports_count_once_wherever_the_process_is_killed(running, monkeypatch, module, name, when, nth):
    fill(running, 0, 5)
    reporting.ingest(running.attempts.get())
    fill(running, 5, 12)
    original, calls = getattr(module, name), []

    def killed(*args, **kwargs):
        calls.append(1)
        if len(calls) == nth and when == "before":
            raise Killed
        result = original(*args, **kwargs)
        if len(calls) == nth:
            raise Killed
        return result

    with monkeypatch.context() as patched:
        patched.setattr(module, name, killed)
        reporting._SEARCHES.clear()
        with pytest.raises(Killed):
            reporting.ingest(running.attempts.get())
    reporting._SEARCHES.clear()  # the next process knows nothing
    reporting.ingest(running.attempts.get())
    reporting.ingest(running.attempts.get(), ended=True)

    assert metrics.curves(running).series == {
        "loss": [(step, float(step)) for step in range(12)],
        "acc": [(step, float(-step)) for step in range(12)],
    }
    assert {curve.key: curve.count for curve in Curve.objects.all()} == {"loss": 12, "acc": 12}
    rows = media.items_of(running)
    assert [row.step for row in rows] == list(range(12))
    assert {path.name for path in media.folder(running.pk, 1).iterdir()} >= {row.file for row in rows}


def test_reports_of_two_processes_at_once_count_once(running, monkeypatch):
    """Another agent takes in the same part between our look and our transaction: the lock of a machine that is gone."""
    fill(running, 0, 3)
    original = reporting._save_row

    def outrun(row):
        if row.pk is None:
            ReportFile.objects.create(attempt=row.attempt, path=row.path, position=row.position, version=7)
        return original(row)

    monkeypatch.setattr(reporting, "_save_row", outrun)
    reporting.ingest(running.attempts.get())

    assert not Curve.objects.exists()  # what the other one saved counts, not ours
