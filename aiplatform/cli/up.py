"""`python3 manage.py up`: the whole platform on this machine, in one terminal."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from io import TextIOWrapper

from aiplatform import __version__, env
from aiplatform.cli import broker, children, node, output, space, web
from aiplatform.cli.backups.messages import UNFINISHED
from aiplatform.cli.processes import Process
from aiplatform.cli.runtime import MANAGE, Runtime

PORT_WAIT_S = 5.0
PROGRESS_S = 3.0
ANSWER_S = 10.0  # for one answer of the web server; then it is asked again


def main(argv: list[str]) -> int:
    """Parse the command line and run until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="manage.py up", description=__doc__)
    parser.add_argument(
        "--demo", action="store_true", help="create a small dataset and take it through all steps to a model"
    )
    parser.add_argument("--json", action="store_true", help="with --demo: end with one line of JSON")
    parser.add_argument("--exit", action="store_true", help="with --demo: stop everything when the demo is done")
    parser.add_argument("--bundle", metavar="FILE", help="install missing packages from this file, without a network")
    parser.add_argument("--host", default=env.HOST, help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=env.PORT, help="port to listen on (default %(default)s)")
    options = parser.parse_args(argv)
    if options.json:
        output.keep_stdout_for_programs()
    if env.problems:
        for _name, text in env.problems:
            output.line("up", text, colour="31")
        return 2
    # What this process imports and starts reads the same two.
    os.environ["AIP_HOST"], os.environ["AIP_PORT"] = options.host, str(options.port)
    try:
        lock = only_one()
    except BlockingIOError:
        print(f"The platform is already running on {env.DATA_ROOT} (its lock is held). Stop it first with Ctrl-C.")
        return 1
    except OSError as exc:
        if exc.errno in space.FULL:
            print(space.full_disk_text())
            return 1
        print(f"{env.DATA_ROOT} is not writable ({exc.strerror}). Set AIP_DATA_ROOT to one of your folders.")
        return 1
    with lock:
        if (env.DATA_ROOT / UNFINISHED).exists():
            print(f"A restore into {env.DATA_ROOT} was not completed. Empty the folder and restore again.")
            return 1
        try:
            return asyncio.run(_up(options))
        except broker.NoBroker as exc:
            print(exc)
            return 1
        except OSError as exc:
            if exc.errno not in space.FULL:
                raise
            print(space.full_disk_text())
            return 1


def only_one(name: str = "up.lock") -> TextIOWrapper:
    """Take the lock of this machine's own folder; the kernel releases it when this process ends."""
    if os.geteuid() == 0:  # users of jobs read what the platform writes; the data folder keeps others out
        os.umask(0o022)
    for folder in (env.DATA_ROOT, env.RUN_DIR, env.DATA_ROOT / "log"):
        folder.mkdir(parents=True, exist_ok=True)
    env.RUN_DIR.chmod(0o700)
    lock = (env.RUN_DIR / name).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise
    return lock


def close_to_others() -> None:
    """Remove permissions of other users from data folder and database; below, modes may be wider."""
    database = env.DATA_ROOT / "aiplatform.sqlite3"
    database_files = [database.with_name(database.name + end) for end in ("-wal", "-shm")]
    for path, allowed in ((env.DATA_ROOT, 0o7750), *((path, 0o640) for path in (database, *database_files))):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & ~allowed:
                path.chmod(mode & allowed)
        except FileNotFoundError:
            continue
        except OSError as exc:
            output.line(
                "up",
                f"{path} remains accessible to others ({exc.strerror}): chmod {allowed & 0o777:o} it.",
                colour="33",
            )


async def _listen(options: argparse.Namespace) -> socket.socket | None:
    """Bind the web server's port, or say why that is impossible and return None.

    An `up` that was killed may take a moment to release it.
    """
    deadline = time.monotonic() + PORT_WAIT_S
    while True:
        try:
            return web.listen(options.host, options.port)
        except OSError as exc:
            if time.monotonic() >= deadline:
                print(
                    f"Port {options.port} of {options.host} is not available ({exc.strerror}). Use another one: "
                    f"manage.py up --port {options.port + 1}"
                )
                return None
        await asyncio.sleep(0.1)


def _roles(options: argparse.Namespace, runtime: Runtime, listener: socket.socket) -> list[Process]:
    """Return everything that is forked, in the order it starts."""
    python, command = sys.executable, web.command(options.host, options.port)
    count = web.workers()
    return [
        *(
            runtime.role(
                f"web{number}" if count > 1 else "web", command, colour="36", variables=dict(web.ENVIRONMENT),
                listener=listener.fileno(),
                orphan_signal=signal.SIGKILL,  # one that finished its requests would keep the port from a new `up`
            )
            for number in range(1, count + 1)
        ),
        runtime.role("scheduler", [python, MANAGE, "scheduler"], colour="35"),
        *([runtime.role("ports", [python, MANAGE, "ports"], colour="36")] if env.PORTS_PORT else []),
        *([runtime.role("ssh", [python, MANAGE, "ssh_gateway"], colour="95")] if env.SSH_PORT else []),
        *node.processes(runtime),
    ]  # fmt: skip


async def _up(options: argparse.Namespace) -> int:
    started = time.monotonic()
    listener = await _listen(options)
    if listener is None:
        return 1
    os.environ["AIP_BOOTSTRAP"] = "0"
    runtime = Runtime()
    stopped = runtime.stop_requested
    code = 0
    try:
        output.line("up", f"aiplatform {__version__}, data in {env.DATA_ROOT}")
        runtime.start_fork_server()
        if env.REDIS_URL:
            threading.Thread(target=broker.report_until_it_answers, args=[env.REDIS_URL], daemon=True).start()
        if command := broker.command():
            runtime.keep_running(
                Process(
                    "broker", command, colour="90", quiet=_known_broker_noise, last=True, answers=broker.answers,
                    # One that took its time would take away the socket of the next one, and write into the same files.
                    orphan_signal=signal.SIGKILL,
                )
            )  # fmt: skip
        close_to_others()
        progress = asyncio.create_task(_report_progress(runtime))
        try:
            first_link = await runtime.prepare()
            if first_link is None:
                return 0 if stopped.is_set() else 1
            close_to_others()
            runtime.keep_running(*_roles(options, runtime, listener))
            if not await _answers(options, runtime):
                return 0 if stopped.is_set() else 1
        finally:
            progress.cancel()
        _greet(options, time.monotonic() - started, first_link)
        runtime.build_help()
        if options.demo:
            code = await _demo(options, runtime)
        if not (options.demo and options.exit):
            await stopped.wait()
        return code
    finally:
        output.line("up", "stopping; running jobs continue and are found again at the next start")
        await runtime.stop()
        listener.close()


async def _report_progress(runtime: Runtime) -> None:
    """Say every few seconds what the start is waiting for."""
    started = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_S)
        output.line("up", f"{time.monotonic() - started:.0f} s: {runtime.waiting_for()}")


def _known_broker_noise(text: str) -> bool:
    return "overcommit" in text or "oO0OoO0OoO0Oo" in text or text.startswith("*** ")


async def _answers(options: argparse.Namespace, runtime: Runtime) -> bool:
    """Wait until the web server answers.

    It waits for as long as web processes run. False when a stop was requested, when they keep ending before one has
    answered, or after AIP_READY_TIMEOUT_S where that is set.
    """
    url = f"{_address(options)}healthz"
    deadline = time.monotonic() + (env.READY_TIMEOUT_S or float("inf"))
    while not runtime.stop_requested.is_set():
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with asyncio.timeout(ANSWER_S):
                if await _is_healthy(_own_host(options), options.port):
                    return True
        if time.monotonic() >= deadline:
            output.line(
                "up", f"{url} did not respond within AIP_READY_TIMEOUT_S ({env.READY_TIMEOUT_S:.0f} s)", colour="31"
            )
            return False
        if runtime.fails_to_start("web"):
            output.line("up", "the web server exits repeatedly before it responds; see the lines above", colour="31")
            return False
        await asyncio.sleep(0.05)
    return False


async def _is_healthy(host: str, port: int) -> bool:
    """Ask `/healthz` over a connection of our own: clients of HTTP cost memory and follow proxies."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        status = await reader.readuntil(b"\r\n")
        return status.split()[1:2] == [b"200"]
    finally:
        writer.close()


def _own_host(options: argparse.Namespace) -> str:
    """The address at which this host reaches the web server."""
    return "127.0.0.1" if options.host in {"0.0.0.0", "::"} else str(options.host)  # noqa: S104 - compared, not bound


def _address(options: argparse.Namespace) -> str:
    host = _own_host(options)
    return f"http://[{host}]:{options.port}/" if ":" in host else f"http://{host}:{options.port}/"


def _greet(options: argparse.Namespace, seconds: float, first_link: str) -> None:
    base = (env.BASE_URL.rstrip("/") + "/") if env.BASE_URL else _address(options)
    output.line("up", output.paint(f"ready in {seconds:.0f} s at {base}", "1;32"))
    if first_link:
        link = base.rstrip("/") + first_link
        output.line("up", f"no administrator yet; this one-time link creates one: {link}", colour="1;33")
    if env.FAKE_GPUS:
        output.line("up", f"{env.FAKE_GPUS} simulated GPUs (AIP_FAKE_GPUS); jobs on them run on the CPU", colour="33")
    output.line("up", "Ctrl-C stops the platform; running jobs continue")


async def _demo(options: argparse.Namespace, runtime: Runtime) -> int:
    arguments = [sys.executable, MANAGE, "demo", "--url", _address(options), *(["--json"] if options.json else [])]
    process = subprocess.Popen(arguments)
    child = children.Child(process.pid, process.wait)
    stop = asyncio.create_task(runtime.stop_requested.wait())
    done = asyncio.create_task(child.wait())
    await asyncio.wait({stop, done}, return_when=asyncio.FIRST_COMPLETED)
    if not done.done():
        process.terminate()
    stop.cancel()
    return await done
