import numpy as np
import pytest
from PIL import Image

from inference.kit.model_io import decode
from inference.kit.model_io.refusals import BadRequest
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import InputSpec
from tests.inference import pictures

STRETCH = InputSpec("images", 64, 64, 3, (0, 0, 0), (255, 255, 255), "stretch")
LETTERBOX = InputSpec("images", 64, 64, 3, (0, 0, 0), (1, 1, 1), "letterbox")


def test_preprocess_by_stretching_maps_boxes_back_to_the_image():
    image = Image.new("RGB", (128, 32), (255, 0, 0))

    sample, placement = decode.preprocess(image, STRETCH)
    back = placement.to_picture(np.array([[0, 0, 64, 64], [32, 16, 99, 99]], np.float32))

    assert sample.shape == (3, 64, 64)
    assert sample.dtype == np.float32
    assert sample[:, 5, 5].tolist() == [1, 0, 0]
    assert back.tolist() == [[0, 0, 128, 32], [64, 8, 128, 32]]


def test_preprocess_by_letterbox_keeps_proportions_and_fills_with_grey():
    image = Image.new("RGB", (128, 64), (255, 255, 255))

    sample, placement = decode.preprocess(image, LETTERBOX)
    back = placement.to_picture(np.array([[0, 16, 64, 48]], np.float32))

    assert sample[0, 0, 0] == decode.LETTERBOX_GREY
    assert sample[0, 32, 32] == 255
    assert back.tolist() == [[0, 0, 128, 64]]


def test_preprocess_gives_grey_models_one_channel():
    spec = InputSpec("images", 28, 28, 1, (0.0,), (255.0,), "stretch")

    sample, _ = decode.preprocess(Image.new("RGBA", (28, 28), (255, 255, 255, 255)), spec)

    assert sample.shape == (1, 28, 28)
    assert float(sample.min()) == 1


def test_open_image_turns_images_upright():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    data = pictures.encoded(Image.new("RGB", (40, 20)), "JPEG", exif=exif)

    assert decode.open_image(data).size == (20, 40)


def test_decode_copies_no_picture_that_is_upright_and_of_the_right_mode(monkeypatch):
    data = pictures.encoded(Image.new("RGB", (40, 20)), "JPEG")

    def fail(*args, **more):
        pytest.fail("copied")

    monkeypatch.setattr(Image.Image, "copy", fail)
    monkeypatch.setattr(Image.Image, "convert", fail)
    _sample, placement = decode.preprocess(decode.open_image(data), STRETCH)

    assert (placement.width, placement.height) == (40, 20)


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"not a picture", pictures.plain()[:60]])
def test_open_image_refuses_what_is_no_image(data):
    with pytest.raises(decode.BadImage):
        decode.open_image(data)


def test_open_image_refuses_too_many_pixels_before_decoding():
    data = pictures.plain(size=(2000, 2000))

    with pytest.raises(decode.BadImage, match="at most 1 million pixels"):
        decode.open_image(data, max_pixels=1_000_000)


def test_detections_suppress_per_class_and_best_first():
    boxes = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [30, 30, 40, 40]], np.float32)
    scores = np.array([[0.9, 0.0], [0.8, 0.7], [0.1, 0.95]], np.float32)
    _, placement = decode.preprocess(Image.new("RGB", (64, 64)), STRETCH)

    detected = decode.detections(boxes, scores, placement, score_threshold=0.3, iou_threshold=0.5, max_detections=10)

    assert detected.scores.tolist() == pytest.approx([0.95, 0.9, 0.7])
    assert detected.classes.tolist() == [1, 0, 1]
    assert detected.boxes[2].tolist() == [1, 1, 11, 11]


def test_detections_leave_out_boxes_that_are_not_finite():
    boxes = np.array([[0, 0, np.nan, 10]], np.float32)
    _, placement = decode.preprocess(Image.new("RGB", (64, 64)), STRETCH)

    detected = decode.detections(
        boxes, np.ones((1, 1), np.float32), placement,
        score_threshold=0.3, iou_threshold=0.5, max_detections=10,
    )  # fmt: skip

    assert len(detected.boxes) == 0


def test_suppress_equals_the_plain_double_loop():
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 50, (200, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(1, 30, (200, 2))], 1).astype(np.float32)

    def iou(a, b):
        wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
        high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
        areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
        return wide * high / (areas - wide * high)

    selected = []
    for index in range(200):
        if all(iou(boxes[index], boxes[other]) <= 0.4 for other in selected):
            selected.append(index)

    assert decode.suppress(boxes, 0.4, limit=200).tolist() == selected


def test_probabilities_survive_large_logits():
    shares = decode.probabilities(np.array([[1000.0, 1000.0], [0.0, -1000.0]], np.float32))

    assert shares.tolist() == [[0.5, 0.5], [1.0, 0.0]]


def test_predict_refuses_parameters_it_does_not_know_and_names_those_it_does():
    with pytest.raises(BadRequest, match=r"no parameter score here\. Known: score_threshold, iou_threshold"):
        Requested.from_query({"score": "0.5"})

    assert Requested.from_query({"score_threshold": "0.5"}).score_threshold == 0.5
