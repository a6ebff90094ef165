"""Launchers with real programs: processes of two machines meet by gloo, by our launcher and by torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import free_port
from training.programs import launcher

pytestmark = [pytest.mark.proof, pytest.mark.sockets("processes that meet")]

SUM = """\
import datetime, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
told = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(told)
print("sum", told.item(), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("how", ["processes", "torchrun"])
def test_processes_of_two_machines_add_up(tmp_path, how):
    script = tmp_path / "sum.py"
    script.write_text(SUM)
    node = {"address": "127.0.0.1", "port": free_port()}
    layout = {
        "launcher": how, "processes": 2, "argv": [sys.executable, str(script)], "worker": [], "nodes": [node, node],
        "hostfile": str(tmp_path / "hostfile"),
    }  # fmt: skip
    file = tmp_path / "layout.json"
    file.write_text(json.dumps(layout))
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    machines = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", launcher.__file__, str(file)],
            env={"PATH": beside, "HOME": str(tmp_path), "AIP_NODE_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        for rank in (0, 1)
    ]
    said = [machine.communicate(timeout=240)[0] for machine in machines]

    assert [machine.returncode for machine in machines] == [0, 0], said
    assert [text.count("sum 10 of 4") for text in said] == [2, 2], said
