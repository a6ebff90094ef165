"""Training until there is no progress, in parts of a batch, and by another number of ranks."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tests import ports
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import (
    accumulate,
    checkpoints,
    classify,
    classify_card,
    cores,
    detect,
    detect_card,
    microbatches,
    plateau,
    segment,
    segment_card,
    trainer_state,
)
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run
from training.presets.trainer import Trainer

ALONE = Ranks(0, 1, torch.device("cpu"))
SMALL = {"budget_minutes": 0, "show_steps": True, "checkpoint_minutes": 1000, "batch_size": 8}


def test_plateau_lowers_the_rate_each_time_nothing_got_better_and_counts_anew():
    assert plateau.lowered([], 2) == 0
    assert plateau.lowered([0.1, 0.2, 0.2], 2) == 0
    assert plateau.lowered([0.1, 0.2, 0.2, 0.1], 2) == 1
    assert plateau.lowered([0.1, 0.2, 0.2, 0.1, 0.3, 0.3], 2) == 1
    assert plateau.lowered([0.3, 0.2, 0.2, 0.2, 0.2], 2) == 2


def test_plateau_ends_at_once_or_after_two_finer_rates():
    flat = [0.5] + [0.4] * 8

    assert not plateau.over(flat, patience=0, anneal="cosine")
    assert plateau.over(flat[:4], patience=3, anneal="cosine")
    assert not plateau.over(flat[:3], patience=3, anneal="cosine")
    assert not plateau.over(flat[:7], patience=3, anneal="plateau")
    assert plateau.over([*flat, 0.4], patience=3, anneal="plateau")


def test_plateau_rate_rises_first_and_falls_to_a_tenth_twice():
    def rate(scores: list[float], step: int = 1000, *, warm: bool = True) -> float:
        return plateau.learning_rate(scores, step, patience=1, warm=warm)

    assert [rate([], 0), rate([], 49), rate([], 500)] == pytest.approx([0.01, 0.5, 1.0])
    assert rate([], 0, warm=False) == 1
    assert [rate([1.0, 0.5]), rate([1.0, 0.5, 0.5]), rate([1.0] * 9)] == pytest.approx([0.1, 0.01, 0.01])


def test_plateau_refuses_trainings_without_an_end_or_without_scores():
    never = {"budget_minutes": 0, "epochs": 0, "steps": 0, "anneal": "cosine", "patience": 0, "eval_share": 0.05}

    with pytest.raises(Refused, match="budget_minutes, epochs, steps or patience"):
        plateau.chosen(never)
    assert plateau.chosen({**never, "patience": 3}) == ("plateau", 3)
    assert plateau.chosen({**never, "anneal": "plateau"}) == ("plateau", plateau.DEFAULT_PATIENCE)
    assert plateau.chosen({**never, "steps": 5, "patience": 3}) == ("cosine", 3)
    with pytest.raises(Refused, match="set eval_share above 0"):
        plateau.chosen({**never, "patience": 3, "eval_share": 0})


def test_points_of_a_training_without_an_end_are_scored_on_all_images(tmp_path):
    open_ended, ending = trainer(tmp_path / "open", patience=3), trainer(tmp_path / "ending", patience=3, steps=10)
    for one in (open_ended, ending):
        one.at.step, one.at.last_eval_s = 5, 1e6
        one.pace.add(5, 1.0)

    assert open_ended._part() == 1.0
    assert ending._part() < 0.1  # its points are spread over a known time


def test_checkpoint_of_another_network_is_refused_with_what_to_do(tmp_path):
    trainer_state.save(trainer(tmp_path, steps=1))

    with pytest.raises(Refused, match="an older release of this preset"):
        trainer(tmp_path, steps=1, net_width=8)


def trainer(root: Path, **params: Any) -> Trainer:
    version = root / "shades" if (root / "shades").exists() else versions.shades(root / "shades", train=8, val=2)
    names = ("CACHE", "CHECKPOINT", "OUTPUT")
    folders = {"DATASET": version, **{name: root / name.lower() for name in names}}
    run = Run.from_environment({f"AIP_{name}_DIR": str(folder) for name, folder in folders.items()})
    card = classify_card.CARD.read({**SMALL, "net_width": 4, **params})
    task = classify.Classification(run, card, ALONE)
    return Trainer(task, run, task.params, ALONE)


@pytest.mark.parametrize(
    ("architecture", "amp", "flags", "wanted"),
    [("resnet9", True, "fpu avx512_bf16", True), ("resnet9", True, "fpu avx2", False),
     ("resnet9", False, "fpu avx512_bf16", False), ("lite0", True, "fpu amx_bf16", False)],
)  # fmt: skip
def test_dense_networks_learn_in_bfloat16_where_the_processor_has_it(
    tmp_path, monkeypatch, architecture, amp, flags, wanted
):
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(cores, "FLAGS", tmp_path / "cpuinfo")

    learner = trainer(tmp_path, steps=1, architecture=architecture, amp=amp)

    batch, draws = learner.task.load(list(range(8))), learner.draws(0)
    learner.task.model.train()
    seen = []
    learner.task.model.register_forward_hook(lambda _model, _given, answer: seen.append(answer.dtype))
    loss = learner.loss(batch, draws, ALONE)
    assert seen == [torch.bfloat16 if wanted else torch.float32]
    assert next(iter(loss.values())).dtype == torch.float32


@pytest.mark.parametrize("preset", ["detect", "segment"])
@pytest.mark.parametrize("parts", [2, 4])
def test_accumulated_gradient_is_that_of_the_whole_batch(tmp_path, preset, parts):
    one = made(preset, tmp_path)
    batch, draws = one.load([0, 1, 2, 3]), one.draw(torch.Generator().manual_seed(0), 4)

    def loss(some: Any, chosen: Any, ranks: Ranks) -> dict[str, torch.Tensor]:
        return one.loss(one.model, some, chosen, ranks)

    one.model.train()
    whole = loss(batch, draws, ALONE)
    sum(whole.values()).backward()
    expected = [p.grad.clone() for p in one.model.parameters() if p.grad is not None]
    one.model.zero_grad()
    found = accumulate.learn(one.model, loss, batch, draws, ALONE, parts)

    assert {name: value.item() for name, value in found.items()} == pytest.approx(
        {name: value.item() for name, value in whole.items()}, rel=1e-5
    )
    gradients = [p.grad for p in one.model.parameters() if p.grad is not None]
    norm = math.sqrt(sum(float((g**2).sum()) for g in expected))
    apart = math.sqrt(sum(float(((g - e) ** 2).sum()) for g, e in zip(gradients, expected, strict=True)))
    assert apart < 1e-5 * norm


@pytest.mark.parametrize("parts", [2, 8])
@pytest.mark.parametrize("how", ["mixup", "cutmix"])
def test_accumulated_gradient_of_blended_images_is_that_of_the_whole_batch(tmp_path, how, parts):
    version = versions.shades(tmp_path / "version")
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(tmp_path / "cache")})
    given = {**SMALL, "steps": 1, "architecture": "vit", how: 1.0, "light_jitter": 0.2, "erase": 0.5}  # no batch norms
    one = classify.Classification(run, classify_card.CARD.read(given), ALONE)
    batch, draws = one.load(list(range(8))), one.draw(torch.Generator().manual_seed(0), 8)

    def loss(some: Any, chosen: Any, ranks: Ranks) -> dict[str, torch.Tensor]:
        return one.loss(one.model, some, chosen, ranks)

    whole = loss(batch, draws, ALONE)["class"]
    whole.backward()
    expected = torch.cat([p.grad.flatten() for p in one.model.parameters()])
    one.model.zero_grad()
    found = accumulate.learn(one.model, loss, batch, draws, ALONE, parts)["class"]
    gradients = torch.cat([p.grad.flatten() for p in one.model.parameters()])

    assert found.item() == pytest.approx(whole.item(), rel=1e-5)
    assert (gradients - expected).norm() < 1e-5 * expected.norm()
    plain = loss(batch[:2], draws, ALONE)["class"]
    assert plain.item() != pytest.approx(whole.item(), rel=1e-3)  # what was compared is blended


def made(preset: str, root: Path) -> Any:
    make = versions.squares if preset == "detect" else versions.outlines
    version = make(root / "version", train=4, val=2)
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(root / "cache")})
    params = {**SMALL, "steps": 1, "width": 64, "height": 64}
    if preset == "detect":
        own = {"architecture": "lite0-scratch", "head_width": 16, "frozen_blocks": 0}
        task = detect.Detection(run, detect_card.CARD.read({**params, **own}), ALONE)
        task.model.backbone.eval()  # its batch norms would see parts
        task.model.backbone.train = lambda mode=True: task.model.backbone
        return task
    return segment.Segmentation(run, segment_card.CARD.read({**params, "architecture": "unet", "net_width": 8}), ALONE)


@pytest.mark.long
@pytest.mark.proof
def test_preset_run_without_a_budget_ends_where_nothing_gets_better(tmp_path):
    version = versions.shades(tmp_path / "shades", train=16, val=4)
    params = {**SMALL, "net_width": 4, "flip_tta": False, "lr": 1e-7, "patience": 1, "eval_share": 1, "ema": 0}

    job = Job(tmp_path / "job", version, "classify", params)
    code, log = job.run()

    assert code == 0, log
    assert "nothing got better for 1 points: the training ends at step" in log
    scores = [point["val/accuracy"] for point in json.loads((job.outputs / "metrics.json").read_text())["history"]]
    assert plateau.lowered(scores[:-1], 1) == plateau.LOWERED + 1


def test_preset_run_that_ends_without_progress_gives_back_its_best_point(tmp_path, monkeypatch):
    learner = trainer(tmp_path, patience=2, epochs=60, anneal="cosine", eval_share=1, ema=0)
    seen: list[torch.Tensor] = []

    def evaluate(model: Any, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        seen.append(next(model.parameters()).detach().clone())
        return {learner.task.metric: 0.9 if len(seen) == 2 else 0.5}

    monkeypatch.setattr(learner.task, "evaluate", evaluate)
    monkeypatch.setattr(learner.task, "export", lambda model, folder, figures: None)
    monkeypatch.setattr(learner.run, "listen", lambda: None)
    monkeypatch.setattr(learner.run, "end_on_signal", lambda: None)

    assert learner.train() == 0

    assert len(seen) == 5
    assert torch.equal(seen[-1], seen[1]), "what is given back is the second point, the best one"
    assert not torch.equal(seen[-1], seen[-2])


GANG = {**SMALL, "net_width": 4, "flip_tta": False, "steps": 20, "eval_share": 0, "lr": 0.05, "amp": False}
CLOSE = 1e-5  # float32 sums in another order: SGD keeps it at 1e-7, AdamW makes 1e-4 and more of it within 20 steps


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    """A version, and what one process learns from it in 20 steps."""
    root = tmp_path_factory.mktemp("gang")
    version = versions.shades(root / "shades", train=32, val=4)
    job = Job(root / "one", version, "classify", GANG)
    code, log = job.run()
    assert code == 0, log
    return version, job.curve("train/loss")


@pytest.mark.proof
def test_preset_run_goes_on_by_one_rank_and_by_two_again(tmp_path, gang):
    version, alone = gang
    for ranks, last in ((2, "step 7 "), (1, "step 13 "), (2, "")):
        job = Job(tmp_path / "changing", version, "classify", GANG, ranks=ranks)
        job.request("")
        with job.start() as process:
            seen = []
            for line in process.stdout:
                seen.append(line)
                if last and last in line:
                    job.request("suspend")
        log = "".join(seen)
        assert process.returncode == 0 or (last and "suspended at step" in log), log

    lines = map(json.loads, job.metrics.read_text().splitlines())
    losses = [(line["step"], line["train/loss"]) for line in lines if "train/loss" in line]
    assert [step for step, _loss in losses] == list(range(1, 21))
    assert [loss for _step, loss in losses] == pytest.approx(alone, rel=CLOSE)


def test_presets_refuse_a_batch_that_its_parts_do_not_fill(tmp_path):
    card = classify_card.CARD.read({**SMALL, "steps": 1, "accumulate": 16, "net_width": 4})
    version = versions.shades(tmp_path / "shades", train=8, val=2)
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(tmp_path / "cache")})

    with pytest.raises(Refused, match="8 images and batch_size 8 do not fill 1 ranks with 16 parts each"):
        classify.Trainer(classify.Classification(run, card, ALONE), run, card, ALONE)


@pytest.mark.long
@pytest.mark.proof
def test_preset_run_by_two_machines_equals_two_processes_and_one(tmp_path, gang):
    version, alone = gang
    processes = Job(tmp_path / "processes", version, "classify", GANG, ranks=2)
    machines = Job(tmp_path / "machines", version, "classify", GANG)
    meeting = f"127.0.0.1:{ports.own().free()}"
    machines.argv = [*machines.argv[:1], "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1",
                     "--rdzv-backend=c10d", f"--rdzv-endpoint={meeting}", "--rdzv-id=gang",
                     "-m", "presets.classify"]  # fmt: skip

    assert processes.run()[0] == 0
    with machines.start() as first, machines.start() as second:
        logs = [process.communicate()[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), logs

    assert machines.curve("train/loss") == processes.curve("train/loss")
    assert machines.curve("train/loss") == pytest.approx(alone, rel=CLOSE)


DOUBLE = """import torch
torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double
torch.float32 = torch.float64
"""


@pytest.mark.long
@pytest.mark.proof
def test_preset_run_with_adamw_by_two_ranks_equals_one_but_for_rounding(tmp_path):
    """AdamW divides tiny gradients by themselves, so rounding shows; in double precision there is none left to show."""
    version = versions.outlines(tmp_path / "outlines", train=16, val=2, size=(64, 48))
    (tmp_path / "double").mkdir()
    (tmp_path / "double" / "sitecustomize.py").write_text(DOUBLE)
    curves = []
    for ranks in (1, 2):
        own = {**SMALL, "architecture": "unet", "net_width": 8, "steps": 20, "eval_share": 0, "width": 64, "height": 64}
        job = Job(tmp_path / f"by{ranks}", version, "segment", own, ranks=ranks)
        job.env["PYTHONPATH"] = str(tmp_path / "double")
        _code, log = job.run()  # ONNX Runtime has no convolutions in double precision, so the export fails
        assert "step 20 " in log, log
        curves.append(job.curve("train/loss"))

    assert curves[1] == pytest.approx(curves[0], rel=1e-12)


@pytest.mark.parametrize("home", ["checkpoints", "resume"])
def test_best_point_is_given_back_also_where_an_earlier_attempt_made_it(tmp_path, home):
    average = nn.Linear(2, 1)
    tensors = {key: value + 1 for key, value in average.state_dict().items()}
    for step, metric in ((5, 0.9), (10, 0.8)):
        state = {"average": tensors, "position": {"step": step}}
        checkpoints.write(
            tmp_path / home, step=step, metric=metric, best=step == 5,
            fill=lambda folder, state=state: torch.save(state, folder / "state.pt"),
        )  # fmt: skip
    said: list[str] = []
    run = SimpleNamespace(checkpoint_dir=tmp_path / "checkpoints", resume_from=tmp_path / "resume" / "step-000010")
    at = SimpleNamespace(best=0.9)
    trainer = SimpleNamespace(run=run, at=at, average=average, ranks=ALONE, log_line=said.append)

    trainer_state.take_best(trainer)

    assert said == ["the model is that of step 5, the best point"]
    assert torch.equal(average.weight, tensors["weight"])
    at.best = 0.95  # of a point whose checkpoint is gone
    trainer_state.take_best(trainer)
    assert said[1] == "the checkpoint of the best point is gone: the model is that of the last step"


def test_accumulation_leaves_statistics_as_one_look_at_each_part_does():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    once = copy.deepcopy(model)
    batch = (torch.rand(8, 3),)

    def loss(some: Any, _draws: Any, ranks: Ranks) -> dict[str, torch.Tensor]:
        return {"all": model(some[0]).square().sum() / ranks.mean(torch.tensor(float(len(some[0]))))}

    accumulate.learn(model, loss, batch, {}, ALONE, 2)
    for part in batch[0].chunk(2):
        once(part)

    assert torch.equal(model[1].running_mean, once[1].running_mean)
    assert torch.equal(model[1].running_var, once[1].running_var)


def test_batch_is_divided_into_the_fewest_parts_that_fit(monkeypatch):
    asked: list[int] = []

    def fits(_trainer: Any, count: int) -> bool:
        asked.append(count)
        return count <= 5

    monkeypatch.setattr(microbatches, "fits_in_memory", fits)
    card = SimpleNamespace(device=torch.device("cuda"), world=2, highest=lambda value: [value])
    trainer = SimpleNamespace(ranks=card, batch_size=24)

    assert microbatches.find_count(trainer) == 3
    assert asked == [12, 6, 4]
    monkeypatch.setattr(microbatches, "fits_in_memory", lambda _trainer, _count: False)
    with pytest.raises(Refused, match="A single image does not fit"):
        microbatches.find_count(trainer)
    assert microbatches.find_count(SimpleNamespace(ranks=ALONE)) == 1


def test_trying_what_fits_changes_nothing_and_says_where_memory_ends(tmp_path, monkeypatch):
    folder = versions.shades(tmp_path / "shades", train=16, val=8)
    run = Run.from_environment({"AIP_DATASET_DIR": str(folder), "AIP_CACHE_DIR": str(tmp_path / "cache")})
    params = classify_card.CARD.read({**SMALL, "steps": 1, "accumulate": 0, "net_width": 4})
    task = classify.Classification(run, params, ALONE)
    learner = Trainer(task, run, task.params, ALONE)
    before = {name: value.clone() for name, value in task.model.state_dict().items()}
    drawn = torch.get_rng_state()

    assert learner.parts_of_batch == 1
    assert microbatches.fits_in_memory(learner, 8)

    def full(_model: Any, batch: Any, *_rest: Any) -> dict[str, torch.Tensor]:
        raise torch.OutOfMemoryError(f"no room for {len(batch[0])}")

    monkeypatch.setattr(task, "loss", full)
    assert not microbatches.fits_in_memory(learner, 8)
    assert all(torch.equal(before[name], value) for name, value in task.model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(parameter.grad is None for parameter in task.model.parameters())
    assert all(module.training for module in task.model.modules())
