"""TensorRT: engines for one model of card, judged, kept as data beside the ONNX file, run on such cards alone."""

import json
import os
import sys

import numpy as np
import pytest
from django.urls import reverse

from aiplatform.lib.errors import DomainError
from inference.conversion import conversions, results
from inference.conversion.converter import __main__ as program
from inference.conversion.kind import ConversionKind
from inference.conversion.labels import target_words
from inference.kit.model_io import tensorrt
from inference.kit.model_io.engine import Engine
from inference.kit.speed import speed
from inference.registry import registration as registry
from inference.registry.packages import entries
from tests.factories import models as factory
from tests.factories import work
from tests.inference import converted, fake_tensorrt, judged, programs, tiny
from tests.inference.running import set_state

pytestmark = pytest.mark.django_db
FILE = "model.nvidia-test-card-80gb.sm90.trt11.4.0.106.plan"


def ran_here(conversion, monkeypatch):
    """Run its program in this process, where TensorRT is what a test put there."""
    set_state(conversion.job, "running")
    _argv, env, _run = programs.prepared(ConversionKind(), conversion.job)
    with monkeypatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        assert program.main() == 0
    conversions.publish(conversion.job, conversion.job.attempts.get(number=1))
    set_state(conversion.job, "succeeded")
    conversion.refresh_from_db()


def test_engines_are_built_judged_kept_and_run_on_their_card_alone(alice, client, tmp_path, monkeypatch, caplog):
    fake_tensorrt.installed(monkeypatch)
    monkeypatch.setattr(speed, "MAX_RUNS", 5)
    work.node("cards", gpus=1)
    model, data = factory.model_version(alice, tmp_path), judged.dataset_version(alice, tmp_path / "data")
    names = ("tensorrt", "tensorrt_fp16")
    conversion = converted.submitted(alice, model, data, targets=names, gpus_per_node=1)

    ran_here(conversion, monkeypatch)

    rows = {row["target"]: row for row in results.load(conversion)["rows"]}
    assert {name: (row["state"], row["error"]) for name, row in rows.items()} == dict.fromkeys(rows, ("accepted", ""))
    assert {name: row["speed"]["provider"] for name, row in rows.items()} == {
        "source": "CPUExecutionProvider",
        "tensorrt": "TensorRT",
        "tensorrt_fp16": "TensorRT",
    }
    assert rows["tensorrt"]["layers"][0] == {"name": "pool", "kind": "Reduce", "precision": "FP16"}
    assert len(rows["tensorrt"]["layers"][1]["name"]) == 120

    made = conversion.variants.get(target="tensorrt_fp16").made
    assert {"model.onnx", "model.json", FILE} <= {entry["name"] for entry in made.files}
    assert made.facts["conversion"]["engine"]["card"] == fake_tensorrt.Card.name
    assert {"inference/kit/model_io/tensorrt.py", f"model/{FILE}"} <= {name for name, *_rest in entries(made, by=alice)}
    client.force_login(alice)
    page = client.get(reverse("inference:conversion-detail", args=[conversion.pk])).content.decode()
    assert "TensorRT 11.4.0.106 for NVIDIA Test-Card 80GB" in page

    engine, plain = Engine(made.path / "model.onnx"), Engine(made.path / "model.onnx", runtime="")
    feeds = {"images": np.random.default_rng(0).random((70, *engine.inputs[0].shape[1:]), np.float32)}
    assert (engine.provider, engine.inputs, engine.batches) == ("TensorRT", plain.inputs, True)
    for name, values in plain.run(feeds).items():  # 70 pictures go through an engine for 32
        np.testing.assert_allclose(engine.run(feeds)[name], values, atol=0.05)
    with pytest.raises(ValueError, match="takes float32"):
        engine.run({"images": feeds["images"].astype(np.float64)})

    monkeypatch.setattr(fake_tensorrt.Card, "name", "NVIDIA Other")
    assert Engine(made.path / "model.onnx").provider == "CPUExecutionProvider"
    assert "nvidia-other" in caplog.text
    assert "ONNX Runtime answers instead" in caplog.text

    archive = factory.zipped(made.path, tmp_path / "back.zip")
    again = registry.register_upload(user=alice, archive=archive, filename=archive.name, name="back")
    assert {entry["name"] for entry in again.files} == {"model.onnx", "model.json"}  # nobody brings an engine in


def test_engine_of_another_attempt_is_built_once_more_where_the_card_is_another(tmp_path, monkeypatch):
    from inference.conversion.converter import engines
    from inference.conversion.converter.build import Bench

    fake_tensorrt.installed(monkeypatch)
    folder = tiny.classifier(tmp_path / "net")
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(description | {"runtime": "tensorrt"}))
    samples = [{"images": np.zeros((1, 3, 8, 8), np.float32)}]
    bench = Bench(folder / "model.onnx", tmp_path, lambda: iter(samples))

    assert engines.build_engine("tensorrt", bench, folder)["engine"]["file"] == FILE

    assert engines.fits(folder)
    monkeypatch.setattr(fake_tensorrt.Card, "capability", (8, 6))
    assert not engines.fits(folder)
    (folder / FILE.replace("sm90", "sm86")).write_bytes(b"damaged")
    with pytest.raises(tensorrt.NotUsable, match="does not open"):
        Engine(folder / "model.onnx", strictly=True)


def test_engines_are_offered_only_where_a_machine_has_a_card(alice, tmp_path):
    model, data = factory.model_version(alice, tmp_path), judged.dataset_version(alice, tmp_path / "data")
    work.node("plain")
    assert "tensorrt" not in dict(target_words())
    with pytest.raises(DomainError, match="no node has one"):
        converted.submitted(alice, model, data, targets=("tensorrt",), gpus_per_node=0)
    work.node("cards", gpus=1)
    assert "tensorrt" in dict(target_words())
    with pytest.raises(DomainError, match="Request one GPU"):
        converted.submitted(alice, model, data, targets=("tensorrt",))


def test_jobs_say_what_to_install_and_what_to_ask_for(monkeypatch):
    fake_tensorrt.installed(monkeypatch)
    tensorrt.require()
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(tensorrt.NotUsable, match=r"pip install tensorrt, or choose an image"):
        tensorrt.require()
    monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(tensorrt.NotUsable, match=r"No card was granted\. Ask for one"):
        tensorrt.require()
