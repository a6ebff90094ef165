"""Facts about the device, and a synthetic image for tests of models."""

from __future__ import annotations

import contextlib
import os
import platform
import zlib
from pathlib import Path

from .durable import Json


def gradient_png(side: int = 64) -> bytes:
    """Return a PNG of a gradient to test a model with."""
    rows = b"".join(b"\0" + bytes(v for x in range(side) for v in (4 * x, 4 * y, 128)) for y in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)

    head = side.to_bytes(4) + side.to_bytes(4) + bytes((8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def hardware() -> Json:
    """Return a short description of the device."""
    facts = {"machine": platform.machine(), "system": platform.platform()[:100], "python": platform.python_version(),
             "cores": os.cpu_count() or 1, "processor": _after("model name", Path("/proc/cpuinfo")),
             "card": _card()}  # fmt: skip
    with contextlib.suppress(OSError, ValueError):
        facts["memory_mib"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    for name, path in (("model", "/proc/device-tree/model"), ("gpu", "/proc/driver/nvidia/version")):
        with contextlib.suppress(OSError):
            facts[name] = Path(path).read_bytes()[:100].rstrip(b"\0\n").decode(errors="replace")
    return {name: value for name, value in facts.items() if value}


def _card() -> str:
    """The name of the first graphics card; "" where its driver names none."""
    cards = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return _after("Model", cards[0]) if cards else ""


def _after(word: str, path: Path) -> str:
    """What a file of the system says after a word and a colon; "" where it does not."""
    with contextlib.suppress(OSError):
        for line in path.read_text(errors="replace").splitlines():
            name, colon, value = line.partition(":")
            if colon and name.strip() == word:
                return value.strip()[:100]
    return ""
