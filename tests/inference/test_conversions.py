"""Conversions: the real program on tiny models, what becomes of its variants, who may do what."""

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from django.utils.timezone import now
from onnx import TensorProto, helper, numpy_helper

from accounts.access import sharing
from accounts.services import shares
from aiplatform.lib.errors import DomainError, StillInUse
from datasets.services import usage
from inference.conversion import conversions, results
from inference.conversion.converter import variant_catalog
from inference.conversion.kind import ConversionKind
from inference.conversion.models import Conversion
from inference.kit.model_io.engine import Engine
from inference.kit.models import selftest
from inference.kit.models.standalone import Model
from inference.registry import registration as registry
from inference.registry import retention, training_data
from inference.registry.models import ModelVersion
from inference.registry.run_code import Vanished
from inference.registry.selftest import self_tests
from tests.factories import models as factory
from tests.inference import converted, judged, tiny, versions
from tests.inference.running import set_state
from tests.long_form import first
from workers.core.models import Attempt
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data")


def fragile(folder: Path, size: int = 8) -> Path:
    """The tiny classifier with 10,000 added and taken away again: between the two, eight bits hold nothing of it."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["mean"], name="mean"),
        helper.make_node("Flatten", ["mean"], ["flat"], axis=1, name="flat"),
        helper.make_node("Mul", ["flat", "ten"], ["small"], name="small"),
        helper.make_node("Add", ["small", "much"], ["large"], name="large"),
        helper.make_node("Sub", ["large", "much"], ["logits"], name="logits"),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    constants = [
        numpy_helper.from_array(np.float32([10]), "ten"),
        numpy_helper.from_array(np.float32([10_000]), "much"),
    ]
    input_spec = tiny.input_of(size, mean=[0, 0, 0], std=[255, 255, 255])
    tiny.describe(folder, task="classification", classes=tiny.COLOURS, input=input_spec, output={"logits": "logits"})
    return tiny.write(folder, helper.make_graph(nodes, "fragile", [images], [logits], constants))


def uploaded(owner, folder: Path, name: str = "fragile") -> ModelVersion:
    archive = factory.zipped(folder, folder.with_suffix(".zip"))
    return registry.register_upload(user=owner, archive=archive, filename=archive.name, name=name)


def rows_of(conversion: Conversion) -> dict[str, dict]:
    return {row["target"]: row for row in results.load(conversion)["rows"]}


def test_forms_are_made_judged_timed_and_kept_as_versions(alice, model, data):
    conversion = converted.submitted(alice, model, data)

    output = converted.ran(conversion)

    rows = rows_of(conversion)
    assert list(rows) == ["source", *converted.TARGETS], output
    assert {row["state"] for row in rows.values()} == {"accepted"}, output
    assert all(row["speed"]["p50_ms"] > 0 and row["size_bytes"] > 0 for row in rows.values())
    assert (rows["fp32"]["loss"], rows["fp32"]["agreement"]) == (0, 1)
    lines = [json.loads(line) for line in RunDir.for_attempt(conversion.job_id, 1).metrics.read_text().splitlines()]
    assert {line["phase"] for line in lines if "phase" in line} == converted.PHASES
    assert all(line["phase_done"] <= line["phase_total"] for line in lines if "phase_total" in line)
    assert all("eta_s" in line for line in lines if line.get("phase") in ("converting", "measuring"))
    variants = {variant.target: variant for variant in conversion.variants.all()}
    assert {variant.made.number for variant in variants.values()} == {2, 3, 4, 5}
    made = variants["int8"].made
    assert (made.source, made.parent, made.parent_label) == ("convert", model, "alice/cells v1")
    assert made.facts["conversion"]["target"] == "int8"
    assert made.facts["conversion"]["calibrated_on"] == conversion.data_label
    assert made.metrics["ap50"] == pytest.approx(rows["int8"]["value"])
    assert (made.task, made.classes) == (model.task, model.classes)
    assert made.sha256 != model.sha256
    for version in (made, model):  # each has samples with its own answers
        assert (version.self_test.samples, version.self_test.data) == (4, data)
        files = self_tests.for_package(version, alice).files
        sample = json.loads(files["selftest/answers.json"])["samples"][-1]
        requested = selftest.Requested.from_values(sample["asked"])
        again = json.loads(json.dumps(Model(version.path).predict(files[f"selftest/{sample['picture']}"], requested)))
        assert selftest.difference(sample["answer"], again, sample["asked"]).largest <= 1e-3


@pytest.mark.long
def test_int8_file_holds_bytes_with_a_scale_for_each_channel(alice, tmp_path, data):
    model = factory.model_version(alice, tmp_path, name="net", task="segmentation")
    conversion = converted.submitted(alice, model, data, targets=("int8",), max_loss=1.0)

    output = converted.ran(conversion)

    version = conversion.variants.get().made
    assert version is not None, output
    graph = onnx.load(version.path / "model.onnx").graph
    weights = [entry for entry in graph.initializer if entry.data_type == TensorProto.INT8]
    assert any(list(entry.dims) == [4, 3, 1, 1] for entry in weights)
    scales = {entry.name: entry.dims for entry in graph.initializer}
    assert any(list(dims) == [4] for name, dims in scales.items() if name.endswith("_scale"))
    assert {node.op_type for node in graph.node} >= {"QuantizeLinear", "DequantizeLinear"}
    assert (
        Engine(version.path / "model.onnx").run({"images": np.zeros((2, 3, 64, 64), np.float32)})["logits"].shape[0]
        == 2
    )


@pytest.mark.long
def test_form_that_loses_too_much_is_made_again_without_the_nodes_that_suffer(alice, tmp_path):
    model = uploaded(alice, fragile(tmp_path / "fragile"))
    data = judged.dataset_version(alice, tmp_path / "data", task="classification")
    conversion = converted.submitted(alice, model, data, targets=("int8",))

    output = converted.ran(conversion)

    row = rows_of(conversion)["int8"]
    assert row["sensitive"][0]["node"] == "large", output
    assert row["without"] == ["large"]
    assert (row["state"], row["loss"]) == ("accepted", 0)
    assert conversion.variants.get().made.metrics["accuracy"] == rows_of(conversion)["source"]["value"]


@pytest.mark.long
def test_form_that_still_loses_too_much_is_refused_and_never_becomes_a_version(alice, tmp_path, monkeypatch):
    folder = fragile(tmp_path / "fragile")
    graph = onnx.load(folder / "model.onnx").graph
    more = [helper.make_node("Add", ["logits0", "much"], ["again"], name="again")]
    more += [helper.make_node("Sub", ["again", "much"], ["logits"], name="last")]
    graph.node[-1].output[0] = "logits0"
    tiny.write(folder, helper.make_graph([*graph.node, *more], "fragile", graph.input, graph.output, graph.initializer))
    model = uploaded(alice, folder)
    data = judged.dataset_version(alice, tmp_path / "data", task="classification")
    conversion = converted.submitted(alice, model, data, targets=("int8", "fp32"))

    output = converted.ran(conversion)

    variants = {variant.target: variant for variant in conversion.variants.all()}
    assert (variants["int8"].state, variants["int8"].made) == ("refused", None), output
    assert variants["fp32"].made is not None
    with pytest.raises(conversions.NotKept):
        conversions.promote(variant=variants["int8"])


def test_form_that_cannot_be_made_says_why_and_the_others_are_made(alice, tmp_path, data):
    folder = tiny.detector(tmp_path / "odd")
    graph = onnx.load(folder / "model.onnx").graph
    model = uploaded(alice, folder, "odd")
    conversion = converted.submitted(alice, model, data, targets=("int8", "fp32"))
    set_state(conversion.job, "running")
    argv, env, run = converted.program(conversion)
    build = run.code / "inference" / "conversion" / "converter" / "build.py"
    build.write_text(build.read_text().replace("bench.quantize(into)", "raise ValueError('no such operator')"))

    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    ConversionKind().ended(conversion.job, conversion.job.attempts.get())

    assert done.returncode == 0, done.stdout + done.stderr
    rows = rows_of(conversion)
    assert (rows["int8"]["state"], rows["int8"]["error"]) == ("failed", "ValueError: no such operator")
    assert rows["fp32"]["state"] == "accepted"
    assert len(graph.node) == 7


def test_killed_conversion_goes_on_after_the_forms_that_are_done(alice, model, data):
    conversion = converted.submitted(alice, model, data)
    set_state(conversion.job, "running")
    argv, env, run = converted.program(conversion)
    process = subprocess.Popen(argv, cwd=run.code, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not (run.checkpoints / "latest").exists() and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    checkpoint = (run.checkpoints / "latest").resolve()
    before = {path.name: path.stat().st_mtime_ns for path in checkpoint.iterdir()}
    Attempt.objects.filter(job=conversion.job).update(state="lost", ended_at=now())
    Attempt.objects.create(job=conversion.job, number=2)
    type(conversion.job).objects.filter(pk=conversion.job_id).update(attempt_number=2)
    conversion.job.refresh_from_db()
    argv, env, run = converted.program(conversion, 2, AIP_RESUME_FROM=str(checkpoint))

    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    ConversionKind().ended(conversion.job, conversion.job.attempts.get(number=2))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "source.row.json" in before
    assert "The model as it is" not in done.stdout
    conversion.refresh_from_db()
    assert conversion.variants.exclude(made=None).count() == 4
    assert ModelVersion.objects.filter(model=model.model).count() == 5


@pytest.mark.long
def test_loss_has_an_interval_from_the_images_where_there_are_enough(alice, tmp_path):
    """Eight bits hold nothing of the fragile model: its loss is surely one, that of FP32 surely none."""
    data = judged.dataset_version(
        alice, tmp_path / "many", task="classification", made=versions.classification(tmp_path / "many", images=40)
    )
    model = uploaded(alice, fragile(tmp_path / "fragile"))
    conversion = converted.submitted(alice, model, data, targets=("fp32", "int8"), split="", max_loss=1)

    converted.ran(conversion)

    figures = {variant.target: variant.figures for variant in conversion.variants.all()}
    assert (figures["fp32"]["loss_low"], figures["fp32"]["loss_high"]) == (0, 0)
    lost = figures["int8"]
    assert 0 <= lost["loss_low"] <= lost["loss"] <= lost["loss_high"]
    assert lost["loss_low"] < lost["loss_high"] or lost["loss"] in (0, 1)


def test_publishing_twice_makes_no_version_twice(alice, model, data):
    conversion = converted.submitted(alice, model, data, targets=("fp16",))
    converted.ran(conversion)

    ConversionKind().ended(conversion.job, conversion.job.attempts.get())
    again = conversions.promote(variant=conversion.variants.get())

    assert ModelVersion.objects.filter(model=model.model).count() == 2
    assert again.number == 2


@pytest.mark.long
def test_suspended_conversion_ends_with_the_code_that_keeps_it(alice, model, data):
    conversion = converted.submitted(alice, model, data)
    set_state(conversion.job, "running")
    argv, env, run = converted.program(conversion)
    (run.path / "control").write_text("suspend")

    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 75, done.stdout + done.stderr
    ConversionKind().ended(conversion.job, conversion.job.attempts.get())
    assert not conversion.variants.exists()


TASKS = ("segmentation", "keypoints", "embedding", "instances", "tagging", "classification")


@pytest.mark.parametrize("task", first(1, TASKS))
def test_every_task_can_be_converted(alice, tmp_path, task):
    from tests.inference import versions

    model = factory.model_version(alice, tmp_path, name="net", task=task)
    carried = "classification" if task in ("classification", "embedding") else "detection"
    made = versions.keypoints(tmp_path / "data") if task == "keypoints" else None
    data = judged.dataset_version(alice, tmp_path / "data", task=carried, made=made)
    conversion = converted.submitted(alice, model, data, targets=("fp32", "fp16"), max_loss=1.0)

    output = converted.ran(conversion)

    rows = rows_of(conversion)
    assert rows["fp32"]["state"] == "accepted", output
    assert rows["fp32"]["agreement"] == pytest.approx(1), output
    assert rows["source"]["value"] is not None


def test_calibration_never_sees_what_forms_are_judged_on(tmp_path):
    from inference.conversion.converter.convert import Conversion as Program
    from tests.inference import versions
    from tests.inference.running import a_run

    root = versions.detection(tmp_path / "data", images=8)
    rows = [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]
    for index, row in enumerate(rows):
        row["split"] = "test" if index % 2 else "train"
    (root / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = tiny.detector(tmp_path / "net")
    params = {"targets": ["int8"], "calibrate_on": "", "looks": 100, "method": "minmax", "max_loss": 1.0}
    program = Program(a_run(tmp_path / "run", model, root, **params))

    assert len(list(program._calibration())) == 4


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"targets": ()}, "targets"),
        ({"targets": ("tensorrt9",)}, "targets"),
        ({"looks": 1}, "looks"),
        ({"max_loss": 2.0}, "max_loss"),
        ({"max_loss": float("nan")}, "max_loss"),
        ({"method": "guess"}, "method"),
        ({"keep": "best"}, "keep"),
        ({"split": "nowhere"}, "split"),
        ({"calibrate_on": "nowhere"}, "calibrate_on"),
        ({"name": "two/words"}, "name"),
    ],
)
def test_submit_refuses_wrong_values(alice, model, data, change, field):
    with pytest.raises(DomainError) as refused:
        converted.submitted(alice, model, data, **change)
    assert field in {error.blamed for error in refused.value.every} | ({None} if field == "name" else set())
    assert not Conversion.objects.exists()


def test_models_that_cannot_be_converted_are_refused(alice, bob, tmp_path, data):
    mute = factory.model_version(alice, tmp_path, name="mute", task="tensor")
    shared = factory.model_version(bob, tmp_path, name="theirs", visibility="public")
    own = factory.model_version(alice, tmp_path, name="own")
    conversion = converted.submitted(alice, own, data, targets=("fp16",))
    converted.ran(conversion)

    for version in (mute, shared, conversion.variants.get().made):
        with pytest.raises(DomainError) as refused:
            converted.submitted(alice, version, data)
        assert "cannot_convert" in {error.code for error in refused.value.every}


def test_whoever_manages_a_model_may_convert_it_and_loses_that_with_the_share(alice, bob, model, data, tmp_path):
    shares.share(kind="model", pk=model.model_id, level=sharing.MANAGE, by=alice, person="bob")
    theirs = judged.dataset_version(bob, tmp_path / "bobs")
    conversion = converted.submitted(bob, model, theirs, targets=("fp16",), keep="none")
    converted.ran(conversion)
    shares.unshare(kind="model", pk=model.model_id, by=alice, person="bob")

    with pytest.raises(conversions.NotKept):
        conversions.promote(variant=conversion.variants.get(), by=bob)


def test_running_conversion_holds_model_and_data(alice, model, data):
    conversion = converted.submitted(alice, model, data)

    assert any("conversion" in label for label in retention.users_of(model))
    assert any("conversion" in label for label in usage.users_of(data))
    with pytest.raises(StillInUse):
        registry.delete_version(version=model)
    set_state(conversion.job, "stopped")
    registry.delete_version(version=model)
    conversion.refresh_from_db()
    with pytest.raises(Vanished):
        ConversionKind().check_restore(conversion.job)


def test_what_a_program_left_is_taken_with_care(alice, model, data):
    conversion = converted.submitted(alice, model, data)
    set_state(conversion.job, "running")
    outputs = RunDir.for_attempt(conversion.job_id, 1).outputs
    outputs.mkdir(parents=True, exist_ok=True)
    odd = {
        "target": "int8",
        "state": "accepted",
        "value": float("inf"),
        "differences": [1],
        "classes": [1, {}],
        "speed": 3,
    }
    for content in ("[]", "{", "[" * 100_000, json.dumps({"rows": 3}), json.dumps({"rows": [odd, 4]})):
        (outputs / "conversion.json").write_text(content)
        loaded = results.load(conversion)
        assert all(row["target"] in variant_catalog.TARGETS or row["target"] == "source" for row in loaded["rows"])
    (outputs / "conversion.json").write_text(
        json.dumps({"rows": [{"target": "fp16", "state": "accepted"}], "complete": True, "fastest": "fp16"})
    )
    ConversionKind().ended(conversion.job, conversion.job.attempts.get())
    variant = conversion.variants.get()
    assert (variant.state, variant.made) == ("accepted", None)  # there is no file to keep
    (outputs / "targets" / "fp16").mkdir(parents=True)
    (outputs / "targets" / "fp16" / "model.onnx").symlink_to(model.path / "model.onnx")
    with pytest.raises(conversions.NotKept):
        conversions.promote(variant=variant)


def test_conversion_of_a_training_is_fair_where_its_source_is(alice, model, data):
    ModelVersion.objects.filter(pk=model.pk).update(source="training", preset="detection", dataset_version=data)
    model.refresh_from_db()
    conversion = converted.submitted(alice, model, data, targets=("fp16",))
    converted.ran(conversion)

    made = conversion.variants.get().made

    assert made.dataset_version == data
    ModelVersion.objects.filter(pk=made.pk).update(preset="detection")
    made.refresh_from_db()
    assert training_data.for_model(made, owner=alice).version == data
