"""Check of Xid messages: they cannot be provoked, so one is written into a copy of the kernel's log."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from aiplatform import env
from aiplatform.cli.gpu_report.definitions import Context, Values
from workers.execution.agent import device_errors

XID, WORDS = 79, "GPU has fallen off the bus."


def xid(context: Context) -> Values:
    """Let the platform's reader find a simulated Xid message of the first GPU, and keep it for a job."""
    uuid = context.devices[0].uuid
    bus = device_errors.bus_addresses().get(uuid, "0000:3b:00")
    log = context.folder / "kmsg"
    uptime_us = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6)
    log.write_text(f"4,1,{uptime_us},-;NVRM: Xid (PCI:{bus}): {XID}, pid=1, name=python, {WORDS}\n")
    lines = list(device_errors.kernel_lines(log))
    mine = [line for address, line in lines if address == bus]
    path = context.folder / "errors.jsonl"
    device_errors.append_lines(path, mine)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {
        "readable": os.access(Path(env.KERNEL_LOG), os.R_OK),
        "located": uuid in device_errors.bus_addresses(),
        "found": [line.code for line in mine] == [XID],
        "kept": [row["code"] for row in rows] == [XID] and WORDS in rows[0]["text"],
    }
