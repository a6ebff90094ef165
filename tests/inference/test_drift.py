"""What is counted of pictures and answers, and how two counts are compared."""

import math

import numpy as np
import pytest

from inference.kit.models import descriptor, statistics
from inference.registry import drift
from inference.serving.server import image_sampling
from tests.cases import case_table
from tests.inference import pictures
from tests.inference.tallies import statistics_of, tally_of


def test_features_tell_bright_from_dark_large_from_small_and_sharp_from_blurred():
    def read(image, **options):
        return statistics.read(pictures.encoded(image, **options), max_pixels=10**8).features

    from PIL import Image, ImageFilter

    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (480, 640, 3), np.uint8)).resize((64, 48))
    black, white = Image.new("RGB", (640, 480)), Image.new("RGB", (6400, 480), "white")
    assert (read(black)["brightness"], read(white)["brightness"]) == (0.0, pytest.approx(1.0))
    assert read(white)["size"] > read(black)["size"]
    assert read(white)["shape"] > read(black)["shape"]
    assert read(noise)["sharpness"] > read(noise.filter(ImageFilter.GaussianBlur(3)))["sharpness"]
    assert read(Image.new("RGB", (64, 64), "red"))["saturation"] == pytest.approx(1.0)
    assert all(0 <= value <= 1 for value in read(Image.new("L", (1, 4000))).values())


def test_turned_photograph_has_the_shape_that_people_see():
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    wide = pictures.encoded(Image.new("RGB", (640, 320)), "JPEG", exif=exif)

    assert statistics.read(wide, max_pixels=10**8).features["shape"] == pytest.approx((-1 + 3) / 6)


def test_index_is_the_sum_it_says_and_chance_alone_gives_nothing():
    before, after = [50_000, 30_000, 20_000], [40_000, 30_000, 30_000]
    p, q = [0.5, 0.3, 0.2], [0.4, 0.3, 0.3]
    by_hand = sum((b - a) * math.log(b / a) for a, b in zip(p, q, strict=True))

    assert drift.index(before, after) == pytest.approx(by_hand, abs=1e-3)
    assert drift.index([0, 0], [1, 2]) == 0.0
    random = np.random.default_rng(7)
    values = [
        drift.index(random.multinomial(150, [0.1] * 10), random.multinomial(150, [0.1] * 10)) for _number in range(300)
    ]
    assert np.mean([value >= drift.STEADY for value in values]) < 0.05
    assert np.mean([value >= drift.OTHER for value in values]) < 0.01


def test_many_objects_of_one_picture_say_no_more_than_the_picture():
    """Each picture shows twenty objects of one class: the same population, twice."""
    random = np.random.default_rng(3)

    def tally_with(count):
        made = statistics.empty()
        features = dict.fromkeys(statistics.FEATURES, 0.5)
        for _number in range(count):
            name = str(random.integers(0, 20))
            statistics.add(made, statistics_of(features), [{"name": name, "score": 0.9}] * 20)
        return made

    values = [drift.compare(tally_with(500), tally_with(100))[0].value for _number in range(60)]

    assert np.mean([value >= drift.OTHER for value in values]) < 0.1


def test_comparison_names_what_changed_and_nothing_else():
    before, after = tally_of(200, classes=("one", "two")), tally_of(200, brightness=0.9, classes=("one", "two"))

    verdicts = {row.name: row.verdict for row in drift.compare(before, after)}

    assert verdicts.pop("brightness") == "other"
    assert set(verdicts.values()) == {"steady"}
    assert {row.verdict for row in drift.compare(before, tally_of(20))} == {"unknown"}


def test_distance_is_in_standard_deviations_of_pictures():
    random = np.random.default_rng(0)

    def tally_with(mean, count=2000):
        made = statistics.empty()
        for value in random.normal(mean, 0.1, count):
            statistics.add(made, statistics_of(dict.fromkeys(statistics.FEATURES, 0.5), float(value)), [])
        return made

    assert drift.distance(tally_with(0.5), tally_with(0.7)) == pytest.approx(2.0, abs=0.1)
    assert drift.distance(tally_with(0.5), tally_with(0.5)) == pytest.approx(0.0, abs=0.1)
    assert drift.distance(tally_with(0.5, 20), tally_with(0.5)) is None


def striped(random, *, turned=False):
    """A small picture of stripes and noise, brightness and colours of which do not say how they lie."""
    lines = np.sin(np.arange(statistics.SIDE) * random.uniform(0.6, 1.2))[:, None] * random.uniform(0.1, 0.2)
    base = random.uniform(0.4, 0.6) + np.repeat(lines.T if turned else lines, statistics.SIDE, axis=int(not turned))
    return np.clip(base[..., None] + random.normal(0, 0.03, (statistics.SIDE, statistics.SIDE, 3)), 0, 1)


def group(rows):
    made = descriptor.empty()
    for row in rows:
        descriptor.add(made, row)
    return made


def test_equal_samples_are_as_far_apart_as_was_tried_and_turned_stripes_farther():
    random = np.random.default_rng(5)

    def rows(count, **options):
        features = dict.fromkeys(("sharpness", "size", "shape"), 0.5)
        made = []
        for _number in range(count):
            small = striped(random, **options).astype(np.float32)
            made.append(descriptor.compute(small, small @ np.array([0.299, 0.587, 0.114], np.float32), features))
        return made

    crowd = np.array(rows(1200))

    def tally(chosen, **more):
        return statistics.empty() | {"looks": group(chosen)} | more

    wrong = 0
    for _number in range(20):
        random.shuffle(crowd)
        rare = descriptor.chance(crowd[:300].tolist())
        before = tally(crowd[:300], chance={"halves": 150, "rare": rare})
        wrong += sum(drift.looks(before, tally(crowd[-count:])).verdict != "steady" for count in (100, 200, 900))
    assert wrong <= 4  # of 60; it may be more than one in a hundred, as the 300 are themselves a sample
    seen_now = drift.looks(before, tally(rows(120, turned=True)))
    assert (seen_now.verdict, seen_now.shares[0][0]) == ("other", "edges")
    assert drift.looks(tally(crowd[:300]), tally(crowd[300:])).verdict == "unknown"  # nobody tried what chance gives


@case_table(
    "spoil",
    [
        lambda tally: tally | {"images": -1},
        lambda tally: tally | {"images": True},
        lambda tally: tally | {"scores": [0] * 3},
        lambda tally: tally | {"scores": ["1"] * statistics.BINS},
        lambda tally: tally | {"classes": []},
        lambda tally: tally | {"features": {}},
        lambda tally: tally | {"layout": {"sums": [float("nan")] * 27, "squares": [0.0] * 27}},
        lambda tally: tally | {"layout": {"sums": [1e200] * 27, "squares": [0.0] * 27}},
        lambda tally: tally | {"looks": {"images": 3, "sums": [1.0], "squares": [1.0]}},
        lambda tally: tally | {"looks": tally["looks"] | {"sums": [float("inf")] * descriptor.LENGTH}},
        lambda tally: tally | {"chance": {"halves": 3, "rare": float("nan")}},
        lambda tally: tally | {"classes": {"a\x00b": 1}},
        lambda tally: tally | {"classes": {"\ud800": 1}},
        lambda tally: [tally],
        lambda tally: None,
    ],
)
def test_what_a_program_tells_is_not_believed(spoil):
    assert drift.validate(tally_of(3)) == tally_of(3)
    old = {name: value for name, value in tally_of(3).items() if name != "looks"}  # of a server that began before
    assert drift.add_up([drift.validate(old), tally_of(3)])["looks"]["images"] == 3
    assert drift.validate(spoil(tally_of(3))) is None


def test_hours_keep_three_and_spend_a_fiftieth_of_the_time():
    at = [3600.0 * 1000]
    hours = statistics.Hours(clock=lambda: at[0])
    for number in range(5):
        at[0] = 3600.0 * (1000 + number)
        hours.add(statistics_of(dict.fromkeys(statistics.FEATURES, 0.5)), [])
    assert sorted(hours.tallies) == [3600 * (1002 + number) for number in range(3)]

    assert hours.wanted()
    hours._credit = -0.5
    assert not hours.wanted()
    hours._seen -= 3600  # an hour later
    assert hours.wanted()
    hours._credit -= 1.1  # one picture took a second: nothing was saved beyond that
    assert not hours.wanted()


def test_keeper_keeps_by_rule_and_only_so_many():
    low = [{"score": 0.9}, {"score": 0.2}]
    keeper = image_sampling.Keeper(percent=0, below=0.3)
    keeper.consider(b"sure", [{"score": 0.9}])
    keeper.consider(b"empty", [])
    assert keeper.pop() is None
    for number in range(image_sampling.MAX_SAMPLES + 5):
        keeper.consider(bytes([number]), low)
    taken = [keeper.pop() for _number in range(image_sampling.MAX_SAMPLES + 5)]
    assert [sample.picture[0] for sample in taken if sample] == list(range(image_sampling.MAX_SAMPLES))
    always = image_sampling.Keeper(percent=100, below=0)
    always.consider(b"x", [])
    assert always.pop().why == image_sampling.CHANCE
    always.consider(b"x" * (image_sampling.MAX_BYTES + 1), [])
    assert always.pop() is None
