"""Packages: one command in an empty folder says what the service says."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from PIL import Image

from aiplatform.lib.errors import Invalid
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json
from inference.kit.models.standalone import Model
from inference.registry import packages
from inference.registry.models import ModelVersion
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.factories import models as factory

pytestmark = pytest.mark.django_db


def picture():
    pixels = np.random.default_rng(3).integers(0, 255, (90, 120, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def unpacked(client, version, folder):
    answer = client.get(f"/api/v1/model-versions/{version.pk}/package/")
    assert answer.status_code == 200
    data = b"".join(answer.streaming_content) if answer.streaming else answer.content
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)
    return data


def run(folder, *args):
    """Started from elsewhere by a Python that finds nothing of ours."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [sys.executable, "-P", str(folder / "run.py"), *map(str, args)]
    return subprocess.run(
        command, cwd=folder.parent, env=environ, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("task", ["classification", "detection", "segmentation", "keypoints", "embedding"])
def test_package_says_what_the_service_says(api, alice, tmp_path, task):
    version = factory.model_version(alice, tmp_path / "made", name=f"net_{task}", task=task)
    folder = tmp_path / "unpacked"
    unpacked(api, version, folder)
    (tmp_path / "one.png").write_bytes(picture())

    done = run(folder, tmp_path / "one.png")

    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    here = Model(version.path).predict(picture())
    assert content["task"] == task
    assert content["image"] == {"width": 120, "height": 90}
    _near(content["predictions"], json.loads(json.dumps(here["predictions"])))
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    lie = {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and "__pycache__" not in str(path)
    }
    assert set(sums) == lie - {"SHA256SUMS"}
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())


def _near(first, second):
    """Alike to 1e-3, however deep."""
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for key in first:
            _near(first[key], second[key])
    elif isinstance(first, list):
        assert len(first) == len(second)
        for left, right in zip(first, second, strict=True):
            _near(left, right)
    elif isinstance(first, float):
        assert first == pytest.approx(second, abs=1e-3)
    else:
        assert first == second


def test_alone_says_what_a_running_service_says(alice, tmp_path):
    """`Model.predict` against the server's own service, on the same folder."""
    version = factory.model_version(alice, tmp_path, task="detection")
    service = Service(Settings(version.path), model_json.load(version.path), Engine(version.path / "model.onnx"))

    async def predict():
        service.start()
        try:
            with service.on_its_way() as arrived:
                return await service.predict(picture(), Requested(), Call(time.monotonic() + 60), arrived)
        finally:
            await service.stop()

    assert asyncio.run(predict())["predictions"] == Model(version.path).predict(picture())["predictions"]


def test_package_is_the_same_each_time_and_says_what_is_missing(api, alice, tmp_path):
    version = factory.model_version(alice, tmp_path / "made", task="detection")
    first = unpacked(api, version, tmp_path / "a")
    second = unpacked(api, version, tmp_path / "b")

    assert first == second
    assert "Django" not in (tmp_path / "a" / "run.py").read_text()
    broken = run(tmp_path / "a", tmp_path / "none.png", "--score-threshold", "0.5")
    wrong = run(tmp_path / "a", tmp_path / "a" / "run.py")
    odd = run(tmp_path / "a", tmp_path / "none.png", "--score-threshold", "much")
    assert (broken.returncode, wrong.returncode, odd.returncode) == (1, 1, 2)
    assert "score_threshold" in odd.stderr
    assert "none.png" in broken.stderr


def test_package_takes_no_more_than_it_needs():
    names = set(packages.code())

    assert {"inference/kit/models/standalone.py", "inference/kit/task_kinds/detection/answer.py"} <= names
    assert not [
        name for name in names if name.endswith(("app.py", "service.py", "scoring.py", "models.py", "trainer.py"))
    ]


#: What agents of released versions import; in parts, so that no tool that renames modules changes it.
NAMES_OF_AGENTS = {
    "alone": "Model", "local": "Protocol", "decode": "open_image", "refusals": "Refusal", "requested": "Requested",
}  # fmt: skip


def test_package_keeps_the_names_that_agents_on_devices_import(api, alice, tmp_path):
    version = factory.model_version(alice, tmp_path / "made", task="detection")
    unpacked(api, version, tmp_path / "a")
    lines = [f"from {'inference'}.server.{name} import {member}" for name, member in NAMES_OF_AGENTS.items()]
    lines += ["import inference.kit.models.standalone as here", "import inference.kit.models.standalone as there"]
    code = "\n".join(["import sys", "sys.path.insert(0, '.')", *lines, "assert here is there"])

    done = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path / "a", capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert set(packages.AGENT_MODULES) == set(NAMES_OF_AGENTS)


def test_versions_without_a_description_become_no_package(api, bob, alice, tmp_path, client):
    version = factory.model_version(alice, tmp_path, task="detection")
    client.force_login(bob)
    assert client.get(f"/models/versions/{version.pk}/package/").status_code == 404
    client.force_login(alice)
    assert client.get(f"/models/versions/{version.pk}/package/").status_code == 200
    ModelVersion.objects.filter(pk=version.pk).update(task="tensor")
    version.refresh_from_db()

    with pytest.raises(Invalid):
        packages.entries(version, by=alice)
    assert api.get(f"/api/v1/model-versions/{version.pk}/package/").status_code == 400
