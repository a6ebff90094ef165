"""Prints which GPUs a job sees, and which device files of GPUs it can open. Argument: device."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch


def main(device: str) -> None:
    """Look at devices and device files."""
    files = [path for path in sorted(Path("/dev").glob("nvidia*")) if path.name[6:].isdigit()]
    uuid = ""
    if device == "cuda":
        torch.ones(1, device=device)
        uuid = str(torch.cuda.get_device_properties(0).uuid)
    values = {"visible": torch.cuda.device_count(), "uuid": uuid}
    print("result", json.dumps(values | {"opened": [path.name for path in files if opens(path)]}), flush=True)


def opens(path: Path) -> bool:
    """Whether this process may open a device file."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return True


main(sys.argv[1])
