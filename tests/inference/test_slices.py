"""Figures of parts of the images, and the copies that robustness is judged on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from django.urls import reverse
from PIL import Image

from inference.evaluation import differences, results, slices
from inference.evaluation.evaluator import altered
from inference.evaluation.slices import ImageFilter
from inference.kit.samples import facts
from tests.inference import judged

pytestmark = pytest.mark.django_db


def _spoil(evaluation, *, dark):
    """Let images be dark and wrong (`dark` of 100), all others bright and right."""
    judged.rewrite(evaluation, [number >= dark for number in range(100)])
    file = results.folder(evaluation) / "images.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for number, row in enumerate(rows):
        facts = {
            "split": "test",
            "light": 20.0 if number < 40 else 200.0,
            "marks": {"rain": ["true"]} if number < 5 else {},
        }
        row |= {"about": facts}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def two(alice, tmp_path):
    first = judged.evaluation(alice, tmp_path, task="classification")
    second = judged.judged(alice, first.model_version, first.version)
    _spoil(first, dark=20)
    _spoil(second, dark=0)
    return first, second


def test_worst_part_comes_first_and_few_images_are_marked(two):
    first, _second = two

    rows = slices.compute([first], first)

    values = [(row.by, row.name, row.images, row.is_small, row.first.value) for row in rows]
    assert values == [("mark", "rain: true", 5, True, 0.0), ("light", "dark", 40, False, 0.5),
                    ("light", "bright", 60, False, 1.0)]  # fmt: skip
    dark = rows[1].first
    assert 0.3 < dark.low < 0.5 < dark.high < 0.7


def test_parts_of_two_evaluations_differ_where_one_is_better(two):
    first, second = two

    by_name = {(row.by, row.name): row for row in slices.compute([first, second], first)}

    dark, bright = (by_name["light", name].row.values[1].difference for name in ("dark", "bright"))
    assert (dark.verdict, dark.value, dark.low > 0) == (differences.BETTER, 0.5, True)
    assert bright.verdict == differences.NO_DIFFERENCE


def test_api_and_page_show_parts_and_those_asked_for(client, api, alice, bob, two):
    first, second = two
    first.version.assets.create(path="1.png", sha256="a", width=8, height=8, split="test")
    api.force_authenticate(alice)
    client.force_login(alice)

    rows = api.get(f"/api/v1/evaluations/{first.pk}/slices/", {"split": "test", "search": "1.png"}).json()["slices"]
    both = api.get("/api/v1/evaluations/comparison/slices/", {"evaluation": [first.pk, second.pk]}).json()
    page = client.get(reverse("inference:evaluation-slices", args=[first.pk]), {"q": "1.png"})
    compared = client.get(
        reverse("inference:evaluation-compared-slices"), {"evaluation": [first.pk, second.pk], "q": "1.png"}
    )
    api.force_authenticate(bob)

    assert (rows[0]["by"], rows[0]["images"], rows[0]["values"][0]["value"]) == ("asked", 1, 0.0)
    assert [len(row["values"]) for row in both["slices"]] == [2, 2, 2]
    assert (page.context["told"].images[0][2].images, compared.context["told"].images[0][2].images) == (1, 1)
    assert b"slice-table" in compared.content
    assert api.get(f"/api/v1/evaluations/{first.pk}/slices/").status_code == 404


def test_evaluation_keeps_facts_of_images_and_judges_altered_copies(alice, tmp_path):
    made = judged.evaluation(alice, tmp_path, params={"altered_images": 3})

    content, entries = results.load(made), list(results.every_image(made))
    robust = content["robustness"]
    assert {entry["about"]["split"] for entry in entries} == {"test"}
    assert all(0 < entry["about"]["light"] < 255 for entry in entries)
    assert (robust["images"], robust["figure"], len(robust["rows"])) == (3, "ap50", 12)
    worst = min(row["value"] for row in robust["rows"])
    assert worst < robust["clean"]
    assert not list(results.folder(made).glob("altered-*"))


@pytest.mark.parametrize("kind", altered.WHOLE)
def test_altered_copies_differ_more_the_stronger_they_are(kind):
    chance = np.random.default_rng(1)
    image = Image.fromarray(chance.integers(0, 200, (12, 16, 3), np.uint8)).resize((320, 240))

    distances = [
        float(np.abs(np.asarray(altered.copy(image, kind, strength, seed=2), float) - np.asarray(image)).mean())
        for strength in altered.STRENGTHS
    ]

    assert 0 < distances[0] < distances[1] < distances[2]
    assert altered.copy(image, kind, 2, seed=2).tobytes() == altered.copy(image, kind, 2, seed=2).tobytes()


def test_light_is_told_of_large_and_small_images():
    assert facts.light(Image.new("RGB", (3000, 700), (200, 200, 200))) == pytest.approx(200, abs=1)
    assert facts.light(Image.new("L", (3, 3), 10)) == 10


def test_asked_says_nothing_where_it_is_empty():
    assert not ImageFilter(terms=" ")
    assert ImageFilter(class_id=0)
