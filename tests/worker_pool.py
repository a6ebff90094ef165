"""Run the tests of one pytest session in forked workers: `--workers 2`.

The parent imports Django and collects all tests once, then forks the workers, which share what it imported. A worker
takes one test file after another from the parent's queue, so fixtures of a module stay valid, and sends each report
back; the parent alone writes to the terminal. A worker that dies fails the test that it ran and is replaced.

Why not pytest-xdist: aiplatform/docs/decisions/0028-forked-test-workers.md.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import selectors
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

#: Tests of these marks get workers of their own: Playwright keeps an event loop in the thread of a test.
SEPARATE = ("browser",)
#: Seconds a test is expected to take, by its marks; files that take long run first.
EXPECTED_S = {"proof": 5.0, "browser": 3.0, "sockets": 0.5}
#: Seconds a worker may take to end its fixtures after it was told to stop.
STOP_S = 15.0
#: Workers that may die without running a test before the session gives up.
MAX_DEATHS_AT_START = 3
PR_SET_PDEATHSIG = 1


class WorkerSpecs:
    """Hooks of this plugin."""

    @pytest.hookspec
    def pytest_worker_start(self, config: pytest.Config, name: str) -> None:
        """Prepare a forked worker before its first test."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(WorkerSpecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers", type=int, default=0, metavar="N", help="run the tests in N forked processes; 0: in this process"
    )


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process is a forked worker."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the collected tests in workers, unless that is not possible or not requested."""
    option = session.config.option
    if not option.workers or option.collectonly or option.usepdb or session.testsfailed or not session.items:
        return None
    Pool(session, option.workers).run()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


@dataclass
class Group:
    """Tests of one file, as positions in `session.items`."""

    kind: str
    expected_s: float
    positions: list[int] = field(default_factory=list)


def group_items(items: Iterable[pytest.Item]) -> list[Group]:
    """Group tests by file and kind of worker, files that take long first."""
    groups: dict[tuple[Path, str], Group] = {}
    for position, item in enumerate(items):
        marks = {mark.name for mark in item.iter_markers()}
        kind = next((name for name in SEPARATE if name in marks), "")
        group = groups.setdefault((item.path, kind), Group(kind, 0.0))
        group.positions.append(position)
        group.expected_s += max((EXPECTED_S.get(name, 0.0) for name in marks), default=0.0) or 0.1
    return sorted(groups.values(), key=lambda group: -group.expected_s)


@dataclass
class Worker:
    """A forked process, as the parent sees it."""

    name: str
    kind: str
    pid: int
    pidfd: int
    pipe: Connection
    group: list[int] = field(default_factory=list)  # tests it has not finished
    started: set[int] = field(default_factory=set)
    finished: bool = False


class Pool:
    """The queue of test files, and the workers that take from it."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self.session, self.config, self.count = session, session.config, count
        self.queue = deque(group_items(session.items))
        self.workers: dict[str, Worker] = {}
        self.selector = selectors.DefaultSelector()
        self.crashes: Counter[int] = Counter()
        self.deaths_at_start = 0
        self.names = 0

    def run(self) -> None:
        """Run all tests; return when the last worker has ended."""
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.showfspath = False  # files of several workers interleave
        self.config._tmp_path_factory.getbasetemp()  # workers have folders below it
        try:
            while self.workers or self.queue:
                while self.queue and len(self.workers) < self.count and not self._is_stopping():
                    self._start_worker(self.queue[0].kind)
                if not self.workers:
                    return
                for key, _events in self.selector.select(timeout=5):
                    worker, source = key.data
                    if worker.name in self.workers:
                        self._read(worker) if source == "pipe" else self._end(worker)
                if self._is_stopping():
                    return
        finally:
            self._stop_workers()
            self.selector.close()

    def _is_stopping(self) -> bool:
        return bool(self.session.shouldfail or self.session.shouldstop)

    def _start_worker(self, kind: str) -> None:
        check_forkable()
        name = f"gw{self.names}"
        self.names += 1
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # collecting in a worker would otherwise write to, and so copy, all pages of the parent
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            ours.close()
            _run_worker(self.session, name, theirs, parent)
        theirs.close()
        worker = Worker(name, kind, pid, os.pidfd_open(pid), ours)
        self.workers[name] = worker
        self.selector.register(ours, selectors.EVENT_READ, (worker, "pipe"))
        self.selector.register(worker.pidfd, selectors.EVENT_READ, (worker, "process"))

    def _read(self, worker: Worker) -> None:
        """Handle what a worker has sent."""
        try:
            while worker.pipe.poll():
                self._handle(worker, *worker.pipe.recv())
        except (EOFError, OSError, pickle.UnpicklingError):
            self._end(worker)

    def _handle(self, worker: Worker, kind: str, *content: Any) -> None:
        hook = self.config.hook
        if kind == "idle":
            group = next((group for group in self.queue if group.kind == worker.kind), None)
            if group is not None:
                self.queue.remove(group)
                worker.group = list(group.positions)
            with contextlib.suppress(OSError):  # it died; `_end` returns the tests to the queue
                worker.pipe.send(worker.group if group is not None else None)
        elif kind == "start":
            worker.started.add(content[0])
        elif kind == "done":
            worker.group.remove(content[0])
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=self.config, data=content[0])
            # pytest prints what xdist puts there: the name with -v, a line of information above a failure
            report.node = SimpleNamespace(gateway=SimpleNamespace(id=worker.name), _workerinfocache=worker.name)
            hook.pytest_runtest_logreport(report=report)
        elif kind == "logfinish":
            hook.pytest_runtest_logfinish(nodeid=content[0], location=content[1])
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=content[0])
        elif kind == "problem":
            self._report_problem(worker, content[0])
        elif kind == "finished":
            worker.finished = True

    def _end(self, worker: Worker) -> None:
        """Forget a worker whose process has ended; return the tests that it did not run to the queue."""
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            while worker.pipe.poll():
                self._handle(worker, *worker.pipe.recv())
        if not worker.finished:  # a worker that closed its pipe without a word is not worth waiting for
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)
        _pid, status = os.waitpid(worker.pid, 0)
        self._forget(worker)
        if not worker.finished:
            self._handle_crash(worker, os.waitstatus_to_exitcode(status))

    def _forget(self, worker: Worker) -> None:
        del self.workers[worker.name]
        self.selector.unregister(worker.pipe)
        self.selector.unregister(worker.pidfd)
        worker.pipe.close()
        os.close(worker.pidfd)

    def _handle_crash(self, worker: Worker, code: int) -> None:
        end = f"worker {worker.name} " + (
            f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited: {code}"
        )
        running = next((position for position in worker.group if position in worker.started), None)
        if running is None:
            self.deaths_at_start += 1
            self._report_problem(worker, f"{end} between two tests")
            if self.deaths_at_start >= MAX_DEATHS_AT_START:
                raise RuntimeError(f"{end}, as did others before it; no test can run")
        else:
            item = self.session.items[running]
            self.crashes[running] += 1
            again = self.crashes[running] <= (getattr(self.config.option, "reruns", None) or 0)
            report = pytest.TestReport(
                nodeid=item.nodeid, location=item.location, keywords={}, when="call", longrepr=f"{end} in this test",
                outcome="rerun" if again else "failed",
            )  # fmt: skip
            report.rerun = self.crashes[running] - 1
            self.config.hook.pytest_runtest_logreport(report=report)
            if not again:
                worker.group.remove(running)
        if worker.group:
            self.queue.appendleft(Group(worker.kind, 0.0, worker.group))

    def _report_problem(self, worker: Worker, text: str) -> None:
        """Fail the session by what went wrong outside of a test, for instance at the end of a session fixture."""
        report = pytest.TestReport(
            nodeid=f"worker {worker.name}", location=("", None, f"worker {worker.name}"), keywords={},
            outcome="failed", longrepr=text, when="teardown",
        )  # fmt: skip
        self.config.hook.pytest_runtest_logreport(report=report)

    def _stop_workers(self) -> None:
        """End the workers that are left after an error, Ctrl-C or the last failure allowed."""
        for worker in self.workers.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGINT)
        deadline = time.monotonic() + STOP_S
        for worker in list(self.workers.values()):
            while not os.waitpid(worker.pid, os.WNOHANG)[0]:
                with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
                    while worker.pipe.poll():
                        worker.pipe.recv()  # a full pipe would block the worker
                if time.monotonic() > deadline:
                    os.kill(worker.pid, signal.SIGKILL)
                time.sleep(0.02)  # pause: no event covers both a pipe and the end of its process
            self._forget(worker)


def check_forkable() -> None:
    """Refuse to fork while there are threads or database connections, which a child cannot use.

    Raises:
        RuntimeError: names them.
    """
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    native = len(os.listdir("/proc/self/task")) - 1
    if threads or native:
        raise RuntimeError(
            f"Collecting the tests started {max(native, len(threads))} threads ({', '.join(threads) or 'native'}); "
            "start them in a fixture, so that workers can be forked."
        )
    django = sys.modules.get("django.db")
    connections = django.connections.all(initialized_only=True) if django else []
    if opened := [one.alias for one in connections if one.connection is not None]:
        raise RuntimeError(f"Collecting the tests opened the database {', '.join(opened)}; open it in a fixture.")


def _run_worker(session: pytest.Session, name: str, pipe: Connection, parent: int) -> None:
    """Run tests as the parent hands them out, then end this process."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets background jobs ignore it
    code = 1
    try:
        if os.getppid() == parent:
            sender = _Sender(session.config, pipe)
            _separate(session.config, name, sender)
            _work(session, pipe)
            sender.send("finished")
            code = 0
    except BaseException:
        with contextlib.suppress(Exception):
            pipe.send(("problem", traceback.format_exc()))
    finally:
        os._exit(code)  # what the parent registered for its own end is not for this process


def _separate(config: pytest.Config, name: str, sender: _Sender) -> None:
    """Give a worker its own folders, capture and plugins."""
    config.workerinput = {"workerid": name}  # pytest-django names the database by it
    factory = config._tmp_path_factory
    factory._basetemp = factory.getbasetemp() / name
    factory._basetemp.mkdir(mode=0o700)
    factory._exit_stack = ExitStack()
    factory._next_number = {}
    plugins = config.pluginmanager
    reruns = plugins.get_plugin("rerunfailures")
    if reruns is not None:  # it drops the first report of a repeated test in a worker where pytest-xdist is missing
        reruns.works_with_current_xdist = lambda: True
    capture = plugins.get_plugin("capturemanager")
    if capture is not None and capture.is_globally_capturing():  # the parent's files have one position for all workers
        capture.suspend_global_capture(in_=True)
        capture.read_global_capture()
        capture.stop_global_capturing()
        capture.start_global_capturing()
    terminal = plugins.unregister(name="terminalreporter")
    if terminal is not None:  # others write to it in emergencies, and look up what failed
        plugins.register(SimpleNamespace(_tw=terminal._tw, stats={}), "terminalreporter")
    plugins.register(sender, "worker")
    config.hook.pytest_worker_start(config=config, name=name)


def _work(session: pytest.Session, pipe: Connection) -> None:
    try:
        while not session.shouldfail and not session.shouldstop:
            pipe.send(("idle",))
            group = pipe.recv()
            if group is None:
                break
            # The session follows the last test: fixtures of the module end with it, those of the session do not.
            following: list[Any] = [*(session.items[position] for position in group[1:]), session]
            for position, nextitem in zip(group, following, strict=True):
                item = session.items[position]
                pipe.send(("start", position))
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
                pipe.send(("done", position))
                if session.shouldfail or session.shouldstop:
                    break
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    session.config.hook.pytest_sessionfinish(session=session, exitstatus=pytest.ExitCode.OK)


class _Sender:
    """A plugin of a worker: sends reports and warnings to the parent."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self.config, self.pipe = config, pipe

    def send(self, kind: str, *content: Any) -> None:
        self.pipe.send((kind, *content))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        try:
            self.send("report", data)
        except (pickle.PicklingError, TypeError, AttributeError):  # a plugin has put an object of its own there
            self.send("report", {key: value for key, value in data.items() if _is_plain(value)})

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.send("logfinish", nodeid, location)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        text = warnings.WarningMessage(
            message=Warning(str(warning_message.message)), category=Warning,
            filename=warning_message.filename, lineno=warning_message.lineno,
        )  # fmt: skip
        self.send("warning", {"warning_message": text, "when": when, "nodeid": nodeid, "location": location})


def _is_plain(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True
