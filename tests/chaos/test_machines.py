"""Three machines: joining, working, power cuts, cut cables, a killed database. `pytest -m chaos`."""

import subprocess

import pytest

from tests import nodes
from tests.chaos import machines


@pytest.mark.chaos
def test_a_cluster_of_three_outlives_its_machines(tmp_path):
    if why := nodes.why_not():
        pytest.skip(why)
    out = tmp_path / "told.txt"
    process = machines.apart(tmp_path / "cluster", machines.SHORT, out)
    try:
        code = process.wait(600)
    except subprocess.TimeoutExpired:
        code = "no end"
        process.terminate()
    print(out.read_text())
    assert code == 0, out.read_text()[-8000:]
