"""The keypoint finder's parts in this process, and the preset as a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from inference.evaluation.evaluator.__main__ import evaluate
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import crops, data, export, keypoints, keypoints_card, lite0, pose, segmenter, skeletons
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run

ALONE = Ranks(0, 1, torch.device("cpu"))
STEPS = {"budget_minutes": 0, "show_steps": True, "checkpoint_minutes": 1000, "eval_share": 0, "batch_size": 4}
SMALL = {**STEPS, "architecture": "lite0-scratch", "width": 64, "height": 64, "head_width": 16}
STILL = {"scale_jitter": 0.0, "turn": 0.0, "shift": 0.0, "light_jitter": 0.0, "flip": 0.0, "vertical_flip": 0.0}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.figures(tmp_path_factory.mktemp("versions") / "figures", train=8, val=4, size=(128, 96))


def task(version: Path, cache: Path, **params: Any) -> keypoints.Keypoints:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache)})
    return keypoints.Keypoints(run, keypoints_card.CARD.read({**SMALL, "steps": 1, **params}), ALONE)


def marked(folder: Path, *, names: list[str], shapes: list[dict[str, Any]], size: tuple[int, int] = (80, 60)) -> Path:
    """One class on pictures that are white where a point is; every other picture is to score on."""
    (folder / "images").mkdir(parents=True)
    images = []
    for number in range(1 + max(shape["image"] for shape in shapes)):
        pixels = np.full((size[1], size[0], 3), 40, np.uint8)
        for shape in shapes:
            for x, y, v in np.reshape(shape.get("keypoints", []), (-1, 3)) if shape["image"] == number else ():
                if v:
                    pixels[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2] = 255
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
        line = {"path": f"{number}.png", "sha256": "", "width": size[0], "height": size[1], "label": None}
        images.append({**line, "split": "val" if number % 2 else "train"})
    said = {"thing": {"keypoints": names, "skeleton": [[1, 2]]}}
    return versions.write(folder, task="detection", classes=["thing"], images=images, shapes=shapes, said=said)


def thing(image: int, x: float, y: float, w: float, h: float, *points: tuple[float, float, int]) -> dict[str, Any]:
    flat = [value for point in points for value in point]
    return {"image": image, "class": 0, "bbox": [x, y, w, h], "keypoints": flat}


class Counted(list[int]):
    """A list that counts how often it is gone through."""

    times = 0

    def __iter__(self) -> Any:
        self.times += 1
        return super().__iter__()


def test_split_is_gone_through_once_and_not_for_each_object(figures, tmp_path, monkeypatch):
    learn, score = Counted(range(8)), Counted(range(8, 12))
    monkeypatch.setattr(data, "split", lambda *_args, **_named: (learn, score, "val"))

    made = task(figures, tmp_path)

    assert made.rows + len(made.score) == len(made.objects)
    assert (learn.times, score.times) == (1, 1)


# ---- what a version says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "pairs", "expected"),
    [
        (["nose", "left_eye", "right_eye"], "", (0, 2, 1)),
        (["LeftHand", "RightHand"], "", (1, 0)),
        (["nose", "tail", "fin"], "nose=tail", (1, 0, 2)),
        (["hour", "minute"], "", ()),
        (["left_eye", "nose"], "", ()),  # its other side is no point of this class
    ],
)
def test_mirrored_points_are_those_of_the_other_side(names, pairs, expected):
    assert skeletons.mirrored(names, pairs) == expected


def test_mirrored_pairs_are_refused_where_they_cannot_be_read():
    with pytest.raises(Refused, match="nose=tail, a=b"):
        skeletons.mirrored(["a", "b"], "a-b")


def test_keypoints_are_read_without_crowds_and_with_a_box_where_none_came(tmp_path):
    shapes = [
        thing(0, 10, 10, 30, 20, (12, 14, 2), (30, 20, 1)),
        {**thing(0, 0, 0, 80, 60, (1, 1, 2), (2, 2, 2)), "iscrowd": 1},
        thing(1, 0, 0, 0, 0, (20, 20, 2), (0, 0, 0)),
        thing(1, 5, 5, 9, 9, (0, 0, 0), (0, 0, 0)),
    ]

    [known], objects = skeletons.read(data.read(marked(tmp_path / "two", names=["a", "b"], shapes=shapes)))

    assert (known.names, known.links, known.mirrored) == (("a", "b"), ((1, 2),), ())
    assert [one.box for one in objects] == [(10, 10, 40, 30), (19, 19, 21, 21)]
    assert objects[0].points[:, 2].tolist() == [2, 1]


def test_keypoints_preset_refuses_a_version_without_points_and_one_with_too_few(tmp_path):
    bare = versions.squares(tmp_path / "bare", train=2, val=1)
    short = marked(tmp_path / "short", names=["a", "b"], shapes=[thing(0, 1, 1, 9, 9, (3, 3, 2))])

    with pytest.raises(Refused, match=r"bare has no keypoints\. Import a COCO file whose classes name keypoints"):
        task(bare, tmp_path / "cache")
    with pytest.raises(Refused, match=r"0\.png has 3 numbers for the 2 keypoints of its class; 6 are needed"):
        task(short, tmp_path / "cache")


# ---- cut-outs --------------------------------------------------------------------------------------------------


def white(images: torch.Tensor) -> np.ndarray:
    """Centre of what is white in a normalised image, as x, y in its pixels."""
    light = images.mean(0) > (150 - lite0.MEAN) / lite0.STD
    rows, columns = np.nonzero(light.numpy())
    return np.array([columns.mean() + 0.5, rows.mean() + 0.5])


@pytest.mark.parametrize("box", [(20, 15, 40, 30), (0, 0, 30, 50), (50, 30, 30, 30)], ids=["inside", "left", "corner"])
def test_cut_out_shows_a_point_where_it_is_said_to_be_and_leads_back(tmp_path, box):
    x, y = box[0] + 0.6 * box[2], box[1] + 0.4 * box[3]
    shapes = [thing(image, *box, (x, y, 2), (0, 0, 0)) for image in (0, 1)]
    one = task(marked(tmp_path / "one", names=["a", "b"], shapes=shapes), tmp_path / "cache", crop="object")

    seen = white(one.images([0])[0])

    size = np.array([one.width, one.height])
    assert seen == pytest.approx(one.points[0, 0].numpy() + size / 2, abs=1.5)
    assert one.patches.in_image(0, seen[None])[0] == pytest.approx([x, y], abs=1.5)


def test_turned_points_stay_with_what_they_mark(tmp_path):
    shapes = [thing(image, 20, 15, 40, 30, (47, 24, 2), (0, 0, 0)) for image in range(4)]
    one = task(marked(tmp_path / "one", names=["left", "right"], shapes=shapes), tmp_path / "cache", crop="object")
    params = {"flip": 0.5, "vertical_flip": 0.5, "scale_jitter": 0.2, "turn": 60.0, "shift": 0.1, "light_jitter": 0.0}
    draws = crops.draw(params, torch.Generator().manual_seed(3), 16)
    patches = torch.from_numpy(one.patches.pixels([0] * 16))

    turn = crops.Turn.from_draws(draws, (one.width, one.height), torch.ones(16, dtype=torch.bool))
    images, moved = turn.images(patches), turn.points(one.points[[0] * 16])

    assert turn.mirrored.unique().tolist() == [False, True]
    for image, place in zip(images, moved[:, 0], strict=True):
        if place.min() > 3 and place.max() < 61:
            assert white(image) == pytest.approx(place.numpy(), abs=1.5)


def test_keypoints_preset_names_the_other_side_in_a_mirror_and_mirrors_no_clock(figures, tmp_path):
    one = task(figures, tmp_path / "cache", **{**STILL, "flip": 1.0})
    seen: dict[int, torch.Tensor] = {}
    heard = {}

    def model(images: torch.Tensor) -> torch.Tensor:
        heard["images"] = images
        return torch.zeros(len(images), pose.channels(len(one.names), 3), 16, 16)

    def losses(_output: Any, points: torch.Tensor, known: torch.Tensor, *_rest: Any) -> tuple[torch.Tensor, ...]:
        seen.update({place: points[place] for place in range(len(points))})
        return (torch.zeros(()),) * 4

    rows = list(range(one.rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pose, "losses", losses)
        one.loss(model, one.load(rows), one.draw(torch.Generator().manual_seed(0), len(rows)), ALONE)

    middle = torch.tensor([one.width, one.height]) / 2
    for place, number in enumerate(one.learn):
        own = one.skeletons[one.objects[number].kind]
        there = one.points[number, own.places] + middle
        if own.mirrored:
            there = there[list(own.mirrored)] * torch.tensor([-1, 1]) + torch.tensor([one.width, 0])
        assert torch.allclose(seen[place][own.places], there, atol=1e-3)
    assert not one.mirrors[2]


def test_keypoints_preset_looks_at_whole_pictures_where_a_lone_object_fills_them(tmp_path):
    large = [thing(image, 5, 5, 70, 50, (20, 20, 2), (40, 30, 2)) for image in (0, 1)]
    small = [thing(image, 5, 5, 20, 20, (20, 20, 2), (10, 10, 2)) for image in (0, 1)]
    both = [*large, thing(1, 1, 1, 8, 8, (2, 2, 2), (3, 3, 2))]
    made = {"large": large, "small": small, "both": both}
    folders = {n: marked(tmp_path / n, names=["a", "b"], shapes=shapes) for n, shapes in made.items()}
    cache = tmp_path / "cache"

    assert {name: task(folder, cache).whole for name, folder in folders.items()} == {
        "large": True,
        "small": False,
        "both": False,
    }
    whole = task(folders["both"], cache, crop="picture")
    assert [one.box for one in whole.objects] == [(5, 5, 75, 55)] * 2  # one answer for a picture: its largest object


# ---- loss, figures, network ------------------------------------------------------------------------------------


def drawn(points: torch.Tensor, classes: torch.Tensor, *, present: float = 20.0) -> torch.Tensor:
    """The output [N, 2K + C, 16, 16] of a network that is sure of these points [N, K, 2]."""
    rows = torch.arange(16) * 4.0 + 2
    y, x = torch.meshgrid(rows, rows, indexing="ij")
    distance = (x - points[..., 0, None, None]) ** 2 + (y - points[..., 1, None, None]) ** 2
    maps = -distance / (2 * (pose.SPREAD * pose.STRIDE) ** 2)
    kinds = 20.0 * torch.nn.functional.one_hot(classes, 2)[..., None, None].expand(-1, -1, 16, 16)
    return torch.cat([maps, torch.full_like(maps, present), kinds], 1)


def test_pose_losses_are_least_where_all_is_right_and_do_not_ask_for_what_is_unknown():
    points = torch.tensor([[[20.0, 30], [44, 17]]])
    known, kinds = torch.tensor([[True, False]]), torch.tensor([1])
    own = torch.tensor([[True, False]])

    right = pose.losses(drawn(points, kinds), points, known, own, kinds)
    elsewhere = pose.losses(drawn(points + torch.tensor([[0, 0], [9, 9]]), kinds), points, known, own, kinds)
    off = pose.losses(drawn(points + 4, kinds), points, known, own, kinds)

    assert [float(part) for part in elsewhere] == pytest.approx([float(part) for part in right])
    assert float(right[1]) < 0.05
    assert float(off[1]) == pytest.approx(2, abs=0.1)  # cells: one across, one down
    assert float(off[0]) > float(right[0]) + 0.5
    assert [float(right[2]), float(right[3])] == pytest.approx([0, 0], abs=1e-3)


def test_pose_losses_count_parts_of_a_pixel_in_bfloat16_too():
    place, known = torch.tensor([[[188.3, 190.0]]]), torch.ones(1, 1, dtype=torch.bool)
    grid = pose.cells(torch.zeros(1, 1, 64, 64))
    output = torch.zeros(1, pose.channels(1, 1), 64, 64)
    output[0, 0] = -(grid - place[0]).square().sum(1).view(64, 64) / (2 * (pose.SPREAD * pose.STRIDE) ** 2)

    with torch.autocast("cpu", torch.bfloat16):
        _bump, off, _there, _named = pose.losses(output, place, known, known, torch.zeros(1, dtype=torch.int64))

    assert float(off) * pose.STRIDE < 0.05


def test_answering_reads_points_between_cells_and_their_scores():
    points = torch.tensor([[[21.3, 30.9], [43.1, 17.4]]])
    model = pose.Answering(torch.nn.Identity(), 2)

    places, classes = model(drawn(points, torch.tensor([1]), present=0.0))

    assert torch.allclose(places[..., :2], points, atol=0.15)
    assert places[..., 2].flatten().tolist() == pytest.approx([0.5, 0.5])
    assert classes[0].tolist() == pytest.approx([0, 1], abs=1e-6)


def test_export_answers_as_the_keypoint_finder_does(tmp_path):
    torch.manual_seed(0)
    model = segmenter.Segmenter(lite0.Lite0((4, 8, 16, 32)), pose.channels(3, 2), width=16)
    samples = torch.rand(3, 3, 64, 96)

    export.write(
        pose.Answering(model.eval(), 3), tmp_path, outputs=("points", "kinds"), samples=samples, metadata={}
    )  # compares both

    assert json.loads((tmp_path / "model.json").read_text())["verify"]["max_abs_diff"] < 1e-2


def test_keypoints_figures_are_shares_of_the_box(tmp_path):
    shapes = [thing(0, 0, 0, 50, 20, (10, 10, 2), (30, 10, 1)), thing(1, 0, 0, 20, 20, (5, 5, 2), (0, 0, 0))]
    one = task(marked(tmp_path / "two", names=["a", "b"], shapes=shapes), tmp_path / "cache", crop="object")

    found = one._figures([(0, [5.0, 2.0], True), (1, [1.0], False)])

    assert found["val/nme"] == pytest.approx((3.5 / 1000**0.5 + 1 / 20) / 2)
    assert (found["val/pck05"], found["val/pck10"]) == (pytest.approx(2 / 3), 1.0)
    assert found["val/class_accuracy"] == 0.5


def test_keypoints_preset_learns_the_same_on_two_lanes_as_on_one(figures, tmp_path):
    one = task(figures, tmp_path / "cache", frozen_blocks=0)
    one.model.eval()  # batch norms that learn are never spread over lanes
    batch, draws = one.load([0, 1, 2, 3]), one.draw(torch.Generator().manual_seed(0), 4)

    with torch.no_grad():
        whole = one.loss(one.model, batch, draws, ALONE)
        halves = [
            one.loss(one.model, tuple(part[at] for part in batch), {n: d[at] for n, d in draws.items()}, ALONE)
            for at in (slice(0, 2), slice(2, 4))
        ]

    for name, value in whole.items():
        assert sum(half[name].item() for half in halves) / 2 == pytest.approx(value.item(), rel=1e-4)


# ---- the preset ------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.proof
def test_keypoints_preset_goes_on_after_a_suspend_and_is_judged_as_it_judged_itself(tmp_path, figures):
    straight = Job(tmp_path / "straight", figures, "keypoints", {**SMALL, "steps": 6})
    assert straight.run()[0] == 0

    cut = Job(tmp_path / "cut", figures, "keypoints", {**SMALL, "steps": 6})
    with cut.start() as process:
        for line in process.stdout:
            if "step 2 " in line:
                cut.request("suspend")
    assert process.returncode == 75
    cut.request("")
    code, log = cut.run()

    assert code == 0, log
    figures_of = [json.loads((job.outputs / "metrics.json").read_text()) for job in (straight, cut)]
    assert figures_of[0]["val/nme"] == figures_of[1]["val/nme"]
    about = json.loads((cut.outputs / "model" / "model.json").read_text())
    assert (about["task"], about["input"]["scope"]) == ("keypoints", "object")
    assert about["classes"][2] == {
        "id": 3,
        "name": "clock",
        "keypoints": ["centre", "hour", "minute"],
        "skeleton": [[1, 2], [1, 3]],
    }
    judged = evaluate(a_run(tmp_path / "judged", cut.outputs / "model", figures, split="val"))
    assert judged["summary"]["nme"] == pytest.approx(figures_of[1]["val/nme"], rel=0.05)
    assert judged["summary"]["class_accuracy"] == pytest.approx(figures_of[1]["val/class_accuracy"], abs=0.15)
