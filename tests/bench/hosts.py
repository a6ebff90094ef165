"""Several models in one process against one process each: `python -m tests.bench.hosts [--models 16] [--json]`.

Memory (PSS and RSS, summed over processes) after each service has answered, and requests per second of 4 callers: all
at one service (`one_`), and each at a service of its own (`each_`, where processes of their own may use several cores
and a shared one is one interpreter). Both ways are asked in turn on the same machine; the processes that do not answer
are stopped meanwhile. A picture goes in as JPEG; the model is a ResNet-18 of a quarter of the channels (2.7 MiB).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from inference.serving.server.host import MODEL
from tests.bench.server import client as caller
from tests.bench.server import cpu_s, post, pss_mib, resnet18
from tests.inference.hosted import place_service
from tests.inference.launching import ROOT, get, launch, start_server
from tests.inference.pictures import encoded

CALLERS, WIDTH = 4, 16


def rss_mib(pid: int) -> float:
    """Memory of a process that is in RAM, shared pages counted in full."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("VmRSS:")).split()[1]) / 1024


def asked(targets: Sequence[tuple[int, bytes]], pids: Sequence[int], seconds: float) -> tuple[float, float]:
    """Requests per second of one caller for each target (port, request), and the servers' CPU-ms for each."""
    latencies: list[float] = []

    async def run() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(caller(port, request, until, latencies) for port, request in targets))

    before, began = sum(map(cpu_s, pids)), time.monotonic()
    asyncio.run(run())
    spent, used = time.monotonic() - began, sum(map(cpu_s, pids)) - before
    return len(latencies) / spent, 1000 * used / len(latencies)


def memory(processes: Sequence[subprocess.Popen[bytes]]) -> dict[str, float]:
    """Of all processes together, in MiB."""
    return {
        "pss_mib": sum(pss_mib(process.pid) for process in processes),
        "rss_mib": sum(rss_mib(process.pid) for process in processes),
    }


def signalled(processes: Sequence[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    """Send all of them a signal."""
    for process in processes:
        process.send_signal(number)


def measure(home: Path, *, models: int, rounds: int, seconds: float) -> dict[str, float]:
    """Both ways, beside each other."""
    noise = np.random.default_rng(0).integers(0, 255, (56, 56, 3), np.uint8)
    picture = encoded(Image.fromarray(noise).resize((224, 224)), "JPEG", quality=85)
    root = home / "host"
    root.mkdir()
    resnet18(home / "model", width=WIDTH)
    names = [f"{number}-1" for number in range(1, models + 1)]
    folders = [
        place_service(root, name, partial(shutil.copytree, home / "model", dirs_exist_ok=True)) for name in names
    ]
    host, port = launch(
        [sys.executable, "-m", "inference.serving.server", "--host", str(root)], ROOT, {"OMP_NUM_THREADS": "1"}
    )
    alone: list[tuple[subprocess.Popen[bytes], int]] = []
    try:
        for name in names:
            while get(port, f"/m/{name}/v2/health/ready") != 200:
                time.sleep(0.1)
        alone.extend(start_server(folder / MODEL, OMP_NUM_THREADS="1") for folder in folders)
        together = [(port, post(f"/m/{name}/predict", picture, "image/jpeg")) for name in names]
        apart = [(one, post("/predict", picture, "image/jpeg")) for _process, one in alone]
        return compared([host], together, [process for process, _port in alone], apart, rounds, seconds)
    finally:
        for process in (host, *(process for process, _port in alone)):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def compared(
    host: list[subprocess.Popen[bytes]],
    together: list[tuple[int, bytes]],
    others: list[subprocess.Popen[bytes]],
    apart: list[tuple[int, bytes]],
    rounds: int,
    seconds: float,
) -> dict[str, float]:
    """Ask one way and the other in turn; medians of the rates and of their ratios within a round."""
    for target in (*together, *apart):
        asked([target] * CALLERS, [], 0.3)
    here, there = memory(host), memory(others)
    found = {f"host_{name}": value for name, value in here.items()}
    found |= {f"alone_{name}": value for name, value in there.items()}
    found |= {f"{name.removesuffix('_mib')}_ratio": here[name] / there[name] for name in here}
    for what, pick in (("one", [0] * CALLERS), ("each", [n % len(together) for n in range(CALLERS)])):
        rows = []
        for _round in range(rounds):
            signalled(others, signal.SIGSTOP)
            rate, cost = asked([together[n] for n in pick], [one.pid for one in host], seconds)
            signalled(others, signal.SIGCONT)
            signalled(host, signal.SIGSTOP)
            rate_alone, cost_alone = asked([apart[n] for n in pick], [one.pid for one in others], seconds)
            signalled(host, signal.SIGCONT)
            rows.append((rate, rate_alone, rate / rate_alone, cost, cost_alone, cost / cost_alone))
        names = ("host_per_s", "alone_per_s", "rate_ratio", "host_cpu_ms", "alone_cpu_ms", "cpu_ratio")
        columns = zip(*rows, strict=True)
        found |= {f"{what}_{name}": statistics.median(column) for name, column in zip(names, columns, strict=True)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), models=options.models, rounds=options.rounds, seconds=options.seconds)
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:28} {value:10.2f}")


if __name__ == "__main__":
    main()
