"""The commands of the agent."""

from __future__ import annotations

import argparse
import fcntl
import json
import random
import sys
import time
import urllib.error
from collections.abc import Sequence
from pathlib import Path

from . import VERSION, model_server, timing
from .about import hardware
from .agent import Agent
from .durable import write
from .front import Front
from .samples import OFF, SAYS, Samples
from .trust import canonical

ROOT = Path.home() / ".aip-edge"


def enrol(root: Path, server: str, code: str) -> int:
    """Exchange the one-time code for a token of this device."""
    root.mkdir(parents=True, exist_ok=True)
    agent = Agent(root)
    agent.device = {"server": server}
    try:
        with agent.open_url("enrol", body={"code": code, "hardware": hardware(), "agent": VERSION}) as answer:
            welcome = json.loads(answer.read(1 << 20))
    except urllib.error.HTTPError as exc:
        sys.stderr.write(f"The server refused: {exc.read(2000).decode(errors='replace')}\n")
        return 1
    except OSError as exc:
        sys.stderr.write(f"{server} cannot be reached: {exc}\n")
        return 1
    write(root / "trust.json", canonical(welcome["trust"]))
    credentials = {name: welcome[name] for name in ("device", "token", "secret")}
    write(root / "device.json", canonical({"server": server, **credentials}))
    sys.stdout.write(f"This device is {welcome['name']}. Start it: python3 {sys.argv[0]} run\n")
    return 0


def run(root: Path, port: int, every: float, once: bool, keeps: bool = True) -> int:
    """Keep the released model running; with --once, return after one round."""
    if not (root / "device.json").exists():
        sys.stderr.write("This device is not enrolled yet. The page of its group shows the command.\n")
        return 1
    lock = (root / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.stderr.write("Another agent runs on this folder already.\n")
        return 1
    front = Front(port)
    front.samples = Samples(root / "samples", front.jpeg, allowed=keeps)
    agent = Agent(root, front)
    if agent.installed and not agent.memory["trial"]:
        front.start(agent.current)
    agent.diary.add(f"agent {VERSION} begins")
    samples_state = OFF
    while True:
        outcome, detail = agent.round()
        sys.stdout.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {outcome} {detail}\n")
        if front.samples.state != samples_state:
            samples_state = front.samples.state
            sys.stdout.write(f"{SAYS[samples_state]}\n")
        sys.stdout.flush()
        if once:
            return 0
        time.sleep(every * random.uniform(0.8, 1.2))  # noqa: S311  spreads the polls of many devices


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="aip-edge", description="Keeps one verified model at work on this device.")
    parser.add_argument("--root", type=Path, default=ROOT, help=f"folder of the agent ({ROOT})")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("enrol", help="make this device known to a platform")
    verb.add_argument("--server", required=True)
    verb.add_argument("--code", required=True)
    verb = verbs.add_parser("run", help="keep the wanted model at work")
    verb.add_argument("--port", type=int, default=8321, help="local port that answers pictures (8321)")
    verb.add_argument("--every", type=float, default=60, help="seconds between looks at the server (60)")
    verb.add_argument("--once", action="store_true", help="one look, then end")
    verb.add_argument("--no-samples", action="store_true", help="let no picture leave this device, whatever is asked")
    for own in ("_model", "_time"):  # of the agent's own processes
        verbs.add_parser(own).add_argument("package", type=Path)
    args = parser.parse_args(argv)
    if args.verb == "enrol":
        return enrol(args.root, args.server, args.code)
    if args.verb == "_model":
        return model_server.serve(args.package)
    if args.verb == "_time":
        return timing.measure(args.package)
    return run(args.root, args.port, args.every, args.once, not args.no_samples)
