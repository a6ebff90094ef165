"""What a model's files say of it reaches pages and lists of everybody who may see it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from inference.registry import registration as registry
from inference.registry.formats.folder import survey
from inference.registry.formats.onnx import RefusedModel
from tests.factories import models as factory
from tests.inference import tiny

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

HUGE = 10**400


def described(folder, **more):
    tiny.detector(folder)
    spec = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(spec | more))
    return folder


#: Names and values that no database and no JSON holds; one version carries all of them.
FIGURES = {"nan": float("nan"), "infinity": float("inf"), "huge": HUGE, "\ud800": 1, "\0": 1}


@pytest.mark.parametrize("field", ["metrics", "verify", "speed", "params"])
def test_j05_public_model_breaks_no_list_and_no_page_by_its_figures(alice, bob, as_bob, tmp_path, field):
    folder = described(tmp_path / "x", **{field: FIGURES | ({} if field == "params" else {"good": 0.5})})
    archive = factory.zipped(folder, tmp_path / "x.zip")

    version = registry.register_upload(user=alice, archive=archive, filename="x.zip", name="n", visibility="public")

    for url in ("/models/", f"/models/{version.model_id}/", "/api/v1/models/", f"/api/v1/models/{version.model_id}/"):
        assert as_bob.get(url).status_code == 200
    stored = {
        "metrics": version.metrics,
        "verify": version.facts.get("verify"),
        "speed": version.facts.get("speed"),
        "params": version.params,
    }[field]
    assert stored == ({} if field == "params" else {"good": 0.5})


def test_j05_survey_leaves_out_parameters_that_nest_without_end(tmp_path):
    deep = json.loads("[" * 900 + "]" * 900)

    assert survey(described(tmp_path, params={"a": deep})).params == {}


@pytest.mark.parametrize("what", [
    {"architecture": "\ud800"}, {"preset": "a\0b"}, {"classes": [{"id": 0, "name": "\ud800"}]},
    {"classes": [{"id": HUGE, "name": "a"}]}, {"task": ["detection"]}, {"task": {}},
], ids=["architecture", "preset", "class", "class-id", "task-list", "task-object"])  # fmt: skip
def test_j05_survey_refuses_a_description_that_cannot_be_kept(tmp_path, what):
    with pytest.raises(RefusedModel):
        survey(described(tmp_path, **what))


def test_survey_leaves_out_a_file_whose_name_is_no_text(tmp_path):
    tiny.detector(tmp_path)
    (tmp_path / os.fsdecode(b"\xff.txt")).touch()

    assert set(survey(tmp_path).files) == {"model.onnx", "model.json"}


@pytest.mark.parametrize("name", ["d", "ddddd"])
def test_survey_ends_in_folders_deeper_than_programs_descend(tmp_path, monkeypatch, name):
    folder = tmp_path / "model"
    tiny.detector(folder)
    monkeypatch.chdir(folder)
    try:
        for _level in range(1500):
            os.mkdir(name)
            os.chdir(name)
        assert set(survey(folder).files) == {"model.onnx", "model.json"}
    finally:
        monkeypatch.undo()
        subprocess.run(["/bin/rm", "-rf", str(folder)], check=True)  # Python's own rmtree does not get down there


def test_survey_refuses_more_files_than_a_model_has(tmp_path, monkeypatch):
    monkeypatch.setattr("inference.registry.formats.folder.MAX_FILES", 1)

    with pytest.raises(RefusedModel, match="more than 1 files"):
        survey(tiny.detector(tmp_path))
