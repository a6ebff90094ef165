"""`manage.py doctor`: report what this machine offers, and a remedy for each problem.

Django and the apps are imported inside functions: only after `django.setup()` can they be.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from aiplatform import __version__, env
from aiplatform.cli import bootstrap, broker, gpu_report, output, server
from aiplatform.lib import disk, inner_port

OK, WARN, FAIL = "ok", "warning", "problem"
CLOCK_S = 2.0


@dataclass(frozen=True)
class Finding:
    """One line of the report. `remedy` says what to do; empty when nothing is wrong."""

    what: str
    level: str
    text: str
    remedy: str = ""


def _python() -> Iterator[Finding]:
    origin = bootstrap.origin(Path(sys.prefix))
    packages = f", packages from {origin}" if origin else ""
    yield Finding("python", OK, f"{platform.python_version()} at {sys.executable}{packages}")


def _settings() -> Iterator[Finding]:
    for name, text in env.problems:
        yield Finding("settings", FAIL, text, f"Correct {name} and start again.")
    if not env.problems:
        yield Finding("settings", OK, "all AIP_* variables are valid")


def _disk() -> Iterator[Finding]:
    root = env.DATA_ROOT
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        yield Finding(
            "disk", FAIL, f"{root}: {exc.strerror}", "Set AIP_DATA_ROOT to a folder that this user can write."
        )
        return
    if root.stat().st_mode & 0o007:
        yield Finding(
            "disk", WARN, f"{root} is accessible to all users of this computer", "`up` closes it, or chmod o-rwx."
        )
    usage = shutil.disk_usage(root)
    text = f"{root}: {usage.free / 2**30:.0f} GiB free of {usage.total / 2**30:.0f}"
    if usage.free < disk.NO_ROOM_BYTES:
        yield Finding(
            "disk",
            FAIL,
            f"{root} is full: nothing can be saved",
            "Free space there; the platform continues automatically.",
        )
    elif usage.free < 5 * 2**30:
        yield Finding("disk", FAIL, text, "Free space, or set AIP_DATA_ROOT to a larger disk.")
    elif usage.free / usage.total < 0.1:
        yield Finding("disk", WARN, text, "Less than a tenth is free; large uploads may be rejected soon.")
    else:
        yield Finding("disk", OK, text)


def _broker() -> Iterator[Finding]:
    import redis
    from django.conf import settings

    from aiplatform.lib import redis_client

    try:
        client = redis_client.connect(settings.REDIS_URL, timeout_s=2)
        info = cast("dict[str, str]", client.info("server"))  # this client waits for its answers
        version = info.get("valkey_version") or info.get("redis_version")
        yield Finding("broker", OK, f"responds, version {version}")
    except redis.RedisError as exc:
        if env.REDIS_URL:
            yield Finding(
                "broker", FAIL, f"does not respond: {exc}", "Check AIP_REDIS_URL and that the server is running."
            )
            return
        try:
            yield Finding("broker", OK, f"not running; `up` starts {broker.binary()}")
        except broker.NoBroker as missing:
            yield Finding("broker", FAIL, "no server program", str(missing))


def _database() -> Iterator[Finding]:
    from django.db import DatabaseError, connection

    try:
        connection.ensure_connection()
    except DatabaseError as exc:
        yield Finding("database", FAIL, str(exc).strip(), "Check AIP_DATABASE_URL and that PostgreSQL is running.")
        return
    if connection.vendor == "sqlite":
        yield Finding("database", OK, f"SQLite {sqlite3.sqlite_version}, WAL; several nodes require PostgreSQL")
    else:
        postgresql: Any = connection
        yield Finding("database", OK, f"{connection.display_name} {postgresql.pg_version // 10000}")


def _devices() -> Iterator[Finding]:
    from workers.resources.nodes import card_catalogue
    from workers.resources.nodes.telemetry import sampler

    devices = sampler.open_probe(env.FAKE_GPUS, env.FAKE_NPUS).cards()
    if not devices:
        yield Finding(
            "gpu", OK, f"no NVIDIA GPU; {os.cpu_count()} CPU cores are available", "AIP_FAKE_GPUS=4 simulates GPUs."
        )
    for device in devices:
        kind = "simulated" if device.simulated else f"{device.memory_mib / 1024:.0f} GiB"
        note = card_catalogue.about(device.name, is_real=not device.simulated)
        text = f"{device.kind}{device.index}: {device.name}, {kind}{f'; {note}' if note else ''}"
        yield Finding("gpu", WARN if device.simulated else OK, text)
    full_mib = [device.memory_mib for device in devices if not device.simulated and device.parent is None]
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    if advice := card_catalogue.advice(memory_mib, full_mib):
        yield Finding("memory", WARN, advice, "GPUs wait for data if images do not fit into memory.")


def _scratch() -> Iterator[Finding]:
    """Whether decoded images and temporary files of jobs lie on a fast disk."""
    from workers.core import scratch
    from workers.resources.nodes import scratch_disk
    from workers.resources.nodes.telemetry import rotation

    folder = scratch.root()
    spins = rotation.spins(folder)
    yield Finding("scratch", WARN if spins else OK, scratch_disk.sentence(str(folder), spins=spins))


def _disk_limits() -> Iterator[Finding]:
    """Whether the kernel keeps disk limits of jobs, or their supervisors by counting."""
    from workers.core import scratch
    from workers.supervisor import project_quota

    folders = [env.DATA_ROOT / "jobs", scratch.root() / scratch.TMP]
    existing = {str(next(path for path in (folder, *folder.parents) if path.is_dir())) for folder in folders}
    if why := project_quota.obstacle(sorted(existing)):
        remedy = "On XFS or ext4 mounted with prjquota, with the agent as root, the kernel enforces them exactly."
        yield Finding("limits", OK, f"disk limits of jobs are enforced by counting their files: {why}", remedy)
    else:
        yield Finding("limits", OK, "disk limits of jobs are enforced by project quotas")


def _evictions() -> Iterator[Finding]:
    """Whether work could be moved off this machine's cards. Off until proven and allowed."""
    from workers.execution import tickets
    from workers.execution.agent import eviction_probe
    from workers.resources.nodes import eviction_policy
    from workers.resources.nodes.telemetry import sampler

    cards = sampler.open_probe(env.FAKE_GPUS, env.FAKE_NPUS).cards()
    can = eviction_probe.check(cards, tickets.tier()[0], eviction_probe.host_memory_mib())
    if can["code"] in ("no_card", "simulated"):
        return
    if can["code"]:
        yield Finding("evictions", OK, str(eviction_policy.CANNOT[can["code"]]) % {"detail": can["detail"]})
        return
    remedy = "python manage.py prove_eviction tests it on a free GPU; until then evictions are not offered."
    yield Finding("evictions", OK, f"driver {can['driver']} supports moving jobs off the GPU", remedy)


def _sandbox() -> Iterator[Finding]:
    """What keeps this machine from its jobs: the tier, then each guard, those that are missing as well."""
    from workers.execution import protection, tickets
    from workers.resources.nodes.guards import GUARDS

    tier, _bwrap = tickets.tier()
    names = {0: "plain user", 1: "Landlock", 2: "bubblewrap", 3: "bubblewrap, separate users, cgroups"}
    text = (
        f"tier {tier} ({names.get(tier, 'containers')}): below tier 3 jobs are separated from mistakes of "
        "colleagues, not from attackers"
    )
    as_root = os.geteuid() == 0 and protection.obstacle()
    yield Finding("sandbox", FAIL if as_root else OK if tier >= 2 else WARN, text, protection.remedy())
    for key, stands in protection.guards().items():
        text = str(GUARDS[key].stands if stands else GUARDS[key].missing)
        usual = key in ("user", "limits") and not as_root  # what only root could change
        yield Finding("jobs", OK if stands or usual else WARN, text)


def _images() -> Iterator[Finding]:
    """Check whether packages installed in jobs are stored in layers, so that they can be saved as an image."""
    from workers.execution import tickets
    from workers.images.services import launch
    from workers.images.store import paths
    from workers.supervisor import sandbox

    tier, bwrap = tickets.tier()
    if tier >= sandbox.CONTAINER:
        return
    if tier < sandbox.BUBBLEWRAP or not launch.layers_work(bwrap):
        text = "packages of jobs are stored in plain folders: images cannot be saved or used"
        yield Finding("images", WARN, text, "Sandbox tier 2 or 3 and bubblewrap 0.11 with overlays are required.")
    elif not paths.takes_marks(paths.open_folder(paths.local())):
        text = f"{paths.local()} does not support extended attributes: jobs with installed packages do not start"
        yield Finding("images", FAIL, text, "Set AIP_BOX_ROOT to a local disk (ext4, xfs, btrfs).")
    else:
        yield Finding("images", OK, "packages of jobs are stored in layers and can be saved as images")


def _containers() -> Iterator[Finding]:
    """Check containers (sandbox tier 4). Their absence is a fault only where the operator chose that tier."""
    from workers.execution import tickets

    offer, wanted = tickets.containers(), env.SANDBOX_TIER >= 4
    if not offer:
        yield Finding("containers", WARN if wanted else OK, offer.why, offer.remedy)
        return
    text = f"{offer.engine} runs jobs in {offer.container['image']}"
    remedy = "" if wanted else "AIP_SANDBOX_TIER=4 runs all jobs of this node in containers."
    yield Finding("containers", OK, text, remedy)


def _port() -> Iterator[Finding]:
    with socket.socket() as probe:
        taken = probe.connect_ex(("127.0.0.1", env.PORT)) == 0
    yield Finding(
        "port", OK, f"{env.PORT} {'answers: the platform or something else runs there' if taken else 'is free'}"
    )


def _clock() -> Iterator[Finding]:
    from workers.core import clock

    apart = clock.offset_s()
    text = f"{apart:+.1f} s compared with the database"
    if abs(apart) > CLOCK_S:
        remedy = (
            "Synchronize it with NTP. Time limits and states use the clock of the server; log times are misleading."
        )
        yield Finding("clock", WARN, text, remedy)
    else:
        yield Finding("clock", OK, text)


def _schema() -> Iterator[Finding]:
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    ahead = executor.migration_plan(executor.loader.graph.leaf_nodes())
    unknown = set(executor.loader.applied_migrations) - set(executor.loader.disk_migrations)  # replaced ones, too
    if ahead:
        yield Finding("version", FAIL, "this program is newer than the database", "Upgrade the server first.")
    elif unknown:
        yield Finding("version", FAIL, "this program is older than the database", "Upgrade the program on this node.")
    else:
        yield Finding("version", OK, f"{__version__}, matches the database")


def _groups() -> Iterator[Finding]:
    """Report resource groups that reserve nodes without users."""
    from django.db import DatabaseError

    from workers.resources.clusters import resource_groups

    try:
        groups = resource_groups.list_unusable()
    except DatabaseError:  # no tables yet, or no answer: that is said by the check of the database
        return
    for group in groups:
        text = (
            f"resource group {group.name} reserves its nodes for kinds that cannot be submitted: nothing starts there"
        )
        yield Finding("groups", WARN, text, "Name kinds that can be submitted on its page, or delete it.")


def _shared() -> Iterator[Finding]:
    from workers.resources.nodes import lifecycle

    here = inner_port.stand_in(env.NODE_ADDRESS, env.EXEC_PORT)  # its own relay may not be started yet
    with server.probe(env.DATA_ROOT) as (file, content), here:
        body = {"name": env.NODE, "machine": lifecycle.machine_id(), "probe": file.name, "content": content}
        try:
            answer = server.post(f"{env.SERVER}/api/v1/nodes/probe/", body)
            server.see_answer(file, content)
        except server.Refused as exc:
            remedy = f"Mount AIP_DATA_ROOT of the server at {env.DATA_ROOT}, and check that {env.SERVER} responds."
            yield Finding("shared", FAIL, str(exc), remedy)
            return
    yield Finding("shared", OK, f"{env.DATA_ROOT} is the folder of the server, readable and writable from both sides")
    yield _road(env.NODE, env.NODE_ADDRESS, reached=bool(answer.get("reached", True)))  # an older server does not say


def _roads() -> Iterator[Finding]:
    """Whether this server gets to the jobs of all machines that are up."""
    from django.db import DatabaseError

    from workers.core.models import Node

    try:
        others = list(Node.objects.filter(state=Node.State.LIVE).exclude(name=env.NODE) if env.NODE_ADDRESS else ())
    except DatabaseError:
        return
    for node in others:
        yield _road(node.name, node.address, reached=inner_port.answers(node.address, env.EXEC_PORT))


def _road(name: str, address: str, *, reached: bool) -> Finding:
    where = f"port {env.EXEC_PORT} of {name} ({address})"
    if reached:
        return Finding("roads", OK, f"the server can reach {where}")
    remedy = (
        "Open that port in its firewall for all nodes of the platform, and check that no other program uses it "
        "(AIP_EXEC_PORT, the same on all nodes)."
    )
    text = f"the server cannot reach {where}: terminals, SSH, ports and files of jobs there are not available"
    return Finding("roads", WARN, text, remedy)


Check = Callable[[], Iterator[Finding]]
_CAN: tuple[Check, ...] = (_devices, _scratch, _disk_limits, _evictions, _sandbox, _images, _containers)
CHECKS: tuple[Check, ...] = (_python, _settings, _disk, _broker, _database, _groups, _roads, *_CAN, _port)
NODE_CHECKS: tuple[Check, ...] = (_python, _settings, _disk, _broker, _database, _schema, _clock, _shared, *_CAN)


def examine(checks: Iterable[Check] = CHECKS) -> list[Finding]:
    """Run every check; a check that breaks becomes a finding itself."""
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check()
        except Exception as exc:  # noqa: BLE001 - a doctor reports, whatever it meets
            findings.append(
                Finding(check.__name__.strip("_"), FAIL, f"{type(exc).__name__}: {exc}", "See the message.")
            )
    return findings


def main(argv: list[str]) -> int:
    """Print the report; exit code 1 when something needs mending."""
    parser = argparse.ArgumentParser(prog="manage.py doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--bundle", metavar="FILE", help="install missing packages from this file, without a network")
    parser.add_argument("--settings", action="store_true", help="also list every AIP_* variable with its default")
    gpu_report.add_arguments(parser)
    options = parser.parse_args(argv)
    import django

    django.setup()
    if options.gpu_report:
        from aiplatform.cli.gpu_report import command

        return command.run(options)
    findings = examine(NODE_CHECKS if env.SERVER else CHECKS)
    if options.json:
        print(json.dumps({"version": __version__, "node": env.NODE, "findings": [asdict(f) for f in findings]}))
    else:
        print(f"aiplatform {__version__} on {env.NODE}")
        colours = {OK: "32", WARN: "33", FAIL: "31"}
        for finding in findings:
            level = output.paint(finding.level.ljust(8), colours[finding.level])
            print(f"  {level} {finding.what.ljust(9)} {finding.text}")
            if finding.remedy:
                print(f"{' ' * 21}→ {finding.remedy}")
        if options.settings:
            print("\nVariables:")
            for name, (default, text) in sorted(env.documented.items()):
                print(f"  {name} (default: {default or 'empty'})\n      {text}")
    return 1 if any(finding.level == FAIL for finding in findings) else 0
