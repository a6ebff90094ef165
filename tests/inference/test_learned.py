"""Measuring on images that a model learned from: which they are, what is chosen instead, what people are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aiplatform.lib.errors import Invalid
from inference.evaluation import evaluations
from inference.evaluation.evaluator import __main__ as program
from inference.evaluation.evaluator.__main__ import evaluate
from inference.evaluation.kind import EvaluationKind
from inference.kit.samples import ground_truth, learned
from inference.kit.samples.run import Run
from inference.registry import training_data
from tests.factories import models as factory
from tests.inference import judged, tiny, versions
from tests.inference.running import set_state
from training.presets import data as presets
from training.presets.run import Refused
from workers.core.runs import RunDir


@pytest.fixture
def data(alice, tmp_path, db):
    """Forty annotated images without splits."""
    made = judged.dataset_version(alice, tmp_path / "data")
    versions.detection(Path(made.root), images=40)
    put_splits(Path(made.root), [""] * 40)
    made.splits, made.image_count = {}, 40
    made.save()
    return made


@pytest.fixture
def model(alice, tmp_path, data):
    """Left by a training of a preset on `data`."""
    made = factory.model_version(alice, tmp_path)
    made.source, made.preset, made.dataset_version = "training", "detect", data
    made.params = {"train_splits": "train", "eval_split": "val"}
    made.save()
    return made


def put_splits(root: Path, names: list[str]) -> None:
    """Write a split for each image of the manifest."""
    lines = [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]
    rows = [line | {"split": name} for line, name in zip(lines, names, strict=True)]
    (root / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def a_run(folder: Path, model: Path, dataset: Path, **params: object) -> Run:
    for name in ("outputs", "checkpoints"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Run(
        model=model, dataset=dataset, outputs=folder / "outputs", checkpoints=folder / "checkpoints", resume_from=None,
        metrics=folder / "metrics.jsonl", control=folder / "control", params=params,
    )  # fmt: skip


@given(
    splits=st.lists(st.sampled_from(["", "train", "val", "test"]), min_size=2, max_size=30),
    train=st.sampled_from(["train", "train, val", "test", ""]),
    evaluate=st.sampled_from(["val", "test", ""]),
    folds=st.sampled_from([0, 0, 2, 3]),
    fold=st.integers(1, 3),
    group_by=st.sampled_from(["", "folder", r"\d+$", "patient"]),
)
@example(splits=["train", "val"], train="train", evaluate="val", folds=0, fold=1, group_by="patient")  # in no path
def test_evaluator_knows_what_presets_learned_from_by_the_presets_own_rule(
    tmp_path_factory, splits, train, evaluate, folds, fold, group_by
):
    root = tmp_path_factory.mktemp("version")
    rows = [
        {"path": f"{n // 3 % 4}/{n}", "sha256": f"s{n}", "width": 8, "height": 8, "split": split, "label": n % 2 + 1}
        for n, split in enumerate(splits)
    ]
    (root / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "dataset.json").write_text(
        json.dumps({"name": "d", "classes": [{"id": 1, "name": "c"}, {"id": 2, "name": "d"}]})
    )
    version = presets.read(root)
    fold = min(fold, folds) if folds else 0
    params = {"train_splits": train, "eval_split": evaluate, "folds": folds, "fold": fold, "group_by": group_by}
    try:
        learn, _score, _name = presets.split(version, range(len(rows)), params)
    except Refused:
        return

    division = {"train": train, "evaluate": evaluate, "folds": folds, "fold": fold, "group_by": group_by}
    assert learned.keys(root, **division) == {f"s{row}" for row in learn}


def test_evaluator_counts_what_was_trained_on_and_can_leave_it_out(tmp_path):
    root = versions.detection(tmp_path / "data", images=40)
    put_splits(root, [""] * 40)
    training = {"dir": str(root), "train": "train", "evaluate": "val"}

    complete = evaluate(a_run(tmp_path / "a", tiny.detector(tmp_path / "model"), root, split="", learned=training))
    unseen = evaluate(a_run(tmp_path / "b", tmp_path / "model", root, split="unseen", learned=training))
    unknown = evaluate(a_run(tmp_path / "c", tmp_path / "model", root, split=""))

    assert 0 < unseen["images"] < 40
    assert (complete["images"], complete["seen"]) == (40, 40 - unseen["images"])
    assert (unseen["seen"], unknown["seen"]) == (0, None)


def test_evaluator_says_that_groups_are_not_there(tmp_path, monkeypatch, capsys):
    root = versions.detection(tmp_path / "data", images=40)
    put_splits(root, [""] * 40)
    training = {"dir": str(root), "train": "train", "evaluate": "val", "group_by": "patient"}
    run = a_run(tmp_path / "a", tiny.detector(tmp_path / "model"), root, split="", learned=training)
    monkeypatch.setattr(Run, "from_env", lambda: run)

    assert program.main() == 1
    assert "group_by finds nothing in 001.png" in capsys.readouterr().out


@pytest.mark.parametrize("folds", ["many", [2], True, float("inf"), None])
def test_evaluation_of_a_model_that_says_nonsense_of_its_folds_is_none_of_folds(alice, model, data, folds):
    model.params["folds"] = folds

    assert training_data.for_model(model, owner=alice).folds == 0


def test_evaluator_refuses_when_nothing_is_left_to_measure_on(tmp_path):
    root = versions.detection(tmp_path / "data")

    with pytest.raises(ground_truth.Unfit, match="learned from all images"):
        ground_truth.read(root, ground_truth.UNSEEN, {f"{n:03d}.png" for n in range(1, 7)})


def test_evaluation_takes_the_first_split_there_is_else_what_the_model_did_not_learn_from(alice, model, data):
    def chosen(**splits: int) -> str:
        data.splits = splits
        return training_data.best_split(model, data, user=alice)

    assert [chosen(train=4, val=3, test=2), chosen(train=4, val=3), chosen(train=4), chosen()] == [
        "test",
        "val",
        "unseen",
        "unseen",
    ]
    model.params["train_splits"] = "train,test"
    assert chosen(train=4, val=3, test=2) == "val"


def test_evaluation_of_an_uploaded_model_takes_all_images_and_knows_of_none_it_learned_from(alice, data, tmp_path):
    uploaded = factory.model_version(alice, tmp_path, name="uploaded")

    assert training_data.best_split(uploaded, data, user=alice) == ""
    with pytest.raises(Invalid, match="training images of uploaded v1 are unknown"):
        evaluations.submit(user=alice, model_version=uploaded, version=data, split="unseen")


def test_evaluation_learns_nothing_about_data_its_owner_may_not_use(bob, model, data):
    assert training_data.for_model(model, owner=bob) is None


def test_evaluation_run_is_told_what_the_model_learned_from(alice, model, data):
    made = evaluations.submit(user=alice, model_version=model, version=data, split="auto")
    set_state(made.job, "running")
    run = RunDir.for_attempt(made.job_id, 1)
    run.params.parent.mkdir(parents=True, exist_ok=True)

    launch = EvaluationKind().prepare(made.job, made.job.attempts.get(), run)

    assert made.split == "unseen"
    training = json.loads(run.params.read_text())["learned"]
    division = {"train": "train", "evaluate": "val", "folds": 0, "fold": 1, "group_by": ""}
    assert training == {"dir": str(data.path), **division}
    assert data.path in launch.read_only


def test_evaluation_form_says_what_it_measures_on_and_warns_of_repeats(as_alice, model, data, cluster):
    sent = {"model_version": model.pk, "version": data.pk, "cluster": cluster.pk, "gpus_per_node": 0}

    fair = as_alice.post("/evaluations/fit/", sent | {"split": "auto"}).content.decode()
    unfair = as_alice.post("/evaluations/fit/", sent | {"split": ""}).content.decode()

    assert "Evaluates on: Images it was not trained on" in fair
    assert "was trained on images of this split" not in fair
    assert "was trained on images of this split" in unfair


def test_evaluation_page_and_list_mark_figures_of_images_trained_on(as_alice, alice, model, data):
    made = evaluations.submit(user=alice, model_version=model, version=data, split="")
    outputs = RunDir.for_attempt(made.job_id, 1).outputs
    training = {"dir": str(data.path), "train": "train", "evaluate": "val"}
    evaluate(a_run(outputs.parent, model.path, data.path, split="", learned=training))
    set_state(made.job, "succeeded")
    evaluations.publish(made.job, made.job.attempts.get())
    made.refresh_from_db()

    page = as_alice.get(f"/evaluations/{made.pk}/").content.decode()
    rows = as_alice.get("/evaluations/").content.decode()

    count = int(made.metrics["images_seen"])
    assert 30 <= count < 40
    assert f"{count} of these 40 images were trained on." in page
    assert "trained on</span>" in rows


def test_groups_that_were_never_asked_for_hinder_no_evaluation(tmp_path):
    """A training that scores on a split of its own looks at no groups, so neither may what judges its model."""
    versions.detection(tmp_path, images=4)
    put_splits(tmp_path, ["train", "train", "val", "val"])

    assert len(learned.keys(tmp_path, train="train", evaluate="val", group_by="nowhere")) == 2
