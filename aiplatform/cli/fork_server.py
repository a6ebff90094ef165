"""Fork server: `python -m aiplatform.cli.fork_server FD`, a Python with the platform imported that becomes its roles.

Importing the platform costs seconds of CPU time and about 200 MiB for each process. This process pays once; web
servers, scheduler, agent and workers are forks of it: a tenth of a second each, and they share its memory until they
write to it. `gc.freeze` keeps the collector from writing to what they share.

A fork copies one thread and every open connection, so before each fork there must be no other thread, no socket but
the control channel, and no event loop: `violations` finds them, and the request is refused.
What needs a command line or libraries of its own is not forked: the broker, supervisors of jobs (stdlib only; forked by
`workers/supervisor/fork_server.py`), and jobs themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from aiplatform.lib import parenthood
from aiplatform.lib.process_title import set_title

MESSAGE_BYTES = 256 * 1024
REFUSED = 70  # exit code where a fork would be unsafe: this process was used for more than importing
#: Imported before the first fork in addition to settings, URLs and Celery tasks: what roles would import as they run.
MODULES = (
    "aiplatform.asgi",
    "aiplatform.lib.plain_cache",
    "aiplatform.lib.celery_worker",
    "billiard.popen_fork",
    "billiard.sharedctypes",
    "celery.app.control",
    "celery.app.log",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.bin.worker",
    "celery.concurrency.prefork",
    "celery.concurrency.solo",
    "celery.worker.components",
    "celery.worker.loops",
    "celery.worker.pidbox",
    "celery.worker.strategy",
    "celery.worker.worker",
    "django.contrib.sessions.serializers",
    "django.core.management.commands.migrate",
    "granian.server.embed",
    "kombu.transport.redis",
    "uvloop",
    "aiplatform.management.commands.prepare",
    "workers.management.commands.agent",
    "workers.management.commands.exec_relay",
    "workers.management.commands.scheduler",
    "workers.access.proxy.management.commands.ports",
    "workers.access.ssh.management.commands.ssh_gateway",
)
TITLE = (sys.executable, "-m", "aiplatform.cli.fork_server")
_SOCKET, _EVENT_LOOP = "socket:", "anon_inode:[eventpoll]"
_M_ARENA_MAX = -8
#: Memory that one thread freed serves the others: each heap of its own would keep what it once needed.
ARENAS = 2
_libc = ctypes.CDLL(None)


def main(argv: Sequence[str]) -> int:
    """Import the platform, then fork a role for each request until the other end of the channel is closed."""
    control = socket.socket(fileno=int(argv[1]))
    control.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # `up` decides when this process ends
    started = time.monotonic()
    preload(lambda stage: _send(control, {"stage": stage}))
    set_title(TITLE)
    _send(control, {"ready": round(time.monotonic() - started, 2)})
    return serve(control, is_warm=False)


def serve(control: socket.socket, *, is_warm: bool) -> int:
    """Fork a process for each request that comes through the channel, until its other end is closed."""
    while True:
        try:
            data, descriptors, _flags, _sender = socket.recv_fds(control, MESSAGE_BYTES, 2)
        except ConnectionError:
            return 0
        if not data:
            return 0
        request = json.loads(data)
        if "output" in request:  # this was the spare
            _take_output(descriptors[0])
            continue
        if problems := violations(control.fileno(), descriptors):
            _send(control, {"id": request["id"], "error": f"A fork would be unsafe: {'; '.join(problems)}."})
            return REFUSED
        intermediate = os.fork()
        if intermediate == 0:
            _start_role(control, request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        os.waitpid(intermediate, 0)
        if not is_warm:  # the first request is for the preparation of the database, which runs meanwhile
            warm()
            is_warm = True


def preload(report: Any = lambda _stage: None) -> None:
    """Import everything that roles need; no connection, thread or event loop comes into being.

    Args:
        report: called with the name of each stage as it starts.
    """
    gc.disable()
    # Pools of threads that numerical libraries make as they are imported could not be forked.
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import django

    report("importing apps")
    django.setup(set_prefix=False)
    from aiplatform.lib import messages

    messages.compile_quietly()
    report("importing pages")
    from django.urls import get_resolver

    get_resolver()._populate()
    for name in MODULES:
        importlib.import_module(name)
    report("importing tasks")
    from aiplatform.celery import app

    app.loader.import_default_modules()
    app.finalize()
    _fill_model_caches()
    if threads is None:
        del os.environ["OPENBLAS_NUM_THREADS"]
    else:
        os.environ["OPENBLAS_NUM_THREADS"] = threads
    _freeze()


def warm() -> None:
    """Load what requests share: templates, addresses, texts, static files."""
    if "aiplatform.asgi" in sys.modules:
        from aiplatform.web import warmup

        warmup.warm()
        _freeze()


def _freeze() -> None:
    """Keep the collector from looking through, and so from copying, what roles share."""
    gc.collect()
    _libc.malloc_trim(0)
    gc.freeze()


def _fill_model_caches() -> None:
    """Compute once what Django computes at the first query of a model: 5 MiB and 0.2 s in each process otherwise."""
    from django.apps import apps
    from django.core.exceptions import EmptyResultSet

    for model in apps.get_models(include_auto_created=True):
        options = model._meta
        options.get_fields(include_hidden=True)
        for name in ("related_objects", "fields_map", "_forward_fields_map", "concrete_fields", "many_to_many"):
            getattr(options, name)
        with contextlib.suppress(EmptyResultSet):
            str(model._default_manager.all().query)  # compiles; asks no database


def violations(control: int, descriptors: Sequence[int] = ()) -> list[str]:
    """Return what forbids a fork now: threads, sockets, event loops, database connections.

    Args:
        control: the channel to `up`.
        descriptors: those of the request, which the forked process will own.
    """
    problems = []
    tasks = len(list(Path("/proc/self/task").iterdir()))
    if tasks != 1:
        problems.append(f"{tasks} threads")
    for entry in Path("/proc/self/fd").iterdir():
        number = int(entry.name)
        if number == control or number in descriptors or number <= 2:
            continue
        try:
            target = str(entry.readlink())
        except OSError:  # the directory itself
            continue
        if target.startswith(_SOCKET):
            problems.append(f"descriptor {number} is a socket")
        elif target == _EVENT_LOOP:
            problems.append(f"descriptor {number} is an event loop")
    if asyncio._get_running_loop() is not None:
        problems.append("an event loop is running")
    if "django.db" in sys.modules:
        from django.db import connections

        problems += [
            f"database connection “{connection.alias}” is open"
            for connection in connections.all(initialized_only=True)
            if connection.connection is not None
        ]
    return problems


def _start_role(control: socket.socket, request: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """In the intermediate process: fork the role, so that the kernel gives it to `up` when this process ends."""
    intermediate = os.getpid()
    if os.fork():
        os._exit(0)
    code = 1
    try:
        while os.getppid() == intermediate:
            time.sleep(0.0005)
        parenthood.die_with_parent(signal.Signals(request["orphan_signal"]))
        if os.getppid() != request["parent"]:
            os._exit(1)  # `up` has ended meanwhile
        try:
            _send(control, {"id": request["id"], "pid": os.getpid()})
        except OSError:  # `up` has given up this server
            os._exit(1)
        control.close()
        if "spare" in request:
            os.setsid()
            _take_output(descriptors[0])
            channel = socket.socket(fileno=descriptors[1])
            channel.set_inheritable(False)
            _end(serve(channel, is_warm=True))
        code = run(request["argv"], request["env"], descriptors)
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        if isinstance(exc.code, str):
            print(exc.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - the end of the process: report it as the interpreter does
        traceback.print_exc()
    finally:
        _end(code)


def run(argv: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> int:
    """Be the process that `argv` names: session, output, environment, title, and its main module."""
    os.setsid()
    _take_output(descriptors[0])
    os.environ.update(environment)
    os.environ["CELERY_SKIP_CHECKS"] = "1"  # of all models, in each worker; the gate runs them
    if len(descriptors) > 1:
        os.environ["AIP_LISTENER_FD"] = str(descriptors[1])
    _libc.mallopt(_M_ARENA_MAX, ARENAS)  # as MALLOC_ARENA_MAX, which the C library has read before
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if generator := sys.modules.get("numpy.random"):
        generator.seed()  # Python's own generator is seeded again by the interpreter
    set_title(argv)
    gc.enable()
    if argv[1] == "-m":
        sys.argv = [argv[2], *argv[3:]]  # runpy puts the file's path first
        runpy.run_module(argv[2], run_name="__main__", alter_sys=True)
    else:
        from django.core.management import get_commands, load_command_class

        sys.argv = list(argv[1:])
        load_command_class(get_commands()[argv[2]], argv[2]).run_from_argv(sys.argv)
    return 0


def _take_output(descriptor: int) -> None:
    """Make a descriptor standard output and standard error."""
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _end(code: int) -> NoReturn:
    """End like an interpreter: wait for threads, run exit handlers, flush; but leave the server's loop alone."""
    import atexit
    import threading

    try:
        threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter itself calls at its end
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _send(control: socket.socket, message: Mapping[str, object]) -> None:
    control.send(json.dumps(message).encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv))
