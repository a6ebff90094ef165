"""A package's lines in other languages: made of its model.json; those in C++ compiled, with the numbers of run.py.

ONNX Runtime's headers are no package of Python's, so the lines that call it are not compiled here: what stands before
and after them is, and gets the outputs of the same engine in Python.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inference.kit.model_io import decode
from inference.kit.model_io.engine import Engine
from inference.kit.models import model_json
from inference.kit.models.standalone import Model
from inference.registry.snippets import generation
from tests.inference import drawn_models, tiny

HERE = Path(__file__).parent
COMPILER = shutil.which("c++")


def test_lines_are_made_for_classes_tags_and_boxes_of_whole_pictures(tmp_path):
    models = drawn_models.folders(tmp_path)

    for folder in models.values():
        assert set(generation.files(folder)) == {"use/predict.js", "use/predict.cpp"}
    for name, made in {"map": tiny.segmenter, "point": tiny.pointer, "vector": tiny.embedder}.items():
        assert generation.files(made(tmp_path / name)) == {}
    assert generation.files(tiny.identity(tmp_path / "tensors")) == {}


def test_names_of_classes_stay_words_in_both_languages(tmp_path):
    """Quotes, letters of other scripts and what would end a script stand as they are read, not as they are run."""
    folder = drawn_models.folders(tmp_path)["yolo"]
    made = generation.files(folder)
    script, program = (made[f"use/predict.{ending}"].decode() for ending in ("js", "cpp"))

    described = script.partition("const MODEL = ")[2].partition(";\n")[0]
    assert tuple(entry["name"] for entry in json.loads(described)["classes"]) == drawn_models.NAMES
    assert "</b>" not in script
    assert r'{2, "gr\303\274n \042x\042"}' in program
    assert program.isascii()


def lines_of(folder, path, run):
    """What the compiled lines say of a picture, given the outputs of the engine."""
    spec, engine = model_json.load(folder), Engine(folder / "model.onnx", threads=1)
    sample, _placement = decode.preprocess(decode.open_image(path.with_suffix(".png").read_bytes()), spec.input)
    prepared = np.frombuffer(run("prepare", path).stdout, np.float32).reshape(sample.shape)
    assert np.abs(prepared - sample).max() < 1e-6
    outputs = engine.run({spec.input.name: prepared[None]})
    args = []
    for role, name in spec.outputs.items():
        value = np.ascontiguousarray(np.asarray(outputs[name], np.float32)[0])
        (folder / f"{role}.f32").write_bytes(value.tobytes())
        args += [role, ",".join(map(str, value.shape)), folder / f"{role}.f32"]
    return json.loads(run("read", path, *args).stdout)


@pytest.mark.long
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (c++)")
def test_predict_cpp_says_what_run_py_says(tmp_path):
    pictures = []
    for width, height in ((120, 90), (33, 57), (7, 5)):
        path = tmp_path / f"{width}x{height}.ppm"
        data = drawn_models.picture(width, height)
        path.with_suffix(".png").write_bytes(data)
        Image.open(io.BytesIO(data)).save(path)
        pictures.append(path)
    models = drawn_models.folders(tmp_path / "models")
    for name in ("tags", "classes_letterbox", "boxes_letterbox", "yolov5", "detr"):  # each is compiled
        folder = models[name]
        (folder / "predict.cpp").write_bytes(generation.files(folder)["use/predict.cpp"])
        shutil.copy(HERE / "predict_alone.cpp", folder)
        command = [COMPILER, "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "predict_alone.cpp", "-o", "alone"]
        subprocess.run(command, cwd=folder, check=True)

        def run(*args, folder=folder):
            return subprocess.run([folder / "alone", *map(str, args)], check=True, capture_output=True)

        for path in pictures:
            here = json.loads(json.dumps(Model(folder).predict(path.with_suffix(".png").read_bytes())))
            near(lines_of(folder, path, run), here, name)


def near(first, second, name):
    """Alike to 1e-3, however deep."""
    if isinstance(second, dict):
        assert first.keys() == second.keys(), name
        for key in second:
            near(first[key], second[key], f"{name}.{key}")
    elif isinstance(second, list):
        assert len(first) == len(second), name
        for index, (left, right) in enumerate(zip(first, second, strict=True)):
            near(left, right, f"{name}[{index}]")
    elif isinstance(second, float):
        assert first == pytest.approx(second, abs=1e-3), name
    else:
        assert first == second, name
