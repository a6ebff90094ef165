"""Fork server for programs of jobs: `python -m tests.job_forks FD`, a Python with torch imported.

A program that trains or serves a model pays more than a CPU second for the import of torch. A fork of this process
starts with the same command line, environment, folder and module search path as an interpreter of its own, in its own
session, and imports all modules of ours itself. Only torch, numpy and Pillow are there already.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from django.conf import settings

from aiplatform.cli import fork_server
from aiplatform.lib.process_title import set_title
from tests.forking import HERE, Forked, Forks

PROGRAM = "tests.job_forks"
LIBRARIES = ("numpy", "numpy.random", "PIL.Image", "torch", "torch.nn", "torch.optim")
#: Names the working folder in a request; no program sees it.
FOLDER = "AIP_TEST_FOLDER"
#: What a library reads as it is imported; a program that sets another value gets an interpreter of its own.
THREADS = "OMP_NUM_THREADS"


class Program(Forked):
    """A program in a fork, with the parts of `subprocess.Popen` that tests of jobs use."""

    stdout: Any = None

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        if kind is not None:  # a test that fails does not wait for the end of a training
            self.kill()
        if self.stdout is not None:
            self.stdout.close()
        self.wait()

    def wait_for(self, seconds: float) -> int | None:
        """Wait until it ends: its exit code, None where that takes longer."""
        if self.poll() is None:
            ended = os.pidfd_open(self.pid)
            try:
                select.select([ended], [], [], seconds)
            finally:
                os.close(ended)
        return self.poll()

    def communicate(self) -> tuple[str, None]:
        log = self.stdout.read()
        self.stdout.close()
        self.wait()
        return log, None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


_servers: dict[int, Forks] = {}


def can_fork(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether a fork can replace this command line: a module of this Python, on one thread like the server.

    A fork takes over PYTHONPATH, but only a new interpreter imports a `sitecustomize` module from it.
    """
    folders = env.get("PYTHONPATH", "").split(os.pathsep)
    customized = any((Path(folder) / "sitecustomize.py").exists() for folder in folders if folder)
    return list(argv[:2]) == [sys.executable, "-m"] and env.get(THREADS) == "1" and not customized


def start(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: int) -> Program:
    """Start a program; `output` takes its standard output and standard error and stays open here."""
    server = _servers.get(os.getpid())  # a forked test worker needs its own: roles become children of who asked
    if server is None:
        log = Path(settings.DATA_ROOT) / "job-forks.txt"  # of this test worker
        log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, THREADS: "1", "AIP_BOOTSTRAP": "0"}
        server = _servers[os.getpid()] = Forks(log, program=PROGRAM, environment=environment, kind=Program)
        atexit.register(server.close)
    program = server.fork(argv, output=output, environment={**env, FOLDER: str(cwd)})
    assert isinstance(program, Program)
    return program


def run_module(argv: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> int:
    """Be the program that `python -m MODULE …` would be in that folder with that environment alone."""
    os.setsid()
    os.dup2(descriptors[0], 1)
    os.dup2(descriptors[0], 2)
    os.close(descriptors[0])
    own = set(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))) | {"", str(HERE)}
    folder = environment[FOLDER]
    os.environ.clear()
    os.environ.update({name: value for name, value in environment.items() if name != FOLDER})
    os.chdir(folder)
    more = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [folder, *more, *(entry for entry in sys.path if entry not in own)]
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.partition(".")[0] in {"aiplatform", "tests"}]:
        del sys.modules[name]  # a job imports what its folder and its path hold
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.modules["numpy.random"].seed()
    set_title(argv)
    gc.enable()
    sys.argv = [argv[2], *argv[3:]]
    runpy.run_module(argv[2], run_name="__main__", alter_sys=True)
    return 0


def _preload(report: Any) -> None:
    report("importing torch")
    gc.disable()
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> tuple[int, str]:
    """Run a program to its end: exit code, and what it wrote to standard output and standard error.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        program = start(argv, cwd=cwd, env=env, output=log.fileno())
        code = program.wait_for(timeout_s)
        if code is None:
            program.kill()
            program.wait()
            raise subprocess.TimeoutExpired(list(argv), timeout_s)
        log.seek(0)
        return code, log.read()


if __name__ == "__main__":
    fork_server.preload = _preload
    fork_server.warm = lambda: None
    fork_server.run = run_module
    sys.exit(fork_server.main(sys.argv))
