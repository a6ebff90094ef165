"""Every bench runs: a short form of each in `manage.py test --long`. What they measure is not judged here."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[1] / "bench"
#: bench → arguments of its short form.
SHORT: dict[str, list[str]] = {
    "annotation": ["500", "--exported", "2000"],
    "canary": ["--callers", "2"],
    "curves": ["4", "20000"],
    "datasets": ["--quick"],
    "edge": ["--devices", "20", "--rounds", "2", "--mib", "1"],
    "editor": [],
    "environments": ["--many", "4"],
    "experiments": ["--runs", "50", "--points", "500", "--long", "5000"],
    "hosts": ["--models", "2", "--rounds", "1", "--seconds", "0.5"],
    "images": ["--mb", "5", "--files", "200", "--starts", "2"],
    "logs": ["50", "200", "3"],
    "parsers": ["--short"],
    "pipelines": ["--runs", "20", "--items", "8"],
    "ports": [],
    "predict": ["--pictures", "32"],
    "presets": ["--overhead", "--rounds", "1", "--seconds", "1"],
    "progress": [],
    "recover": ["--rounds", "1", "--hogs", "0"],
    "reporting": [],
    "scaling": ["--wakes", "2", "--callers", "2"],
    "scheduler": [],
    "server": ["--rounds", "1", "--seconds", "0.5"],
    "simulate": ["1", "1"],
    "spine": ["--single", "3", "--burst", "20"],
    "ssh": ["--times", "4", "--mb", "5"],
    "start": ["--rounds", "1", "--only", "empty", "starts", "restarts", "ends"],
    "swap": ["--swaps", "1", "--callers", "2"],
    "video": ["--seconds", "4", "--seeds", "1"],
    "web": ["--people", "4", "--seconds", "5", "--times", "3", "--page-times", "2"],
}
#: Benches without a short form, with the reason.
LEFT_OUT = {
    "first_hour": "needs a folder of images",
    "grabcut": "needs OpenCV, which the platform does not use, and public data",
    "learning": "compares two checkouts",
    "scripts": "installs packages from an index",
    "studies": "trains for an hour; tests/studies runs a search",
}
TIMEOUT_S = 6000  # a bound for what hangs; less than the time of a test in the long form


def test_every_bench_has_a_short_form_or_a_reason_against_one():
    programs = {path.stem for path in BENCHES.glob("*.py") if 'if __name__ == "__main__"' in path.read_text()}

    assert programs - {"__main__"} == {*SHORT, *LEFT_OUT}


@pytest.mark.long
@pytest.mark.journey
@pytest.mark.parametrize("name", SHORT)
def test_bench_runs_in_its_short_form(name):
    with tempfile.TemporaryDirectory(prefix=f"aip-{name}-") as folder:  # tmp_path is too long for sockets
        try:
            done = subprocess.run(
                [sys.executable, "-m", f"tests.bench.{name}", *SHORT[name]], cwd=BENCHES.parents[1],
                env=os.environ | {"TMPDIR": folder}, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            )  # fmt: skip

            assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            assert not (left := _processes_in(folder)), f"still running: {left}"
        finally:
            for pid in _processes_in(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _processes_in(folder: str) -> dict[int, str]:
    """Processes that use a folder: pid → command, found by their command and environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_text(errors="replace")
                uses = folder in command or folder.encode() in (entry / "environ").read_bytes()
                if command and uses:  # that of a zombie is empty
                    found[int(entry.name)] = command.replace("\0", " ")
    return found
