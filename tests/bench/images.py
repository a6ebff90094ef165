"""What images cost: packing and unpacking a layer of 85 MB, and a start on three layers beside a plain one.

    python -m tests.bench.images [--mb 85] [--files 8700] [--starts 20]

The layer is made like one that pip leaves: many small files of text and a few large ones that hardly pack.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"


def layer(top: Path, megabytes: int, files: int) -> None:
    """A third of the bytes in five large files, the rest in small ones of words."""
    draw = random.Random(7)
    words = [draw.randbytes(draw.randrange(2, 9)).hex() for _ in range(4000)]
    small = megabytes * 2_000_000 // 3 // files
    for number in range(files):
        folder = top / f"lib/package{number % 60}/part{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        text = " ".join(draw.choice(words) for _ in range(small // 9))
        (folder / f"module{number}.py").write_text(text[:small])
    for number in range(5):
        (top / f"lib/library{number}.so").write_bytes(draw.randbytes(megabytes * 1_000_000 // 15))


def start_s(ways: list[list[str]], starts: int) -> list[float]:
    """The median of starting a program that ends at once, each way in its turn."""
    spans: list[list[float]] = [[] for _ in ways]
    for _ in range(starts):
        for way, argv in enumerate(ways):
            begun = time.perf_counter()
            subprocess.run(argv, check=True, capture_output=True)
            spans[way].append(time.perf_counter() - begun)
    return [statistics.median(times) for times in spans]


def starts(folder: Path, layers: list[Path], number: int) -> tuple[float, float]:
    """Seconds until /bin/true has run in a sandbox: plain, and on three layers below a writable one."""
    from workers.supervisor import sandbox, tiers
    from workers.supervisor.ticket import Ticket

    _tier, bwrap = tiers.best_tier(at_most=sandbox.BUBBLEWRAP)
    for name in ("upper", "work"):
        (folder / name).mkdir()
    overlay = {"target": str(folder / "engine"), "layers": [str(folder / "engine"), *map(str, layers)],
               "upper": str(folder / "upper"), "work": str(folder / "work")}  # fmt: skip
    about = {"job": 1, "attempt": 1, "argv": ["/bin/true"], "env": {}, "cwd": "/", "tier": 2, "bwrap": bwrap}
    plain, layered = start_s([sandbox.wrapped(Ticket(**about, **more)) for more in ({}, {"overlay": overlay})], number)
    return plain, layered


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=85)
    parser.add_argument("--files", type=int, default=8700)
    parser.add_argument("--starts", type=int, default=20)
    given = parser.parse_args(argv)
    django.setup()
    from workers.images.store import archive, unpacking

    folder = Path(tempfile.mkdtemp(prefix="aip-bench-images-"))
    try:
        (folder / "engine").mkdir()
        layer(folder / "layer", given.mb, given.files)
        begun = time.perf_counter()
        figures = archive.pack(folder / "layer", folder / "packed")
        packed_s = time.perf_counter() - begun
        begun = time.perf_counter()
        unpacking.unpack(
            folder / "packed", folder / "unpacked", sha256=figures.sha256, most_bytes=figures.bytes,
            most_files=figures.files,
        )  # fmt: skip
        unpacked_s = time.perf_counter() - begun
        begun = time.perf_counter()
        archive.measure(folder / "layer")
        measured_s = time.perf_counter() - begun
        three = [folder / "unpacked"]
        for name in ("second", "third"):
            shutil.copytree(folder / "engine", folder / name)
            (folder / name / name).touch()
            three.append(folder / name)
        plain_s, layered_s = starts(folder, three, given.starts)
    finally:
        shutil.rmtree(folder)
    print(f"layer of {figures.bytes / 1e6:.0f} MB in {figures.files} entries, load {os.getloadavg()[0]:.1f}")
    print(f"pack (processes stand still) {packed_s:.2f} s, {figures.packed / 1e6:.0f} MB packed")
    print(f"unpack, with checksum {unpacked_s:.2f} s")
    print(f"measure for the page {measured_s * 1000:.0f} ms")
    print(f"start, plain {plain_s * 1000:.1f} ms; on an engine, three layers and a box {layered_s * 1000:.1f} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
