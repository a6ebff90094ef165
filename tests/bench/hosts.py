"""Several models in one process against one process each: `python -m tests.bench.hosts [--models 16] [--json]`.

Memory (PSS and RSS, summed over processes) after each service has answered, and requests per second of 4 callers: all
at one service, and each at one of its own. Both ways are asked in turn on the same machine; the processes that do not
answer are stopped meanwhile. A picture goes in as JPEG, the model is a ResNet-18 of a quarter of the channels.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from tests.bench.server import _client, post, pss_mib
from tests.inference.hosted import put
from tests.inference.launching import ROOT, get, launch, start_server
from tests.inference.pictures import encoded

CALLERS = 4


def rss_mib(pid: int) -> float:
    """Memory of a process that is in RAM, shared pages counted in full."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("VmRSS:")).split()[1]) / 1024


def per_s(targets: Sequence[tuple[int, bytes]], seconds: float) -> float:
    """Requests per second of one caller for each target (port, request)."""
    latencies: list[float] = []

    async def run() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(_client(port, request, until, latencies) for port, request in targets))

    began = time.monotonic()
    asyncio.run(run())
    return len(latencies) / (time.monotonic() - began)


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


def measure(home: Path, *, models: int, rounds: int, seconds: float, make) -> dict[str, float]:
    """Both ways, beside each other."""
    noise = np.random.default_rng(0).integers(0, 255, (56, 56, 3), np.uint8)
    picture = encoded(Image.fromarray(noise).resize((224, 224)), "JPEG", quality=85)
    root = home / "host"
    root.mkdir()
    folders = [put(root, f"{number}-1", make) / "model" for number in range(1, models + 1)]
    host, port = launch([sys.executable, "-m", "inference.server", "--host", str(root)], ROOT, {"OMP_NUM_THREADS": "1"})
    alone: list[tuple[subprocess.Popen[bytes], int]] = []
    try:
        for number in range(1, models + 1):
            while get(port, f"/m/{number}-1/v2/health/ready") != 200:
                time.sleep(0.1)
        alone = [start_server(folder, OMP_NUM_THREADS="1") for folder in folders]
        processes = [process for process, _port in alone]
        together = [(port, post(f"/m/{n}-1/predict", picture, "image/jpeg")) for n in range(1, models + 1)]
        apart = [(one, post("/predict", picture, "image/jpeg")) for _process, one in alone]
        for target in (*together, *apart):
            per_s([target] * CALLERS, 0.3)
        here, there = memory([host]), memory(processes)
        rows = []
        for _round in range(rounds):
            row = []
            for pick in (lambda targets: [targets[0]] * CALLERS, lambda targets: targets[:CALLERS]):
                signalled(processes, signal.SIGSTOP)
                one = per_s(pick(together), seconds)
                signalled(processes, signal.SIGCONT)
                host.send_signal(signal.SIGSTOP)
                many = per_s(pick(apart), seconds)
                host.send_signal(signal.SIGCONT)
                row += [one, many, one / many]
            rows.append(row)
    finally:
        for process in (host, *(process for process, _port in alone)):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
    names = (
        "one_service_host_per_s", "one_service_alone_per_s", "one_service_rate_ratio",
        "own_services_host_per_s", "own_services_alone_per_s", "own_services_rate_ratio",
    )  # fmt: skip
    found = {name: statistics.median(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    for name in here:
        found |= {f"host_{name}": here[name], f"alone_{name}": there[name]}
        found[f"{name[:3]}_ratio"] = here[name] / there[name]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), models=asked.models, rounds=asked.rounds, seconds=asked.seconds)
    if asked.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:28} {value:10.2f}")


if __name__ == "__main__":
    main()
