"""Whether the disk behind a folder spins, as the kernel says."""

from __future__ import annotations

import os
from pathlib import Path


def spins(folder: Path, sys: Path = Path("/sys"), mounts: Path = Path("/proc/self/mountinfo")) -> bool | None:
    """True on a spinning disk, False on one without moving parts, None where it is unknown.

    File systems of other machines, in memory and laid over others have no disk of their own. A virtual machine's
    disk says what its host chose to say.
    """
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    number = nearest.stat().st_dev
    if os.major(number) == 0:  # btrfs among them: its mount names the disk
        number = _mounted(nearest.resolve(), mounts)
    device = sys / "dev/block" / f"{os.major(number)}:{os.minor(number)}"
    for block_device in (device, device.resolve().parent):  # a partition's queue is its disk's
        try:
            return (block_device / "queue/rotational").read_text().strip() == "1"
        except OSError:
            continue
    return None


def _mounted(folder: Path, mounts: Path) -> int:
    """Return the number of the disk that a mount around `folder` names, 0 where it names none."""
    best, source = Path("/"), ""
    try:
        lines = mounts.read_text().splitlines()
        for line in lines:
            before, _, after = line.partition(" - ")
            at = Path(before.split()[4].replace("\\040", " "))
            if folder.is_relative_to(at) and len(at.parts) >= len(best.parts):
                best, source = at, after.split()[1]
        return Path(source).stat().st_rdev if source.startswith("/dev/") else 0
    except (OSError, IndexError):
        return 0
