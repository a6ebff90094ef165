"""Models from other programs: described by what is declared and by what their files say."""

import json

import numpy as np
import pytest
from onnx import TensorProto
from PIL import Image

from aiplatform.lib.errors import DomainError, Invalid
from inference.kit.model_io import decode
from inference.kit.model_io.spec import InputSpec
from inference.kit.models import model_json
from inference.kit.models.standalone import Model
from inference.registry.formats import foreign_metadata
from inference.registry.formats.declared import PIXELS, Declared, labels_of
from inference.registry.models import ModelVersion
from tests.factories import models as factory
from tests.inference import foreign, tiny
from tests.inference.foreign import LOGITS, PETS

pytestmark = pytest.mark.django_db

BOX, OTHER = (10, 20, 30, 60), (40, 8, 60, 16)  # x1 y1 x2 y2 in the pixels of an input of 64


def centred(box):
    x1, y1, x2, y2 = box
    return [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1]


def yolo():
    return np.array([[*centred(BOX), 0.1, 0.9], [*centred(OTHER), 0.8, 0.2], *[[0] * 6] * 20]).T[None]


def yolov5():
    return np.array([[*centred(BOX), 0.95, 0.1, 0.95], [*centred(OTHER), 0.8, 1.0, 0.2], *[[0] * 7] * 20])[None]


def end_to_end():
    return np.array([[*BOX, 0.9, 1], [*OTHER, 0.8, 0], *[[0] * 6] * 20])[None]


def detr():
    boxes = np.array([centred(BOX), centred(OTHER), [32, 32, 4, 4]]) / 64
    sure = np.array([[0.05, 0.9, 0.05], [0.8, 0.1, 0.1], [0.01, 0.01, 0.98]])
    return {"logits": np.log(sure)[None], "pred_boxes": boxes[None]}


def own():
    return {"boxes": np.array([[BOX, OTHER]]), "scores": np.array([[[0.1, 0.9], [0.8, 0.2]]])}


def refusals(function, *args, **kwargs):
    with pytest.raises(DomainError) as refused:
        function(*args, **kwargs)
    return {refusal.blamed: refusal.message for refusal in refused.value.every}


def picture(tmp_path, size=(64, 64)):
    path = tmp_path / "picture.png"
    Image.new("RGB", size, "grey").save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("outputs", "layout"),
    [
        ({"output0": yolo()}, ""),
        ({"output0": yolo()}, "yolo"),
        ({"output": yolov5()}, ""),
        ({"output": yolov5()}, "yolov5"),
        ({"output0": end_to_end()}, "end2end"),
        (detr(), ""),
        (own(), ""),
    ],
)
def test_detector_of_another_program_answers_in_the_pixels_of_the_picture(alice, tmp_path, outputs, layout):
    path = foreign.net(tmp_path / "net.onnx", outputs)

    version = foreign.import_file(alice, path, task="detection", labels=PETS, pixels="unit", layout=layout)

    assert (version.task, version.source, version.number) == ("detection", ModelVersion.Source.IMPORT, 1)
    assert [row["name"] for row in version.classes] == ["cat", "dog"]
    predictions = Model(version.path).predict(picture(tmp_path, (128, 128)))["predictions"]
    assert [(row["name"], round(row["score"], 2)) for row in predictions] == [("dog", 0.9), ("cat", 0.8)]
    np.testing.assert_allclose([row["box"] for row in predictions], 2 * np.array([BOX, OTHER]), atol=0.05)


def test_shapes_that_fit_two_layouts_must_be_told_apart(alice, tmp_path):
    """Six columns are corners, score and class of end to end, or with one label YOLOv5's: only values would tell."""
    path = foreign.net(tmp_path / "net.onnx", {"output0": end_to_end()})

    both = foreign.import_file(alice, path, task="detection", labels=PETS, pixels="unit")
    path.rename(tmp_path / "one.onnx")
    options = {"task": "detection", "labels": ("cat",), "pixels": "unit"}
    refused = refusals(foreign.import_file, alice, tmp_path / "one.onnx", **options)
    single = foreign.import_file(alice, tmp_path / "one.onnx", **options, layout="end2end")

    assert json.loads((both.path / "model.json").read_text())["output"] == {"end2end": "output0"}
    assert set(refused) == {"layout"}
    assert "yolov5" in refused["layout"]
    assert "end2end" in refused["layout"]
    assert json.loads((single.path / "model.json").read_text())["output"] == {"end2end": "output0"}


@pytest.mark.parametrize("extra", [{"end2end": "True"}, {"args": "{'nms': True, 'batch': 1}"}])
def test_exporter_that_says_it_answers_final_boxes_is_believed(alice, tmp_path, extra):
    fields = {"task": "detect", "names": "{0: 'cat'}", "imgsz": "[64, 64]"}
    path = foreign.net(tmp_path / "net.onnx", {"output0": end_to_end()}, metadata=fields | extra)

    version = foreign.import_file(alice, path)

    assert json.loads((version.path / "model.json").read_text())["output"] == {"end2end": "output0"}


def sigmoid_detr():
    sure = np.array([[0.1, 0.9], [0.8, 0.1], [0.01, 0.02]])
    return {"logits": np.log(sure / (1 - sure))[None], "pred_boxes": detr()["pred_boxes"]}


@pytest.mark.parametrize("architecture", ["RTDetrForObjectDetection", "DeformableDetrForObjectDetection", ""])
def test_successors_of_detr_keep_their_last_class(alice, tmp_path, architecture):
    folder = tmp_path / "rtdetr"
    foreign.net(folder / "model.onnx", sigmoid_detr())
    config = {"architectures": [architecture], "id2label": {"0": "cat", "1": "dog"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps({"do_normalize": False}))
    declared = {} if architecture else {"task": "detection"}

    version = foreign.import_file(alice, factory.zipped(folder, tmp_path / "rtdetr.zip"), **declared)

    predictions = Model(version.path).predict(picture(tmp_path))["predictions"]
    assert [(row["name"], round(row["score"], 2)) for row in predictions] == [("dog", 0.9), ("cat", 0.8)]


def test_logits_with_a_number_too_many_are_refused_where_the_architecture_has_no_ground(alice, tmp_path):
    folder = tmp_path / "odd"
    foreign.net(folder / "model.onnx", detr())
    config = {"architectures": ["RTDetrForObjectDetection"], "id2label": {"0": "cat", "1": "dog"}}
    (folder / "config.json").write_text(json.dumps(config))

    refused = refusals(foreign.import_file, alice, factory.zipped(folder, tmp_path / "odd.zip"), pixels="unit")

    assert set(refused) == {"labels"}


@pytest.mark.parametrize("flag", ["rescale_offset", "include_top"])
def test_preprocessors_that_do_more_than_we_can_follow_are_asked_about(alice, tmp_path, flag):
    folder = tmp_path / "net"
    foreign.net(folder / "model.onnx", {"logits": LOGITS})
    config = {"architectures": ["EfficientNetForImageClassification"], "id2label": {"0": "cat", "1": "dog"}}
    (folder / "config.json").write_text(json.dumps(config))
    processor = {"image_mean": [0.5] * 3, "image_std": [0.25] * 3, flag: True}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))

    assert set(refusals(foreign.import_file, alice, factory.zipped(folder, tmp_path / "net.zip"))) == {"pixels"}


def test_input_of_blue_green_red_is_described_and_given_so(alice, tmp_path):
    folder = tmp_path / "net"
    foreign.net(folder / "model.onnx", {"logits": LOGITS})
    config = {"architectures": ["MobileViTForImageClassification"], "id2label": {"0": "cat", "1": "dog"}}
    (folder / "config.json").write_text(json.dumps(config))
    processor = {"do_normalize": False, "do_flip_channel_order": True}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))

    version = foreign.import_file(alice, factory.zipped(folder, tmp_path / "net.zip"))

    spec = model_json.load(version.path).input
    sample, _placement = decode.preprocess(Image.new("RGB", (20, 10), (255, 51, 0)), spec)
    assert version.facts["input"]["order"] == "BGR"
    assert sample[:, 0, 0].tolist() == pytest.approx([0.0, 0.2, 1.0])
    declared = Declared(pixels="caffe_bgr")  # mean and std stand in the order of red, green, blue
    mean, std, order = PIXELS[declared.pixels]
    sample, _placement = decode.preprocess(
        Image.new("RGB", (8, 8), (200, 100, 50)), InputSpec("x", 8, 8, 3, mean, std, "stretch", blue_first=True)
    )
    assert (order, sample[:, 0, 0].tolist()) == ("BGR", pytest.approx([50 - 103.939, 100 - 116.779, 200 - 123.68]))


def test_large_config_of_hugging_face_is_not_read(tmp_path):
    config = {"architectures": ["DetrForObjectDetection"]}
    (tmp_path / "config.json").write_text(json.dumps(config | {"x": " " * (5 << 20)}))
    assert foreign_metadata.huggingface(tmp_path) == foreign_metadata.FileFacts()
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"do_normalize": False, "x": " " * (65 << 10)}))
    assert foreign_metadata.huggingface(tmp_path).mean == ()
    assert foreign_metadata.huggingface(tmp_path).layout == "detr"


@pytest.mark.parametrize("task", ["classification", "tagging"])
@pytest.mark.parametrize("inside", [True, False])
def test_probabilities_are_told_from_logits_by_the_operator_that_makes_them(alice, tmp_path, task, inside):
    operator = {"classification": "Softmax", "tagging": "Sigmoid"}[task] if inside else "Identity"
    path = foreign.net(tmp_path / "net.onnx", {"answer": LOGITS}, last=operator)

    version = foreign.import_file(alice, path, task=task, labels=PETS, pixels="imagenet")

    best = Model(version.path).predict(picture(tmp_path))["predictions"][0]
    assert best["name"] == "dog"
    assert best["score"] == pytest.approx(1 / (1 + np.exp(-2.0)), abs=1e-5)


def test_map_of_classes_may_begin_with_the_ground(alice, tmp_path):
    logits = np.zeros((1, 3, 16, 16))
    logits[:, 0] = 1
    logits[:, 2, :, 8:] = 5
    path = foreign.net(tmp_path / "net.onnx", {"logits": logits})

    version = foreign.import_file(alice, path, task="segmentation", labels=PETS, pixels="signed")

    predictions = Model(version.path).predict(picture(tmp_path))["predictions"]
    assert [(row["name"], round(row["share"], 1)) for row in predictions] == [("dog", 0.5)]


def test_all_that_does_not_fit_is_said_at_once(alice, tmp_path):
    path = foreign.net(tmp_path / "net.onnx", {"answer": LOGITS}, size=None)

    messages = refusals(foreign.import_file, alice, path, task="classification", labels=("cat",))

    assert set(messages) == {"width", "height", "pixels", "labels"}
    assert messages["labels"] == "The model predicts 2 classes; the labels name 1. Name all in order."


def test_outputs_that_are_laid_out_otherwise_are_named(alice, tmp_path):
    path = foreign.net(tmp_path / "net.onnx", {"answer": LOGITS})

    messages = refusals(foreign.import_file, alice, path, task="detection", labels=PETS, pixels="unit", layout="yolo")

    assert "answer [1, 2]" in messages["layout"]


@pytest.mark.parametrize("odd", [{"channels": 4}, {"kind": TensorProto.UINT8}, {"channels": 64}])
def test_inputs_that_no_picture_fits_are_refused(alice, tmp_path, odd):
    path = foreign.net(tmp_path / "net.onnx", {"answer": LOGITS}, **odd)

    assert (
        ". A 32-bit float input [N, 3, height, width] is required:"
        in refusals(foreign.import_file, alice, path, task="classification", labels=PETS, pixels="unit")["file"]
    )


def test_grey_input_takes_grey_pictures(alice, tmp_path):
    path = foreign.net(tmp_path / "net.onnx", {"answer": LOGITS}, channels=1)

    version = foreign.import_file(alice, path, task="classification", labels=PETS, pixels="unit")

    assert Model(version.path).spec.input.channels == 1
    assert Model(version.path).predict(picture(tmp_path))["predictions"][0]["name"] == "dog"


def test_size_that_the_file_fixes_cannot_be_declared_otherwise(alice, tmp_path):
    path = foreign.net(tmp_path / "net.onnx", {"answer": LOGITS})

    messages = refusals(foreign.import_file, alice, path, task="classification", labels=PETS, pixels="unit", width=32)

    assert messages == {"width": "The input size of the file is fixed to 64 pixels, not 32. Clear the field."}


def test_model_that_describes_itself_is_not_described_again(alice, tmp_path):
    tiny.classifier(tmp_path / "net")
    archive = factory.zipped(tmp_path / "net", tmp_path / "net.zip")

    assert (
        "The model is already described by its model.json. Clear task,"
        in refusals(foreign.import_file, alice, archive, task="detection")["task"]
    )


def test_weights_without_a_program_keep_what_is_declared(alice, tmp_path):
    path = tmp_path / "net.safetensors"
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)

    version = foreign.import_file(alice, path, task="classification", labels=PETS)

    assert (version.task, version.facts["declared_task"]) == ("weights", "classification")
    assert [row["name"] for row in version.classes] == ["cat", "dog"]


def test_folder_of_hugging_face_needs_no_declaration(alice, tmp_path):
    folder = tmp_path / "vit"
    foreign.net(folder / "model.onnx", {"logits": LOGITS}, size=None)
    config = {"architectures": ["ViTForImageClassification"], "id2label": {"0": "cat", "1": "dog"}, "image_size": 32}
    (folder / "config.json").write_text(json.dumps(config))
    processor = {"image_mean": [0.5] * 3, "image_std": [0.25] * 3, "size": {"height": 48, "width": 40}}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))

    version = foreign.import_file(alice, factory.zipped(folder, tmp_path / "vit.zip"))

    spec = Model(version.path).spec
    assert (version.task, version.architecture) == ("classification", "ViTForImageClassification")
    assert (spec.input.width, spec.input.height, spec.input.mean[0], spec.input.std[0]) == (40, 48, 127.5, 63.75)
    assert [model_class.name for model_class in spec.classes] == ["cat", "dog"]


def test_export_of_optimum_lies_a_folder_deeper(alice, tmp_path):
    folder = tmp_path / "detr"
    foreign.net(folder / "onnx" / "model.onnx", detr())
    config = {"architectures": ["DetrForObjectDetection"], "id2label": {"0": "cat", "1": "dog"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps({"do_normalize": False}))

    version = foreign.import_file(alice, factory.zipped(folder, tmp_path / "detr.zip"))

    assert Model(version.path).predict(picture(tmp_path))["predictions"][0]["name"] == "dog"
    assert Model(version.path).spec.input.std == (255.0,) * 3


def test_export_of_ultralytics_needs_no_declaration(alice, tmp_path):
    content = {"task": "detect", "names": "{0: 'cat', 1: 'dog'}", "imgsz": "[64, 64]", "description": "Ultralytics net"}
    path = foreign.net(tmp_path / "net.onnx", {"output0": yolo()}, size=None, metadata=content)

    version = foreign.import_file(alice, path)

    spec = Model(version.path).spec
    assert (version.task, version.source, version.architecture) == ("detection", "upload", "Ultralytics net")
    assert (spec.input.resize, spec.input.width, spec.input.std[0]) == ("letterbox", 64, 255.0)
    content = Model(version.path).predict(picture(tmp_path, (64, 32)))["predictions"]
    np.testing.assert_allclose(content[0]["box"], [10, 4, 30, 32], atol=0.05)  # 16 rows of grey above, cut below


@pytest.mark.parametrize(
    "names",
    [
        "{[]: 1}",
        "{None: 'cat'}",
        "{1e999: 'cat'}",
        "__import__('os').system('true')",
        "{0: 'cat', 2: 'dog'}",
        "[" * 5000,
        "{" + "0:" * 3000,
        "{'a': 1}",
        "7",
    ],
)
def test_metadata_that_is_no_list_of_names_means_nothing(alice, tmp_path, names):
    path = foreign.net(tmp_path / "net.onnx", {"output0": yolo()}, metadata={"task": "detect", "names": names})

    assert set(refusals(foreign.import_file, alice, path)) == {"labels"}


@pytest.mark.parametrize(
    "config",
    [
        b"[]",
        b"{",
        b'{"architectures": 7}',
        b'{"architectures": [7]}',
        b'{"architectures": ["XForImageClassification"]}',
    ],
)
def test_odd_config_of_hugging_face_is_passed_over_or_completed_by_hand(alice, tmp_path, config):
    folder = tmp_path / "net"
    foreign.net(folder / "model.onnx", {"logits": LOGITS})
    (folder / "config.json").write_bytes(config)
    archive = factory.zipped(folder, tmp_path / "net.zip")

    version = foreign.import_file(alice, archive, task="classification", labels=PETS, pixels="unit")

    assert version.task == "classification"


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("cat\n\n dog \n", PETS),
        ('["cat", "dog"]', PETS),
        ('{"1": "dog", "0": "cat"}', PETS),
        ("", ()),
    ],
)
def test_labels_come_as_people_have_them(text, labels):
    assert labels_of(text) == labels


@pytest.mark.parametrize("text", ["[", '{"1": "dog"}', '{"a": "dog"}'])
def test_labels_with_gaps_or_without_an_end_are_refused(text):
    with pytest.raises(Invalid):
        labels_of(text)


def test_declaration_refuses_all_that_no_model_has():
    messages = refusals(Declared(task="x", pixels="x", resize="x", width=9000, height=-1, labels=("a" * 300,)).check)

    assert set(messages) == {"task", "pixels", "resize", "width", "height", "labels"}
    assert set(refusals(Declared(task="classification", layout="yolo").check)) == {"layout"}
