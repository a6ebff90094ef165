"""Runs the probes as a job in one tier, under the real supervisor, and draws the grid of all tiers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from aiplatform import env
from tests.isolation import probes
from workers.supervisor import engines, processes, records, sandbox, tiers
from workers.supervisor.ticket import Ticket

MAIN = Path(records.__file__).with_name("__main__.py")
ROOT = MAIN.parents[2]
PAGE = ROOT / "aiplatform/docs/isolation.md"
NAMES = {0: "0 plain", 1: "1 Landlock", 2: "2 bubblewrap", 3: "3 own uid, cgroups", 4: "4 container"}
PROCESSES, MEMORY_BYTES = 200, 256 << 20
UID = 299_999
BEGIN, END = "<!-- grid: written by python -m tests.isolation -->", "<!-- end of grid -->"


def offered() -> list[int]:
    """The tiers of this machine; a container's needs an engine, AIP_CONTAINER_IMAGE and a python3 in that image."""
    found = list(range(tiers.best_tier(at_most=sandbox.OWN_UID)[0] + 1))
    return [*found, sandbox.CONTAINER] if containers() else found


@cache
def containers() -> engines.Offer:
    """What the machine's container engine offers."""
    return engines.offer(env.CONTAINER_IMAGE, chosen=env.CONTAINER_SOCKET)


def run(tier: int, folder: Path) -> dict[str, str]:
    """What each probe found in `tier`: possible or refused."""
    for name in ("code", "outputs", "tmp", "input"):
        (folder / "run" / name).mkdir(parents=True)
    folder.chmod(0o755)
    shutil.copy(probes.__file__, folder / "run" / "code" / "probes.py")
    sleep_s = 86_000 + tier * 100 + os.getpid() % 100
    private = _private(folder)
    bystander = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(999)  # victim"], env={"AIP_CANARY": "x"}
    )
    with socket.socket(socket.AF_UNIX) as broker:
        broker.bind(str(folder / "broker.sock"))
        broker.listen()
        targets = private | {
            "repository": str(ROOT / "manage.py"), "victim": bystander.pid, "broker": str(folder / "broker.sock"),
            "own_record": str(folder / "run" / records.SUPERVISOR), "input": str(folder / "run" / "input" / "data"),
            "sleep": sleep_s, "processes": PROCESSES, "memory_bytes": MEMORY_BYTES,
        }  # fmt: skip
        (folder / "run" / "code" / "targets.json").write_text(json.dumps(targets))
        try:
            said = _keep(tier, folder / "run")
        finally:
            bystander.kill()
            bystander.wait()
    said["outlive_the_job"] = "possible" if _sleeping(sleep_s) else "refused"
    return said


def _private(folder: Path) -> dict[str, str]:
    """Files of the platform and of other people, as the platform keeps them."""
    made = {}
    for name, mode in (("secret", 0o600), ("database", 0o600), ("other_run", 0o644), ("other_home", 0o600)):
        path = folder / name / "data"
        path.parent.mkdir(mode=0o755)
        path.write_text("canary")
        path.chmod(mode)
        made[name] = str(path)
    (folder / "run" / "input" / "data").write_text("pixels")
    return made


def _keep(tier: int, path: Path) -> dict[str, str]:
    own = {"uid": UID, "processes": PROCESSES, "memory_bytes": MEMORY_BYTES} if tier >= sandbox.OWN_UID else {}
    if tier == sandbox.CONTAINER:
        own["container"] = engines.user_of(containers().container, UID)
    python = "python3" if tier == sandbox.CONTAINER else sys.executable  # a container brings its own
    ticket = Ticket(
        job=1, attempt=1, argv=[python, "-I", "-S", "probes.py", "targets.json"],
        env={"PATH": "/usr/bin:/bin", "RUN": str(path)}, cwd=str(path / "code"), tier=tier,
        bwrap=tiers.find_bwrap() if sandbox.BUBBLEWRAP <= tier <= sandbox.OWN_UID else "", tmp=str(path / "tmp"),
        read_only=[*(map(str, tiers.python_folders()) if python == sys.executable else []), str(path)],
        read_write=[str(path / "code"), str(path / "outputs")], **own,
    )  # fmt: skip
    records.write(path / records.LAUNCH, ticket.to_json())
    subprocess.run([sys.executable, "-I", "-S", str(MAIN), str(path)], check=True, timeout=90)
    deadline = time.monotonic() + 120
    while records.read(path / records.EXIT) is None:
        assert time.monotonic() < deadline, "the probes do not end"
        time.sleep(0.05)
    lines = (path / records.LOG).read_text().splitlines()
    return dict(json.loads(next(line for line in lines if line.startswith("{"))))


def _sleeping(seconds: int) -> bool:
    mark = f"/bin/sleep\0{seconds}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == mark:
                    found.append(int(entry.name))
            except OSError:
                continue
    return bool(processes.alive(found))


def drawn(found: dict[int, dict[str, str]]) -> str:
    """The grid as a table of Markdown, a row per probe."""
    head = "| a job tries to … | " + " | ".join(NAMES[tier] for tier in found) + " |"
    rule = "|---|" + "---|" * len(found)
    rows = [
        f"| {probe.__name__.replace('_', ' ')} | " + " | ".join(found[tier][probe.__name__] for tier in found) + " |"
        for probe in probes.PROBES
    ]
    refused = [str(sum(answer == "refused" for answer in found[tier].values())) for tier in found]
    total = f"| **refused of {len(probes.PROBES)}** | " + " | ".join(f"**{count}**" for count in refused) + " |"
    return "\n".join([head, rule, *rows, total])
