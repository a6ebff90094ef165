"""The platform starts, and a machine joins, where no network leads outside.

With `AIP_TEST_BUNDLE=FILE` both are installed from that bundle first, into empty folders: minutes instead of seconds.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from aiplatform.cli.bundling import top
from tests import migrated, nodes
from tests.journeys.up import Up
from tests.running import HERE, PATIENCE, apart, ended_well, wait_for

GIVEN = os.environ.get("AIP_TEST_BUNDLE", "")
PLAIN_PYTHON = sys._base_executable  # that of the machine, with none of our packages
INSTALLED_S = 600.0
#: What is asked inside: whether anything outside can be reached, and whether the platform answers.
ASK = """
import socket, sys, urllib.request
try:
    socket.create_connection(("192.0.2.1", 80), 2)
    sys.exit("there is a network")
except OSError as exc:
    print(exc)
print(urllib.request.urlopen(sys.argv[1] + "/healthz", timeout=10).status)
"""


def unpacked(to: Path) -> Path:
    """The program that was packed, alone in a folder."""
    with tarfile.open(GIVEN) as tar:
        tar.extractall(to, filter="data")
    return to / top()


@pytest.mark.proof
def test_up_answers_where_there_is_no_network(tmp_path):
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("a network namespace needs root and iproute2")
    root, python, bootstrap = (
        (unpacked(tmp_path / "program"), PLAIN_PYTHON, "1") if GIVEN else (HERE, sys.executable, "0")
    )
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "alone"]

    if not GIVEN:  # migrations ask no network; `prepare` has a test of its own
        migrated.begin(tmp_path / "data")
    here = Up(tmp_path / "data", command=[*alone, python, str(root / "manage.py"), "up"], AIP_BOOTSTRAP=bootstrap)
    try:
        here.wait(r"ready in \d+ s", INSTALLED_S if GIVEN else 90)
        inside = ["nsenter", "--net", "--target", str(here.process.pid), sys.executable, "-c", ASK, here.url]
        answer = subprocess.run(inside, capture_output=True, text=True, timeout=60, check=True).stdout
    finally:
        here.stop()

    assert "unreachable" in answer
    assert answer.endswith("\n200\n")
    if GIVEN:
        assert (root / ".venv" / "aiplatform.origin").read_text().startswith("the bundle ")


@pytest.mark.proof
def test_join_installs_from_a_bundle_where_no_route_leads_outside(tmp_path):
    if why := nodes.why_not() or ("" if GIVEN else "AIP_TEST_BUNDLE names no bundle"):
        pytest.skip(why)
    told = tmp_path / "told.txt"
    ended_well(apart(__name__, f"join_from_a_bundle(Path({str(tmp_path)!r}))", told), told, INSTALLED_S * PATIENCE)


def join_from_a_bundle(folder: Path) -> None:
    """A server and an empty machine beside it, whose one wire leads to the server."""
    program = unpacked(folder / "program")
    shutil.rmtree(program / "bundle")  # so that `--bundle` is what it installs from
    with nodes.cluster(folder / "cluster") as cluster:
        empty = cluster.machine("empty")
        command = [PLAIN_PYTHON, str(program / "manage.py"), "join", "--bundle", GIVEN]
        empty.start("join", *command, "--server", cluster.address, "--token", cluster.token(), AIP_BOOTSTRAP="1")
        cluster.wait_state("empty", "live", seconds=INSTALLED_S)
        route = empty.run("ip", "route").stdout
        assert "default" not in route, route
        assert (program / ".venv" / "aiplatform.origin").read_text().startswith("the bundle ")
        assert empty.signal(signal.SIGINT, str(program), "join")
        wait_for(lambda: "stopping" in empty.said("join"), 30, empty.said("join"))
        print(empty.said("join"))
