"""`python3 manage.py join`: make this machine a node of a platform on another machine.

The first time with `--server` and `--token`; what the server answers is kept in `node.env` (0600) beneath the
node's own folder, so that `join` alone is enough from then on.

Most of the platform is imported inside functions: `aiplatform.env` reads the environment as it is imported, and `load`
must have filled it before.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import socket
import sys
import time
import traceback
from pathlib import Path
from urllib.parse import urlsplit

from aiplatform.cli import output
from aiplatform.cli.server import Refused, post, probe, see_answer

CLOCK_S = 5.0
AGAIN_S = 10.0


def main(argv: list[str]) -> int:
    """Join where a token is given, check this machine, run its processes until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="manage.py join", description=__doc__)
    parser.add_argument("--server", metavar="URL", help="address of the platform, as typed in a browser")
    parser.add_argument("--token", help="one-time token from the page Nodes or `manage.py node-token`")
    parser.add_argument("--name", help="name of this node in the cluster (default: its host name)")
    parser.add_argument("--address", help="address of this node for other nodes (default: detected)")
    parser.add_argument("--data-root", type=Path, help="the shared folder (default: AIP_DATA_ROOT)")
    parser.add_argument("--bundle", metavar="FILE", help="install missing packages from this file, without a network")
    parser.add_argument("--once", action="store_true", help="join and check, then exit")
    options = parser.parse_args(argv)
    if bool(options.server) != bool(options.token):
        parser.error("--server and --token must be used together")
    if options.data_root:
        os.environ["AIP_DATA_ROOT"] = str(options.data_root)
    name = options.name or os.environ.get("AIP_NODE") or os.uname().nodename.split(".")[0]
    folder = state_folder(name)
    os.environ.update({"AIP_NODE": name, "AIP_RUN_DIR": str(folder)})
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if options.token:
            exchange(options, name, folder)
        load(folder)
        return _serve(options, folder)
    except Refused as exc:
        output.line("join", str(exc), colour="31")
        return 1
    except OSError as exc:
        output.line("join", f"{exc.filename or folder}: {exc.strerror or exc}", colour="31")
        return 1


def state_folder(name: str) -> Path:
    """Return this host's own folder, never below the shared one, where others could read its secrets."""
    if configured := os.environ.get("AIP_RUN_DIR"):
        return Path(configured).expanduser().resolve()
    if os.geteuid() == 0:
        return Path("/var/lib/aiplatform") / name
    return Path("~/.local/state/aiplatform").expanduser() / name


def exchange(options: argparse.Namespace, name: str, folder: Path) -> None:
    """Prove that the data root is the server's, send the token, store the response.

    Raises:
        Refused: with the server's sentence, or our own.
    """
    server = options.server.rstrip("/")
    root = os.environ.get("AIP_DATA_ROOT")
    if not root:
        raise Refused("Specify the mount point of the shared folder: --data-root PATH, or AIP_DATA_ROOT.")
    if not Path(root).is_dir():
        raise Refused(f"{root} is not a folder on this node. Mount the shared folder of the platform there first.")
    address = options.address or address_towards(server)
    with probe(Path(root)) as (file, content):
        begun = time.time()
        body = {
            "token": options.token,
            "name": name,
            "machine": _machine(folder),
            "address": address,
            "probe": file.name,
            "content": content,
        }
        answer = post(f"{server}/api/v1/nodes/join/", body)
        middle = (begun + time.time()) / 2
        see_answer(file, content)
    apart = float(answer.get("time", middle)) - middle
    if abs(apart) > CLOCK_S:
        output.line(
            "join", f"this clock differs by {apart:+.0f} s from the server; synchronize it with NTP", colour="33"
        )
    variables = {**answer["variables"], "AIP_DATA_ROOT": str(Path(root).resolve()), "AIP_SERVER": server}
    save(folder, variables)
    output.line("join", f"{name} joined {server} as node {answer['node']}; settings in {folder / 'node.env'}")


def address_towards(server: str) -> str:
    """Return our own address on the route to the server."""
    parts = urlsplit(server)
    if not parts.hostname:
        raise Refused(f"{server} is not a valid address. Write it as in a browser, for example http://server:8000.")
    try:
        address = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_DGRAM)[0]
        with socket.socket(address[0], socket.SOCK_DGRAM) as route:
            route.connect(address[4])
            return str(route.getsockname()[0])
    except OSError as exc:
        raise Refused(f"{parts.hostname} not found ({exc}). Specify the address of this node with --address.") from exc


def save(folder: Path, variables: dict[str, str]) -> None:
    """Write `node.env`, readable by this user only; a service manager can read it too."""
    for key, value in variables.items():
        if not key.startswith("AIP_") or any(ord(letter) < 32 for letter in value):
            raise Refused(f"The server sent an invalid setting: {key[:40]}")
    part = folder / ".node.env"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(f"{key}={value}\n" for key, value in sorted(variables.items()) if value)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / "node.env")


def load(folder: Path) -> None:
    """Put the stored settings into the environment; variables set by hand win.

    Raises:
        Refused: this machine has not joined yet.
    """
    try:
        lines = (folder / "node.env").read_text().splitlines()
    except FileNotFoundError:
        raise Refused("This computer is not a node yet: specify --server and --token (from the page Nodes).") from None
    for line in lines:
        key, equals, value = line.partition("=")
        if equals and key == "AIP_NODE":
            os.environ[key] = value  # as the server spells it
        elif equals and key.startswith("AIP_"):
            os.environ.setdefault(key, value)
    os.environ["AIP_NODE_JOINED"] = "1"
    os.environ["AIP_BOOTSTRAP"] = "0"


def load_if_joined() -> None:
    """Load the node's settings for other commands on a machine that joined."""
    folder = state_folder(os.environ.get("AIP_NODE") or os.uname().nodename.split(".")[0])
    if (folder / "node.env").exists():
        os.environ["AIP_RUN_DIR"] = str(folder)
        load(folder)


def _machine(folder: Path) -> str:
    """See workers.resources.nodes.lifecycle.machine_id, which reads the same file."""
    from aiplatform.lib import installation_secrets as kept

    return hashlib.sha256(kept.load_or_create(folder / "machine_id").encode()).hexdigest()


def _serve(options: argparse.Namespace, folder: Path) -> int:
    """Check this machine, then run the node's processes until Ctrl-C."""
    from aiplatform import env

    if env.problems:
        raise Refused(" ".join(text for _name, text in env.problems))
    while not _is_fit_in_child():
        if options.once:
            raise Refused("Fix the problems marked above, then run `manage.py join` again; no new token is needed.")
        output.line("join", f"checking again in {AGAIN_S:.0f} s; Ctrl-C stops", colour="33")
        time.sleep(AGAIN_S)
    if options.once:
        return 0
    from aiplatform.cli.up import only_one

    try:
        lock = only_one("join.lock")
    except BlockingIOError:
        raise Refused(
            f"This node is already running (the lock in {folder} is held). Stop it first with Ctrl-C."
        ) from None
    with lock:
        return asyncio.run(_run_node(env.NODE))


def _is_fit_in_child() -> bool:
    """`_is_fit` in a process of its own, whose memory is free afterwards: this one lives as long as the node."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            import django

            django.setup()
            code = 0 if _is_fit() else 1
        except Exception:  # noqa: BLE001 - the end of the process
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    _pid, status = os.waitpid(child, 0)
    return status == 0


def _is_fit() -> bool:
    """Whether this machine can be a node; prints what is missing. The server may come back after a power cut."""
    from django.db import connection

    from aiplatform.cli import doctor

    fit = True
    for finding in doctor.examine(doctor.NODE_CHECKS):
        if finding.level != doctor.OK:
            colour = "31" if finding.level == doctor.FAIL else "33"
            output.line("join", f"{finding.what}: {finding.text} → {finding.remedy}", colour=colour)
            fit = fit and finding.level != doctor.FAIL
    connection.close()
    return fit


async def _run_node(name: str) -> int:
    from aiplatform.cli import node
    from aiplatform.cli.runtime import Runtime

    runtime = Runtime(owns_database=False)
    runtime.start_fork_server()
    runtime.keep_running(*await asyncio.to_thread(node.processes, runtime))
    output.line("join", output.paint(f"node {name} is up; Ctrl-C stops it, running jobs continue", "1;32"))
    try:
        waiting = [asyncio.create_task(event.wait()) for event in (runtime.stop_requested, runtime.supervisor.refused)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if runtime.supervisor.refused.is_set():
            output.line("join", "this node was removed from the cluster; see the line above", colour="31")
            return node.REFUSED_CODE
        return 0
    finally:
        output.line("join", "stopping; running jobs continue and are found again at the next start")
        await runtime.stop()
