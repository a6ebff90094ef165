"""`aip ssh`, `aip port-forward`: reach a job by your own key or a one-time password, with the gateway's key known."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiplatform.client import output
from aiplatform.client.errors import OK, USAGE, ClientError
from aiplatform.client.options import either, flag, option, repeated
from aiplatform.client.verbs import Verb

EXAMPLES = """\
  aip ssh 12
  aip ssh 12 -- nvidia-smi
  aip ssh -N -L 8888:localhost:8888 12
  aip ssh --print 12          the command for another terminal, or for scp and rsync
  aip ssh --config 12 >> ~/.ssh/config

Options are written before the job number, as with ssh.
Your SSH key opens the job; without one a password is made for this sign-in alone."""
PASSWORD = "AIP_SSH_ONCE"  # noqa: S105 - the variable by which it reaches ssh
ASKPASS = f"#!/bin/sh\nprintf '%s\\n' \"${PASSWORD}\"\n"


def _connect(args: argparse.Namespace) -> int:
    """Run ssh and end with its code, which is that of the command."""
    if args.words and args.words[0] != "--" and args.words[0].startswith("-"):
        raise ClientError(f"Write {args.words[0]} before the job number, as in: aip ssh -N -D 1080 12", USAGE)
    number = args.job.removeprefix("job-")
    if not number.isdecimal():
        raise ClientError(f"{args.job} is not a job number. See: aip jobs list", USAGE)
    entry = args.client.get(f"jobs/{number}/ssh/")
    if args.json:
        output.as_json(entry)
        return OK
    if not entry["enabled"]:
        raise ClientError("This installation offers no SSH (AIP_SSH_PORT is 0).")
    if args.print or args.config:
        print(output.clean(entry["command"]) if args.print else _lines(entry["config"]))
        return OK
    program = shutil.which("ssh")
    if program is None:
        raise ClientError("ssh is not installed. Install the OpenSSH client.")
    secret = "" if args.key_only else args.client.post(f"jobs/{number}/ssh/passwords/")["password"]
    with tempfile.TemporaryDirectory(prefix="aip-ssh-") as folder:
        argv = [program, *_options(args), *_known(entry, Path(folder)), "-p", str(entry["port"])]
        argv += ["-l", str(entry["login"]), "--", str(entry["host"]), *_command(args.words)]
        return _run(argv, _environment(secret, Path(folder)))


def _forward(args: argparse.Namespace) -> int:
    """Keep ports of the job open on this computer until Ctrl+C."""
    pairs = [_ports(text) for text in args.ports]
    args.N, args.t, args.R, args.D, args.words = True, False, None, None, []
    args.print = args.config = False
    args.L = [f"{local}:localhost:{port}" for local, port in pairs]
    for local, _port in pairs:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", local)) == 0:
                raise ClientError(f"Port {local} of this computer is in use. Choose another: OTHER:{_port}", USAGE)
    if not args.json:
        for local, port in pairs:
            output.say(f"http://localhost:{local} leads to port {port} of job {args.job}. Press Ctrl+C to stop.")
    return _connect(args)


def _ports(text: str) -> tuple[int, int]:
    """Return the local port and that of the job of "8080" or "9000:8080"."""
    local, _colon, port = text.rpartition(":")
    numbers = [int(part) for part in (local or port, port) if part.isdecimal() and 0 < int(part) < 65536]
    if len(numbers) != 2:
        raise ClientError(f"{text}: write a port as 8080, or LOCAL:PORT as 9000:8080.", USAGE)
    return numbers[0], numbers[1]


def _lines(text: str) -> str:
    return "\n".join(output.clean(line) for line in text.splitlines())


def _options(args: argparse.Namespace) -> list[str]:
    flags = [f"-{name}" for name in "Nt" if getattr(args, name)]
    forwards = [word for name in "LRD" for port in getattr(args, name) or () for word in (f"-{name}", port)]
    strict = ["-o", "ExitOnForwardFailure=yes"] if forwards else []
    return [*flags, *forwards, *strict, "-o", "NumberOfPasswordPrompts=1"]


def _known(entry: Any, folder: Path) -> list[str]:
    """The gateway's key as the platform told it, so that nobody has to say yes to a stranger's."""
    if not entry["known_host"]:
        return []
    file = folder / "known_hosts"
    file.write_text(f"{entry['known_host']}\n")
    return ["-o", f"UserKnownHostsFile={file}", "-o", "StrictHostKeyChecking=yes"]


def _environment(secret: str, folder: Path) -> dict[str, str]:
    """Let ssh ask us for the password where no key opens the job."""
    if not secret:
        return dict(os.environ)
    asker = folder / "askpass"
    asker.write_text(ASKPASS)
    asker.chmod(0o700)
    return os.environ | {PASSWORD: secret, "SSH_ASKPASS": str(asker), "SSH_ASKPASS_REQUIRE": "force"}


def _command(words: Sequence[str]) -> list[str]:
    command = words[1:] if words[:1] == ["--"] else words
    return [command[0] if len(command) == 1 else shlex.join(command)] if command else []


def _run(argv: Sequence[str], env: dict[str, str]) -> int:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # ssh hears it too, and decides
    try:
        heard: dict[str, Any] = {"preexec_fn": _hear_interrupts} if os.name == "posix" else {}
        return subprocess.run(argv, env=env, check=False, **heard).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


NOUNS = {
    "ssh": Verb("ssh", "Open a shell in a running job, or run a command there.", (
        option("job", help="job number"),
        option("words", nargs=argparse.REMAINDER, metavar="-- COMMAND …", help="a command instead of a shell"),
        repeated("-L", metavar="PORT:HOST:PORT", help="forward a port of the job to this computer"),
        repeated("-R", metavar="PORT:HOST:PORT", help="forward a port of this computer to the job"),
        repeated("-D", metavar="PORT", help="a SOCKS proxy into the job"),
        flag("-N", help="forward ports, run no command"),
        flag("-t", help="a terminal for the command"),
        flag("--key-only", help="create no password"),
        either(flag("--print", help="print the command only"),
               flag("--config", help="print lines for ~/.ssh/config")),
    ), run=_connect, epilog=EXAMPLES),
    "port-forward": Verb("port-forward", "Reach ports of a running job from this computer, until Ctrl+C.", (
        option("job", help="job number"),
        option("ports", nargs="+", metavar="[LOCAL:]PORT", help="port of the job, and on this computer if it differs"),
        flag("--key-only", help="create no password"),
    ), run=_forward, epilog="  aip port-forward 12 6006\n  aip port-forward 12 9000:8080 5678"),
}  # fmt: skip
