"""ONNX Runtime tells its maker nothing of our models: where it would, it leaves a number of the machine in the home."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("first", ["inference", "training.presets"])
def test_onnx_runtime_is_loaded_with_its_telemetry_off(tmp_path, first):
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", f"import {first}; import onnxruntime"]

    subprocess.run(command, env=environ, check=True, timeout=120)

    assert list(tmp_path.rglob("*")) == []
