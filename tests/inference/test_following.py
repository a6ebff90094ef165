"""The tracker on walkers whose ways are known; lines and zones; what the decoder's scaling does to answers."""

import json

import numpy as np
import pytest
from PIL import Image

from inference.kit.model_io import decode
from inference.video.watcher import detect, pictures
from inference.video.watcher.tracker import Tracker
from inference.video.watcher.zones import Foot, Line, Zone
from tests.inference import clips, following


@pytest.mark.parametrize(
    ("scene", "mota", "idf1"),
    [({"people": 40}, 0.88, 0.80), ({"people": 18, "every": 3}, 0.90, 0.84)],
    ids=["crowd", "every third picture"],
)
def test_walkers_are_followed_through_crowds_and_gaps(scene, mota, idf1):
    figures = following.judged(list(following.scene(10, **scene)))

    assert figures.mota > mota
    assert figures.idf1 > idf1


def test_tracker_goes_on_from_json_as_if_it_had_never_stopped():
    moments = list(following.scene(3, people=12, frames=120))
    uninterrupted, first, second = Tracker(), Tracker(), Tracker()

    def numbers(tracker, part):
        return [
            tracker.update(moment.boxes, moment.scores, np.zeros(len(moment.boxes), np.int64), moment.at).tolist()
            for moment in part
        ]

    before = numbers(first, moments[:60])
    second.restore(json.loads(json.dumps(first.as_json())))

    assert before + numbers(second, moments[60:]) == numbers(uninterrupted, moments)


def test_flicker_gets_no_number_and_classes_do_not_mix():
    tracker, box = Tracker(), np.array([[10.0, 10, 30, 50]])

    assert tracker.update(box, np.array([0.9]), np.array([1]), 0.0).tolist() == [0]
    assert tracker.update(np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64), 0.1).tolist() == []
    assert tracker.update(box, np.array([0.9]), np.array([1]), 0.2).tolist() == [0]
    assert tracker.update(box, np.array([0.9]), np.array([1]), 0.3).tolist() == [1]
    assert tracker.update(box, np.array([0.9]), np.array([2]), 0.4).tolist() == [0]


def walked(line: Line, *points: tuple[float, float], step_s: float = 0.2) -> dict[str, int]:
    for number, point in enumerate(points):
        list(line.update([Foot(1, point)], number * step_s))
    return line.counts


def test_line_counts_who_crosses_it_and_not_who_passes_beside_it():
    assert walked(Line("a", (0, 0.5), (1, 0.5)), (0.5, 0.4), (0.5, 0.6)) == {"in": 1, "out": 0}
    assert walked(Line("a", (0, 0.5), (1, 0.5)), (0.5, 0.6), (0.5, 0.4)) == {"in": 0, "out": 1}
    assert walked(Line("a", (0, 0.5), (0.4, 0.5)), (0.5, 0.4), (0.5, 0.6)) == {"in": 0, "out": 0}
    assert walked(Line("a", (1, 0.5), (0, 0.5)), (0.5, 0.4), (0.5, 0.6)) == {"in": 0, "out": 1}


def test_line_counts_who_sways_on_it_once():
    sways = [(0.5, 0.4), *[(0.5, 0.5 + 0.01 * (-1) ** n) for n in range(10)], (0.5, 0.6)]

    assert walked(Line("a", (0, 0.5), (1, 0.5)), *sways, step_s=0.05) == {"in": 1, "out": 0}
    assert walked(Line("a", (0, 0.5), (1, 0.5)), (0.5, 0.4), (0.5, 0.6), (0.5, 0.4), step_s=2) == {"in": 1, "out": 1}


def test_zone_tells_who_enters_stays_and_leaves():
    zone = Zone("a", ((0, 0), (0.5, 0), (0.5, 0.5), (0, 0.5)), loiter_s=2)
    events = []
    for number in range(40):
        inside = 5 <= number < 30 and number != 10  # once it is missed
        feet = [Foot(7, (0.25, 0.25) if inside else (0.75, 0.25))] if number != 12 else []
        events += [(number, facts["type"]) for _who, facts in zone.update(feet, number / 10)]

    assert events == [(7, "entered"), (25, "loitered"), (39, "left")]
    assert zone.inside == 0


def test_zone_with_a_dent_holds_what_is_in_it():
    zone = Zone("a", ((0, 0), (1, 0), (1, 1), (0.5, 0.2), (0, 1)))

    assert zone.holds((0.5, 0.1))
    assert not zone.holds((0.5, 0.6))
    assert zone.holds((0.1, 0.5))


@pytest.mark.parametrize("resize", ["letterbox", "stretch"])
def test_picture_of_the_decoder_gives_the_answers_of_the_server(tmp_path, resize):
    av = pytest.importorskip("av")
    folder = clips.follower(tmp_path / "model")
    described = json.loads((folder / "model.json").read_text())
    described["input"]["resize"] = resize
    (folder / "model.json").write_text(json.dumps(described))
    detector = detect.Detector(folder, threads=1, lowest=0.1)
    pixels = np.zeros((90, 160, 3), np.uint8)
    pixels[30:46, 60:76] = (255, 0, 0)
    sample, placement = decode.preprocess(Image.fromarray(pixels), detector.input)
    height, width = (64, 64) if resize == "stretch" else (36, 64)
    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(width, height, interpolation="BILINEAR")
    layout = pictures.Layout(160, 90, (height, width, 3), (90, 160, 3), 1)

    detected = detector.find(frame.to_ndarray(format="rgb24"), layout)
    outputs = detector.engine.run({detector.input.name: sample[None]})
    served = detector.detect(detector.spec, outputs, 0, placement, detector.limits)

    assert len(detected.boxes) == len(served.boxes) == 1
    assert detected.boxes == pytest.approx(served.boxes, abs=0.6)
    assert detected.kinds.tolist() == [1]
