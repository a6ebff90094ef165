"""Cameras that show nothing new: told from still scenes by what pictures are exactly."""

import numpy as np
import pytest

from inference.video.watcher.frozen_video import BLACK, FROZEN, OVER, Stillness, is_black

RATE, AFTER_S = 5, 60.0
SCENE = np.random.default_rng(0).integers(40, 200, (48, 64, 3), np.uint8)


def noisy(random, scene=SCENE, level=0.4):
    """The scene as a quiet sensor sees it: most of its numbers are the same each time."""
    return np.clip(np.rint(scene + random.normal(0, level, scene.shape)), 0, 255).astype(np.uint8)


def changes_of(pictures, still=None, begin=0.0):
    """(what, when) of each change, of pictures at 5 a second."""
    still = still or Stillness(AFTER_S)
    changes = [(still.update(picture, begin + number / RATE), begin + number / RATE) for number, picture in pictures]
    return [(what, at) for what, at in changes if what]


def of_seconds(seconds, make):
    return [(number, make(number)) for number in range(int(seconds * RATE))]


def groups(random, length):
    """Groups of pictures: each begins with what the sensor sees, the others repeat that, as coders do."""
    begins = [noisy(random) for _number in range(int(300 * RATE / length) + 1)]
    return lambda number: begins[number // length]


@pytest.mark.parametrize("length", [1, 250], ids=["each picture", "50 s groups"])
def test_still_scene_of_a_real_sensor_is_not_frozen(length):
    assert changes_of(of_seconds(300, groups(np.random.default_rng(1), length))) == []


@pytest.mark.parametrize("phases", [1, 60], ids=["same bytes", "coded anew in groups of 12 s"])
def test_frozen_camera_is_told_once_and_recovers(phases):
    random, still = np.random.default_rng(2), Stillness(AFTER_S)
    same = [noisy(random) for _number in range(phases)]
    lively = of_seconds(10, lambda _number: noisy(random))

    assert changes_of(lively, still) == []
    ((what, at),) = changes_of(of_seconds(200, lambda number: same[number % phases]), still, begin=10)
    assert (what, at) == (FROZEN, pytest.approx(70 + (phases - 1) / RATE, abs=0.3))
    assert (still.why, still.since) == (FROZEN, pytest.approx(10 + (phases - 1) / RATE))
    assert changes_of(lively, still, begin=210) == [(OVER, 210.0)]
    assert still.why == ""


def test_black_is_told_whatever_noise_is_on_it_and_a_lamp_at_night_is_not_black():
    random, still = np.random.default_rng(3), Stillness(AFTER_S)
    covered = of_seconds(100, lambda _number: noisy(random, np.full((96, 128, 3), 5, np.uint8), 6))
    night = np.full((96, 128, 3), 5, np.uint8)
    night[:16, :24] = 180

    ((what, at),) = changes_of(covered, still)
    assert (what, at) == (BLACK, pytest.approx(AFTER_S, abs=0.7))
    assert changes_of(of_seconds(2, lambda _number: noisy(random, night)), still, begin=100)[0][0] == OVER
    assert not is_black(night)
    same = changes_of(of_seconds(100, lambda _number: np.zeros((48, 64, 3), np.uint8)))
    assert [what for what, _at in same] == [BLACK]  # and not frozen as well


def test_time_without_pictures_does_not_count_and_nothing_is_told_where_nobody_asks():
    still = Stillness(AFTER_S)
    for number in range(20):
        assert still.update(SCENE, 30.0 * number) == ""  # a picture each half a minute
    assert changes_of(of_seconds(200, lambda _number: SCENE), Stillness(0)) == []
