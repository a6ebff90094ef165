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
import time
import urllib.error
import urllib.request
from io import TextIOWrapper

from aiplatform import __version__, env
from aiplatform.cli import broker, node, output, web
from aiplatform.cli.processes import Process, ProcessSupervisor
from aiplatform.cli.safekeeping.words import UNFINISHED
from aiplatform.lib import messages

MANAGE = str(env.BASE_DIR / "manage.py")
READY_TIMEOUT_S = 90
PORT_WAIT_S = web.KILL_TIMEOUT_S + 2.0


def main(argv: list[str]) -> int:
    """Parse the command line and run until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="manage.py up", description=__doc__)
    parser.add_argument("--demo", action="store_true", help="make a small data set and take it all the way to a model")
    parser.add_argument("--json", action="store_true", help="with --demo: end with one line of JSON")
    parser.add_argument("--exit", action="store_true", help="with --demo: stop everything when the demo is done")
    parser.add_argument("--bundle", metavar="FILE", help="install what is missing from this file, without a network")
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
        print(f"The platform is already up on {env.DATA_ROOT} (its lock is held). Stop it first with Ctrl-C.")
        return 1
    except OSError as exc:
        print(f"{env.DATA_ROOT} cannot be written ({exc.strerror}). Set AIP_DATA_ROOT to a folder of yours.")
        return 1
    with lock:
        if (env.DATA_ROOT / UNFINISHED).exists():
            print(f"A restore into {env.DATA_ROOT} did not end. Empty the folder and restore again.")
            return 1
        try:
            return asyncio.run(_up(options))
        except broker.NoBroker as exc:
            print(exc)
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
    """Take from data folder and database what others may; inside that door modes may be wide."""
    database = env.DATA_ROOT / "aiplatform.sqlite3"
    beside = [database.with_name(database.name + end) for end in ("-wal", "-shm")]
    for path, most in ((env.DATA_ROOT, 0o7750), *((path, 0o640) for path in (database, *beside))):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & ~most:
                path.chmod(mode & most)
        except FileNotFoundError:
            continue
        except OSError as exc:
            output.line("up", f"{path} stays open to others ({exc.strerror}): chmod {most & 0o777:o} it.", colour="33")


def _port_is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host if host != "localhost" else "127.0.0.1", port))
        except OSError:
            return False
    return True


async def _port_becomes_free(host: str, port: int) -> bool:
    """Wait for a web server that ends because its `up` was killed; who else has the port keeps it."""
    deadline = time.monotonic() + PORT_WAIT_S
    while not _port_is_free(host, port):
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(0.1)
    return True


def _manage(*arguments: str) -> str:
    """Run one management command to its end; its failure ends `up` with the command's output."""
    done = subprocess.run([sys.executable, MANAGE, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr)
        raise SystemExit(f"`manage.py {' '.join(arguments)}` failed; see above.")
    return done.stdout


def _plan(options: argparse.Namespace) -> list[Process]:
    """Return everything that runs beside the broker, in the order it starts."""
    python = sys.executable
    server = web.command(options.host, options.port, web.workers())
    processes = [
        Process("web", server, env=dict(web.ENVIRONMENT), colour="36", grace_s=5),
        Process("scheduler", [python, MANAGE, "scheduler"], colour="35"),
        *([Process("ports", [python, MANAGE, "ports"], colour="36", grace_s=5)] if env.PORTS_PORT else []),
        *([Process("ssh", [python, MANAGE, "ssh_gateway"], colour="95", grace_s=5)] if env.SSH_PORT else []),
        *node.processes(),
    ]
    for process in processes:
        process.env.setdefault("AIP_BOOTSTRAP", "0")
    return processes


async def _up(options: argparse.Namespace) -> int:
    started = time.monotonic()
    if not await _port_becomes_free(options.host, options.port):
        print(
            f"Port {options.port} of {options.host} is taken. Give another one: manage.py up --port {options.port + 1}"
        )
        return 1
    os.environ["AIP_BOOTSTRAP"] = "0"
    supervisor = ProcessSupervisor()
    processes: list[Process] = []
    loop = asyncio.get_running_loop()
    wanted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, wanted.set)
    code = 0
    try:
        if command := broker.command():
            server = Process(
                "broker", command, colour="90", quiet=_known_broker_noise, last=True, answers=broker.answers,
                # One that took its time would take away the socket of the next one, and write into the same files.
                orphan_signal=signal.SIGKILL,
            )  # fmt: skip
            supervisor.keep(server)
            processes.append(server)
        output.line("up", f"aiplatform {__version__}, data in {env.DATA_ROOT}")
        close_to_others()
        first_link = (await asyncio.to_thread(_manage, "prepare")).strip()
        close_to_others()
        messages.compile_all()
        plan = await asyncio.to_thread(_plan, options)
        for process in plan:
            supervisor.keep(process)
        processes += plan
        if not await _answers(options, wanted):
            return 0 if wanted.is_set() else 1
        _greet(options, time.monotonic() - started, first_link)
        if options.demo:
            code = await _demo(options, wanted)
        if not (options.demo and options.exit):
            await wanted.wait()
        return code
    finally:
        output.line("up", "stopping; running jobs go on and are found again at the next start")
        await supervisor.stop(processes)


def _known_broker_noise(text: str) -> bool:
    return "overcommit" in text or "oO0OoO0OoO0Oo" in text or text.startswith("*** ")


async def _answers(options: argparse.Namespace, wanted: asyncio.Event) -> bool:
    """Wait until the web server answers; False when it does not in time or a stop was requested."""
    url = f"{_address(options)}healthz"
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline and not wanted.is_set():
        with contextlib.suppress(OSError, urllib.error.URLError):
            await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=2).read())  # noqa: S310 - our own address
            return True
        await asyncio.sleep(0.2)
    if not wanted.is_set():
        output.line("up", f"{url} did not answer within {READY_TIMEOUT_S} s; see the lines above", colour="31")
    return False


def _address(options: argparse.Namespace) -> str:
    host = "127.0.0.1" if options.host in {"0.0.0.0", "::"} else options.host  # noqa: S104 - shown, not bound
    return f"http://{host}:{options.port}/"


def _greet(options: argparse.Namespace, seconds: float, first_link: str) -> None:
    base = (env.BASE_URL.rstrip("/") + "/") if env.BASE_URL else _address(options)
    output.line("up", output.paint(f"ready in {seconds:.0f} s at {base}", "1;32"))
    if first_link:
        link = base.rstrip("/") + first_link
        output.line("up", f"no administrator yet; this link makes one, once: {link}", colour="1;33")
    if env.FAKE_GPUS:
        output.line("up", f"{env.FAKE_GPUS} simulated GPUs (AIP_FAKE_GPUS); jobs on them run on the CPU", colour="33")
    output.line("up", "Ctrl-C stops the platform; jobs in progress go on")


async def _demo(options: argparse.Namespace, wanted: asyncio.Event) -> int:
    arguments = [sys.executable, MANAGE, "demo", "--url", _address(options), *(["--json"] if options.json else [])]
    process = await asyncio.create_subprocess_exec(*arguments)
    stop = asyncio.create_task(wanted.wait())
    done = asyncio.create_task(process.wait())
    await asyncio.wait({stop, done}, return_when=asyncio.FIRST_COMPLETED)
    if not done.done():
        process.terminate()
    stop.cancel()
    return await done
