"""`aip models` against the real API."""

from __future__ import annotations

import pytest
import torch

from aiplatform.client import tus, waiting
from datasets.files import homes
from inference.conversion.models import Conversion
from inference.registry.models import ModelTask, ModelVersion
from tests.datasets.helpers import uploaded
from tests.factories import models as factory
from tests.factories import work
from tests.inference import converted, foreign, judged, seeing, tiny, tried
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db


def test_cli_lists_models_with_the_first_of_their_figures(real_aip, alice, tmp_path, capfd):
    version = factory.model_version(alice, tmp_path)
    type(version).objects.filter(pk=version.pk).update(
        metrics={"val/ap": 0.54321, "val/ap50": 0.9, "val/ap75": 0.25, "val/loss": 1.0}
    )

    assert real_aip(alice, "models", "list") == 0

    printed = capfd.readouterr().out
    assert "val/ap 0.543, val/ap50 0.900, val/ap75 0.250" in printed
    assert "val/loss" not in printed


def test_cli_moves_stage_and_alias_and_finds_versions_by_alias(real_aip, alice, tmp_path, capfd):
    version = factory.model_version(alice, tmp_path)
    factory.model_version(alice, tmp_path, model=version.model)

    assert real_aip(alice, "model", "alias", "cells:1", "champion") == 0
    assert real_aip(alice, "model", "stage", "cells@champion", "approved", "--reason", "It is good.") == 0
    assert real_aip(alice, "model", "list", "--stage", "approved", "--alias", "champion") == 0
    assert real_aip(alice, "model", "history", "cells") == 0
    assert real_aip(alice, "model", "stage", "cells@nobody", "approved", "--reason", "x") == 5
    assert real_aip(alice, "model", "alias", "cells", "champion", "--remove") == 0

    printed = capfd.readouterr()
    assert "champion=v1" in printed.out
    assert "why=It is good." in printed.out
    assert "Model cells has no alias nobody. Available aliases: champion." in printed.err
    version.refresh_from_db()
    assert version.stage == "approved"
    assert not version.aliases.exists()


def test_cli_brings_in_a_model_with_labels_and_adds_a_version(real_aip, alice, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(tus, "upload", lambda _client, path, **_: uploaded(alice, path.read_bytes(), path.name).pk)
    path = foreign.net(tmp_path / "net.onnx", {"answer": foreign.LOGITS})
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    said = ("--task", "classification", "--labels", tmp_path / "labels.txt", "--pixels", "unit")

    assert real_aip(alice, "models", "import", "pets", path, *said) == 0
    assert real_aip(alice, "models", "import", "pets", path, *said, "--layout", "probabilities") == 0
    assert real_aip(alice, "models", "import", "pets", path, *said[:2]) == 2
    assert real_aip(alice, "models", "import", "pets") == 2

    versions = ModelVersion.objects.order_by("number")
    printed = capfd.readouterr()
    assert [(one.model.name, one.number, one.task) for one in versions] == [
        ("pets", 1, "classification"),
        ("pets", 2, "classification"),
    ]
    assert [one["name"] for one in versions[0].classes] == ["cat", "dog"]
    assert "pets v2 is in the registry" in printed.out + printed.err
    assert "Name the classes of the model (2)" in printed.err
    assert "task classification (entered)" in printed.out + printed.err


def test_cli_prints_what_was_detected_in_a_model_without_a_description(real_aip, alice, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(tus, "upload", lambda _client, path, **_: uploaded(alice, path.read_bytes(), path.name).pk)
    path = seeing.model(tmp_path / "net.onnx", "yolo")

    assert real_aip(alice, "models", "import", "finder", path) == 0

    printed = "".join(capfd.readouterr())
    assert "finder v1 is in the registry: tensor." in printed
    assert "pixels unit (guess)" in printed
    assert "Guesses are not used." in printed


def test_cli_brings_in_what_lies_in_the_home_or_in_outputs(real_aip, alice, cluster, tmp_path, capfd):
    tiny.classifier(homes.home_of(alice) / "net")
    job = work.job(alice, cluster, state="succeeded")
    tiny.detector(RunDir.for_attempt(job.pk, 1).outputs / "model")
    torch.save({"w": torch.zeros(2)}, homes.home_of(alice) / "w.pth")

    assert real_aip(alice, "models", "import", "a", "--home", "net") == 0
    assert real_aip(alice, "models", "import", "b", "--job", job.pk) == 0
    assert real_aip(alice, "models", "import", "c", "--home", "w.pth") == 0
    assert real_aip(alice, "models", "import", "d", "--home", "gone") == 2

    assert {one.model.name: one.source for one in ModelVersion.objects.all()} == {"a": "files", "b": "job"}
    task = ModelTask.objects.get()
    assert f"Job {task.job_id} reads the files" in "".join(capfd.readouterr())


def test_cli_shows_what_was_measured(real_aip, alice, tmp_path, capfd):
    version = factory.model_version(alice, tmp_path)

    assert real_aip(alice, "models", "measure", "cells", "--list") == 0
    assert real_aip(alice, "models", "measure", "cells", "--no-wait") == 0
    task = ModelTask.objects.get()
    ModelTask.objects.filter(pk=task.pk).update(figures={"p50_ms": 4.25, "images_per_s": 900.5, "node": "box-7"})
    assert real_aip(alice, "models", "measure", f"{version.model.name}:1", "--list") == 0

    printed = "".join(capfd.readouterr())
    assert "Not measured yet." in printed
    assert f"Job {task.job_id} measures it" in printed
    assert "box-7" in printed
    assert "4.25 ms" in printed
    assert "900.5 images/s" in printed


def test_cli_converts_a_version_and_keeps_a_variant(real_aip, alice, tmp_path, capfd):
    factory.model_version(alice, tmp_path)
    data = judged.dataset_version(alice, tmp_path / "data")

    asked = ("--data", data.pk, "--to", "fp16", "--looks", "8", "--keep", "none", "--split", "test")
    assert real_aip(alice, "models", "convert", "cells:1", *asked) == 0
    conversion = Conversion.objects.get()
    assert conversion.params["targets"] == ["fp16"]
    assert real_aip(alice, "models", "conversion", conversion.pk) == 0
    converted.ran(conversion)
    assert real_aip(alice, "models", "conversion", conversion.pk) == 0
    assert real_aip(alice, "models", "conversions") == 0
    assert real_aip(alice, "models", "keep", conversion.pk, "fp16") == 0
    assert real_aip(alice, "models", "convert", "cells:2", *asked) != 0

    printed = capfd.readouterr()
    assert "No variants yet." in printed.err
    assert "fp16: accepted" in printed.out
    assert "fp16 is cells v2." in printed.out + printed.err
    assert "is itself a conversion. Convert its source version." in printed.err


def test_cli_tries_a_model_shows_its_ways_and_uses_one(real_aip, alice, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(tus, "upload", lambda _client, path, **_: uploaded(alice, path.read_bytes(), path.name).pk)
    monkeypatch.setitem(waiting.until_over.__kwdefaults__, "pause", lambda _s: tried.over(ModelTask.objects.get()))
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    (tmp_path / "p.png").write_bytes(seeing.picture())
    (tmp_path / "labels.txt").write_text("\n".join(seeing.CLASSES))

    assert real_aip(alice, "models", "try", path) == 2
    said = ("--picture", tmp_path / "p.png", "--labels", tmp_path / "labels.txt", "--name", "finder")
    assert real_aip(alice, "models", "try", path, *said) == 0
    task = ModelTask.objects.get()
    assert real_aip(alice, "models", "ways", task.pk) == 0
    assert real_aip(alice, "models", "use", task.pk, 1) == 0
    assert real_aip(alice, "models", "use", task.pk, 1) != 0

    printed = capfd.readouterr()
    assert "YOLOv8 and later" in printed.out
    assert "pixels: 0 to 1, letterbox" in printed.out
    assert "dog 0.90" in printed.out
    assert f"aip models use {task.pk} 1 creates a version" in printed.out
    assert "was already created from this test. Open it, or import the" in printed.err
    version = ModelVersion.objects.get()
    assert (version.model.name, version.source) == ("finder", "import")
