"""A program in a fork of the process that has imported torch is what an interpreter of its own would be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import job_forks

REPORT = """
import json, os, signal, sys, threading
print(json.dumps({
    "argv": sys.argv, "path": sys.path[:2], "rest": sorted(set(sys.path[2:])), "folder": os.getcwd(),
    "env": {k: v for k, v in os.environ.items() if k not in ("LC_CTYPE", "OLDPWD", "SHLVL", "_")},
    "main": __name__, "spec": __spec__.name, "file": os.path.basename(__file__),
    "ours": sorted(n for n in sys.modules if n.split(".")[0] in ("aiplatform", "tests", "training", "inference")),
    "threads": threading.active_count(), "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "descriptors": [n for n in os.listdir("/proc/self/fd") if int(n) > 2 and os.path.exists(f"/proc/self/fd/{n}")],
}))
"""


def module(folder: Path, text: str) -> list[str]:
    (folder / "facts").mkdir(exist_ok=True)
    (folder / "facts" / "__init__.py").touch()
    (folder / "facts" / "report.py").write_text(text)
    return [sys.executable, "-m", "facts.report", "--words", "two words"]


@pytest.fixture
def env(tmp_path):
    return {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "AIP_PARAMS": "é", "PYTHONPATH": str(tmp_path / "more")}


def forked(argv: list[str], folder: Path, env: dict[str, str]) -> tuple[int, str]:
    assert job_forks.can_fork(argv, env)
    return job_forks.run(argv, cwd=folder, env=env, timeout_s=60)


def interpreted(argv: list[str], folder: Path, env: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def test_fork_has_the_state_of_an_interpreter_of_its_own(tmp_path, env):
    argv = module(tmp_path, REPORT)

    (code, fork), (_code, own) = forked(argv, tmp_path, env), interpreted(argv, tmp_path, env)

    assert code == 0
    assert json.loads(fork) == json.loads(own)


@pytest.mark.parametrize(
    ("text", "code", "last"),
    [
        ("raise SystemExit('stop')", 1, "stop"),
        ("import sys; sys.exit(7)", 7, ""),
        ("raise ValueError('wrong')", 1, "ValueError: wrong"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM, ""),
        ("import atexit; atexit.register(print, 'at the end'); print('first')", 0, "at the end"),
    ],
)
def test_fork_ends_as_an_interpreter_of_its_own_does(tmp_path, env, text, code, last):
    argv = module(tmp_path, text)

    ends = [run(argv, tmp_path, env) for run in (forked, interpreted)]

    assert [end[0] for end in ends] == [code, code]
    assert {"".join(end[1].splitlines()[-1:]) for end in ends} == {last}


def test_forks_share_no_random_numbers_and_read_changed_modules_again(tmp_path, env):
    text = "import numpy, random; print(numpy.random.random(), random.random())"
    first, second = (forked(module(tmp_path, text), tmp_path, env)[1] for _ in range(2))
    changed = forked(module(tmp_path, "print('changed')"), tmp_path, env)[1]

    assert len({*first.split(), *second.split()}) == 4
    assert changed == "changed\n"


def test_fork_has_torch_on_one_thread_and_a_session_of_its_own(tmp_path, env):
    text = """
import sys
had = "torch" in sys.modules
import os, torch
print(had, torch.get_num_threads(), os.getsid(0) == os.getpid())
"""

    assert forked(module(tmp_path, text), tmp_path, env) == (0, "True 1 True\n")


def test_program_with_other_threads_or_another_command_gets_an_interpreter(env):
    assert not job_forks.can_fork([sys.executable, "-m", "facts.report"], {**env, "OMP_NUM_THREADS": "2"})
    assert not job_forks.can_fork([sys.executable, "-c", "pass"], env)


def test_program_with_a_sitecustomize_module_gets_an_interpreter(tmp_path, env):
    (tmp_path / "more").mkdir()
    assert job_forks.can_fork([sys.executable, "-m", "facts.report"], env)

    (tmp_path / "more" / "sitecustomize.py").touch()

    assert not job_forks.can_fork([sys.executable, "-m", "facts.report"], env)


def test_program_that_takes_too_long_is_killed(tmp_path, env):
    with pytest.raises(subprocess.TimeoutExpired):
        job_forks.run(module(tmp_path, "import signal; signal.pause()"), cwd=tmp_path, env=env, timeout_s=0.2)
