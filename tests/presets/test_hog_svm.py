"""Histograms of oriented gradients, the machines on them, and the preset as a job that can only be paused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from django.urls import reverse
from sklearn.svm import LinearSVC

from inference.evaluation.evaluator.__main__ import evaluate
from tests.factories import training as trainings
from tests.factories import work
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import export, hog, hog_svm, hog_svm_card, pauses, svm
from training.presets.run import Refused, Run
from workers.jobs import buttons


@pytest.fixture(scope="module")
def shades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.shades(tmp_path_factory.mktemp("versions") / "shades")


def training(version: Path, root: Path, **params: Any) -> hog_svm.Training:
    run = Run.from_environment(
        {"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(root), "AIP_OUTPUT_DIR": str(root)}
    )
    made = hog_svm.Training(run, hog_svm_card.CARD.read(params))
    made.job = pauses.Pausable(run)
    return made


# ---- histograms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [0, 20, 30, 90, 135, 170])
def test_hog_votes_for_the_direction_of_a_slope_from_both_nearest_bins(degrees):
    turn = math.radians(degrees)
    rows, columns = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
    slope = (0.5 + 0.01 * ((columns - 12) * math.cos(turn) + (rows - 12) * math.sin(turn)))[None, None]

    votes = hog.Hog(cell=4, bins=9).votes(slope)[0, :, 12, 12]

    expected = torch.zeros(9)
    lower, part = divmod(degrees / 20, 1)
    expected[int(lower) % 9], expected[(int(lower) + 1) % 9] = 1 - part, part
    assert votes / votes.sum() == pytest.approx(expected, abs=1e-3)
    assert votes.sum() == pytest.approx(0.02, rel=6e-3)  # the difference of two pixels' distance


def test_hog_is_the_same_for_an_image_and_its_negative_and_for_less_contrast():
    image = 0.2 + 0.7 * torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    cells = hog.Hog(cell=4, bins=9)
    of, faint = (cells((share * image).square() - hog.BLACK) for share in (1.0, 0.5))  # linear after the root

    assert of.shape == (1, 36, 3, 3)
    assert faint == pytest.approx(of, abs=2e-3)
    assert cells((1.1 - image).square() - hog.BLACK) == pytest.approx(of, abs=1e-4)
    assert of.square().sum(1) == pytest.approx(torch.ones(1, 3, 3), abs=1e-3)


def defined(image: np.ndarray, *, cell: int, bins: int) -> np.ndarray:
    """The histograms of a grey image [H, W] as Dalal and Triggs 2005 define them: [rows, columns, 2, 2, bins].

    Square-root gamma, centred differences, unsigned directions shared between the two nearest bins, L2-Hys.
    """
    edged = np.pad(np.sqrt(image.astype(np.float64) + hog.BLACK), 1, mode="edge")
    right, down = edged[1:-1, 2:] - edged[1:-1, :-2], edged[2:, 1:-1] - edged[:-2, 1:-1]
    place = np.degrees(np.arctan2(down, right)) % 180 * bins / 180
    lower, upper = np.floor(place).astype(int), place - np.floor(place)
    rows, columns = image.shape[0] // cell, image.shape[1] // cell
    cells = np.zeros((rows, columns, bins))
    for y, x in np.ndindex(rows * cell, columns * cell):
        strength = max(0.0, np.hypot(right[y, x], down[y, x]) - hog.FAINT)
        cells[y // cell, x // cell, lower[y, x] % bins] += strength * (1 - upper[y, x]) / cell**2
        cells[y // cell, x // cell, (lower[y, x] + 1) % bins] += strength * upper[y, x] / cell**2
    found = np.zeros((rows - 1, columns - 1, 2, 2, bins))
    for y, x in np.ndindex(rows - 1, columns - 1):
        block = cells[y : y + 2, x : x + 2]
        clipped = np.minimum(block / np.sqrt((block**2).sum() + hog.EPSILON**2), 0.2)
        found[y, x] = clipped / np.sqrt((clipped**2).sum() + hog.EPSILON**2)
    return found


@pytest.mark.parametrize("contrast", [1.0, 0.01])
def test_hog_is_what_dalal_and_triggs_define_where_parts_of_the_image_are_even(contrast):
    image = np.random.default_rng(0).random((21, 26)) * contrast
    image[:10, :10] = 0.4 * contrast  # no gradient there, so no vote either

    found = hog.Hog(cell=4, bins=9)(torch.tensor(image, dtype=torch.float32)[None, None]).numpy()

    assert found[0].transpose(1, 2, 0).reshape(4, 5, 2, 2, 9) == pytest.approx(defined(image, cell=4, bins=9), abs=1e-4)


@pytest.mark.parametrize("grey", [0.0, 0.4, 1.0])
def test_hog_of_an_even_image_is_nothing(grey):
    assert not hog.Hog(cell=4, bins=9)(torch.full((1, 3, 16, 16), grey)).any()


def test_hog_takes_the_strongest_of_the_channels():
    grey = torch.rand(1, 1, 16, 16)
    coloured = torch.cat([torch.full_like(grey, 0.2), grey, torch.full_like(grey, 0.7)], 1)

    assert hog.Hog(cell=4, bins=9)(coloured) == pytest.approx(hog.Hog(cell=4, bins=9)(grey), abs=1e-6)


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 28, 28), (3, 45, 70)])
def test_export_answers_as_the_machines_on_histograms_do(tmp_path, channels, height, width):
    torch.manual_seed(0)
    cells = hog.Hog(cell=8, bins=9).eval()
    samples = torch.rand(3, channels, height, width)
    values = cells(samples).flatten(1).shape[1]

    model = hog.HogSvm(cells, torch.randn(4, values), torch.randn(4), 2.0).eval()
    export.write(model, tmp_path, outputs=("logits",), samples=samples, metadata={})  # compares both

    assert json.loads((tmp_path / "model.json").read_text())["verify"]["max_abs_diff"] < 1e-3


# ---- machines --------------------------------------------------------------------------------------------------


def test_machines_are_those_that_scikit_learn_finds(shades, tmp_path):
    one = training(shades, tmp_path)
    features, labels = one._features(one.learn, done=0, share=0), one.labels[one.learn]

    weights, bias, loss, _steps = one._machines(features, labels)

    theirs = LinearSVC(loss="squared_hinge", tol=1e-8, max_iter=20_000)
    theirs.fit(features.numpy(), labels.numpy())
    ours = (features @ weights.T + bias).argmax(1)
    signs = 2 * torch.nn.functional.one_hot(labels, 2) - 1
    margins = features @ torch.tensor(np.vstack([-theirs.coef_, theirs.coef_])).float().T
    margins = margins + torch.tensor(np.concatenate([-theirs.intercept_, theirs.intercept_])).float()
    of_theirs = (1 - signs * margins).clamp(min=0).square().sum(1).mean()
    of_theirs = of_theirs + 2 * np.square(theirs.coef_).sum() / (2 * len(features))
    assert (ours == labels).float().mean() > 0.95
    assert loss <= float(of_theirs) * 1.02


def test_scale_of_margins_makes_their_softmax_most_like_the_truth():
    margins = torch.tensor([[1.0, -1.0]] * 9 + [[-1.0, 1.0]])
    labels = torch.zeros(10, dtype=torch.int64)

    scale = svm.scale_of(margins, labels)

    assert torch.softmax(margins[0] * scale, 0)[0] == pytest.approx(0.9, abs=1e-3)


def test_hog_preset_scales_margins_by_images_that_it_did_not_learn_from(shades, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(svm, "scale_of", lambda margins, labels: seen.append(labels) or 3.0)
    for name in ("listen", "end_on_signal"):  # the signals are those of this process
        monkeypatch.setattr(Run, name, lambda run: None)
    one = training(shades, tmp_path)

    assert one.train() == 0

    assert [labels.tolist() for labels in seen] == [one.labels[one.score].tolist()]
    assert not set(one.score) & set(one.learn)


def test_hog_preset_refuses_cells_that_do_not_fit(shades, tmp_path):
    with pytest.raises(Refused, match="16×16 pixels hold less than 2×2 cells of 12: choose a smaller cell"):
        training(shades, tmp_path, cell=12)


# ---- the preset ------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.proof
def test_hog_preset_is_paused_continued_and_its_model_judged_as_it_says(tmp_path, shades):
    job = Job(tmp_path / "job", shades, "hog_svm", {})
    job.request("pause")

    log = []
    with job.start() as process:
        for line in process.stdout:
            log.append(line)
            if "paused at step" in line:
                job.request("")

    assert process.returncode == 0, "".join(log)
    assert any("continued at step" in line for line in log)
    assert job.curve("phase")[-1] == "exporting"
    assert max(job.curve("progress")) < 1
    figures = json.loads((job.outputs / "metrics.json").read_text())
    assert figures["val/accuracy"] == 1.0
    judged = evaluate(a_run(tmp_path / "judged", job.outputs / "model", shades, split="val"))
    assert judged["summary"]["accuracy"] == figures["val/accuracy"]


@pytest.mark.long
@pytest.mark.proof
def test_hog_preset_ends_at_sigterm(tmp_path, shades):
    job = Job(tmp_path / "job", shades, "hog_svm", {})
    job.request("pause")

    with job.start() as process:
        for line in process.stdout:
            if "paused at step" in line:
                process.terminate()

    assert process.returncode == 143


# ---- what its card promises is what page, API and command line offer -------------------------------------------


@pytest.fixture
def running(alice, db):
    work.node(cores=4)
    version = trainings.version(alice, "digits", task="classification")
    return trainings.training(alice, state="running", version=version, preset="hog_svm", device_kind="cpu")


def test_hog_preset_can_be_paused_and_stopped_only(running, api):
    answer = {verb: api.post(f"/api/v1/training/jobs/{running.pk}/{verb}/") for verb in ("suspend", "finish", "pause")}

    assert {verb: one.status_code for verb, one in answer.items()} == {"suspend": 409, "finish": 409, "pause": 202}
    assert answer["suspend"].json()["detail"].startswith("This job writes no checkpoints. Pause it")
    assert answer["finish"].json()["detail"] == "This kind of job has no intermediate result; stop it instead."
    assert api.get(f"/api/v1/training/jobs/{running.pk}/").json()["actions"] == ["continue", "stop"]


def test_hog_preset_page_offers_what_it_can_and_says_why_not(running, as_alice):
    page = as_alice.get(reverse("training:job-detail", args=[running.pk])).content.decode()

    offered = {button.verb: button.allowed for button in buttons.shown(running.job)}
    assert offered == {"pause": True, "finish": False, "stop": True}
    assert "This kind of job has no intermediate result; stop it instead." in page
    trainings.move(running, "stopped")
    assert [way.why for way in buttons.again(running.job, running.job.owner, may_control=True) if way.verb == "restore"]
