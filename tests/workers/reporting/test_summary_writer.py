"""What PyTorch's own SummaryWriter writes, read by our reader of TensorBoard's files."""

import numpy as np
import pytest
import torch
from torch.utils.tensorboard import SummaryWriter

from tests.factories import work
from workers.core.models import Curve, MediaSeries
from workers.jobs.output import media, metrics
from workers.jobs.output import report_ingestion as reporting

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*trace:Warning"),
]


@pytest.fixture
def running(alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.run_dir(job).outputs.mkdir()
    return job


def writer(job, below="runs/one"):
    return SummaryWriter(work.run_dir(job).outputs / below)


def take(job, **how):
    return reporting.ingest(job.attempts.get(), **how)


def test_summary_writers_scalars_become_curves_once(running):
    with writer(running) as board:
        for step in range(50):
            board.add_scalar("Loss/train", 1 / (step + 1), step, walltime=1.7e9 + step)
            board.add_scalar("acc new", step / 50, step, new_style=True)

    first, again = take(running), take(running)

    curves = metrics.curves(running)
    assert (first, again) == (100, 0)
    assert curves.keys == ["Loss/train", "acc new"]
    assert curves.series["Loss/train"][3] == (3, 0.25)
    assert curves.times["Loss/train"][3] == 1.7e9 + 3
    assert curves.series["acc new"][-1] == (49, pytest.approx(0.98))


def test_summary_writers_images_become_small_pngs(running):
    image = np.zeros((3, 40, 60), np.uint8)
    image[0] = 255
    with writer(running) as board:
        board.add_image("samples/first", image, 1)
        board.add_image("samples/first", image, 2)
        board.add_images("batch", torch.rand(4, 3, 40, 500), 7)  # beside each other 2,010 pixels wide

    take(running)

    rows = {row.name: row for row in media.series_of(running, kind="image")}
    assert (rows["samples/first"].steps, rows["samples/first"].first_step, rows["samples/first"].last_step) == (2, 1, 2)
    item = media.items_of(running).get(series__name="samples/first", step=2)
    assert item.facts == {"width": 60, "height": 40}
    with open(media.open_file(item), "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    assert media.items_of(running).get(series__name="batch").file.endswith(".png")


def test_summary_writers_histograms_come_down_to_thirty_buckets(running):
    values = np.random.default_rng(3).normal(5, 2, 20_000)
    with writer(running) as board:
        board.add_histogram("layer/weight", values, 4)

    take(running)

    facts = media.items_of(running).get().facts
    assert (len(facts["counts"]), facts["total"]) == (30, 20_000)
    assert sum(facts["counts"]) == pytest.approx(20_000)
    assert (facts["low"], facts["high"]) == (pytest.approx(values.min()), pytest.approx(values.max()))
    assert facts["bands"][4] == pytest.approx(np.median(values), abs=0.3)
    middle = np.histogram(values, 30, (facts["low"], facts["high"]))[0]
    assert np.abs(np.array(facts["counts"]) - middle).max() < 0.05 * 20_000


def test_summary_writers_texts_parameters_and_graph_are_kept(running):
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with writer(running) as board:
        board.add_text("notes", "# A **run**", 3)
        board.add_graph(net, torch.zeros(1, 4))
        board.add_hparams({"lr": 0.1, "optimizer": "sgd", "nesterov": True}, {"hparam/accuracy": 0.9})

    take(running)

    assert media.items_of(running).get(series__kind="text").facts["text"] == "# A **run**"
    assert media.reported_params(running) == {"lr": 0.1, "optimizer": "sgd", "nesterov": True}
    graph = media.items_of(running).get(series__kind="graph")
    assert graph.facts["nodes"] > 3
    assert dict(metrics.curves(running).series)["hparam/accuracy"] == [(0, pytest.approx(0.9))]


def test_summary_writers_add_scalars_keeps_its_curves_apart(running):
    with writer(running) as board:
        for step in range(3):
            board.add_scalars("loss", {"train": step, "val": 2.0 * step}, step)

    take(running)

    series = metrics.curves(running).series
    assert sorted(series) == ["loss", "loss/val"] or sorted(series) == ["loss", "loss/train"]
    assert sorted(points[-1][1] for points in series.values()) == [2.0, 4.0]


def test_summary_writers_embedding_comes_to_a_plane(running):
    vectors = torch.cat([torch.randn(30, 16) + 5, torch.randn(30, 16) - 5])
    with writer(running) as board:
        board.add_embedding(vectors, metadata=["a"] * 30 + ["b"] * 30, global_step=12, tag="last layer")

    take(running, ended=True)

    item = media.items_of(running).get(series__kind="vectors")
    assert (item.step, item.facts["vectors"], item.facts["width"]) == (12, 60, 16)
    assert item.facts["shares"][0] > 0.8


def test_event_files_of_a_killed_writer_are_read_as_far_as_they_are_whole(running):
    with writer(running) as board:
        for step in range(10):
            board.add_scalar("loss", step, step)
    (file,) = work.run_dir(running).outputs.rglob("*tfevents*")
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    take(running)
    short = Curve.objects.get().count
    file.write_bytes(whole)
    take(running)

    assert (short, Curve.objects.get().count) == (9, 10)
    assert not MediaSeries.objects.exists()
