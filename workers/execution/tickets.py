"""Tickets: the environment, sandbox and limits of one rank, as its supervisor is handed them."""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from aiplatform import env
from aiplatform.lib import secret_names
from workers.core import disk_limits, kinds, run_time, scratch
from workers.core.kinds import Capabilities, Launch
from workers.core.models import Allocation, Attempt, Device, Job
from workers.core.runs import RunDir
from workers.execution import gang_environment, job_users, opening_lines, resuming, root_users, sandbox_access
from workers.execution.mps import joining
from workers.resources.clusters import bounds
from workers.supervisor import engines, env_file, sandbox, tiers
from workers.supervisor.ticket import Ticket

GRACE_S = 30
JOB_USER = "job"  # libraries name folders after it
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class NoPort(Exception):
    """Every port of this node's range is taken."""


def rank_dir(run: RunDir, rank: int) -> Path:
    """Where the supervisor of a rank keeps its records."""
    return run.of_rank(rank)


@cache
def tier() -> tuple[int, str]:
    """The strongest isolation this node offers, and its bubblewrap; found out once per process."""
    at_most = env.SANDBOX_TIER if env.SANDBOX_TIER >= 0 else sandbox.OWN_UID
    if at_most >= sandbox.CONTAINER and containers():
        return sandbox.CONTAINER, ""
    return tiers.best_tier(at_most=at_most)


@cache
def containers() -> engines.Offer:
    """What the container engine of this node offers; found out once per process."""
    return engines.offer(
        env.CONTAINER_IMAGE, chosen=env.CONTAINER_SOCKET, root=str(settings.DATA_ROOT), network=env.CONTAINER_NETWORK
    )


def make(attempt: Attempt, rank: int, held: list[Allocation], launch: Launch) -> Ticket:
    """The ticket of one rank.

    Args:
        held: the rank's allocations with their devices, by device index.
        launch: what the kind wants started.
    """
    job = attempt.job
    run = RunDir.for_attempt(job.pk, attempt.number)
    level, bwrap = tier()
    tmp = scratch.job_tmp(run, rank)
    for folder in (run.code, run.inputs, run.outputs, run.checkpoints):
        folder.mkdir(parents=True, exist_ok=True)
    scratch.make(tmp)
    if job.root_inside:
        tmp.chmod(0o1777)  # packages have users of their own
    run.metrics.touch(exist_ok=True)
    cards = [a.device for a in held if a.device.kind == Device.Kind.GPU]
    span = run_time.runtime(job)
    port = lease_port(held[0]) if launch.ports else None
    environ = base_environment(attempt, run, rank, cards, tmp if level < sandbox.BUBBLEWRAP else Path("/tmp"))  # noqa: S108 - the job's own
    mps = mps_folder(held) if level < sandbox.CONTAINER else None  # its clients would have to share the machine's IPC
    environ |= share_environment(held, mps) | sandbox_access.environment(attempt, level, launch)
    if level < sandbox.CONTAINER:
        environ["AIP_ENV_FILE"] = env_file.PATH if level >= sandbox.BUBBLEWRAP else str(tmp / env_file.NAME)
    if job.nodes > 1:
        environ |= gang_environment.for_rank(rank, held[0].node.address)
    if port:
        environ |= {"AIP_PORT": str(port), "AIP_HOST": _listen_host(held[0])}
    uid = job_users.uid_of(job.owner_id)
    job_users.enclose(run.path, uid)
    job_users.lend(run.path / resuming.FOLDER, uid)
    # the run directory is for reading, so that a job cannot forge its own records; what it fills is for writing
    python = tiers.python_folders() if level < sandbox.CONTAINER or _mounts_python() else []
    inside = sandbox_access.readable(attempt, level, launch)
    peers = sandbox_access.peers(attempt, rank, level)
    readable = [run.path, *python, *inside, *peers, *_behind(run.inputs), *launch.read_only]
    writable = [run.code, run.outputs, run.checkpoints, run.metrics, tmp, *launch.read_write, *([mps] if mps else [])]
    job_users.refuse_unreadable(filter(Path.exists, map(Path, [*_behind(run.inputs), *launch.read_only])), uid)
    devices = device_files(cards) + (gang_environment.rdma_files() if job.nodes > 1 else [])
    limits = job_users.who(uid, level, map(Path, [*readable, *writable]), devices, own=launch.read_write)
    client = None if mps else joining.join(attempt, held, uid=limits["uid"], tier=level, bwrap=bwrap)
    if client:
        environ |= share_environment(held, client.pipe, limited=client.limited)
        writable.append(client.pipe)
    if job.root_inside:
        limits["root"] = root_users.of_job(job, uid, *tier())
    if level >= sandbox.OWN_UID:
        limits |= _own_limits(job)
    if level >= sandbox.CONTAINER:
        limits |= _contained(job, uid, launch)
    argv = [str(part) for part in launch.argv]
    if level >= sandbox.CONTAINER and not _mounts_python():
        argv = [env.CONTAINER_PYTHON if part == sys.executable else part for part in argv]
        del environ["PATH"]  # the image knows where its programs are
    environ |= {name: str(value) for name, value in launch.env.items()}
    if "PATH" in environ:  # else the image knows
        programs = sandbox_access.programs(attempt, level, launch, peers)
        environ["PATH"] = os.pathsep.join([*programs, environ["PATH"]])
    ticket = Ticket(
        job=job.pk,
        attempt=attempt.number,
        rank=rank,
        argv=argv,
        env=root_users.environment(job, environ),
        cwd=str(run.code),
        tier=level,
        bwrap=bwrap,
        read_only=[str(path) for path in readable],
        read_write=[str(path) for path in writable],
        tmp=str(tmp),
        overlay=launch.overlay if sandbox.BUBBLEWRAP <= level < sandbox.CONTAINER else {},
        calls=env.SANDBOX_CALLS,
        **limits,
        **sandbox_access.fields(attempt, rank, level, launch),
        devices=devices,
        shm=str(client.shm) if client and client.shm else "",
        max_runtime_s=span.total_seconds() if span else None,
        listens=words(kinds.get(job.kind).capabilities(job)),
        finish_grace_s=launch.finish_grace_s,
        card_memory_bytes=sum(-(-a.device.memory_mib * a.share // 8) for a in held) << 20 if cards else 0,
        memory_bytes=_memory_bound(job.memory_mib, held[0].node.memory_mib),
        **disk_limits.of_ticket(attempt, rank, launch, tmp),
        log_quota_bytes=env.LOG_QUOTA_BYTES,
        secrets=[*launch.secrets, *secret_names.find_secrets(launch.env)],
        rlimits={"CORE": 0},
    )
    ticket.opening = opening_lines.build(ticket, attempt, held, launch)
    return ticket


def _own_limits(job: Job) -> dict[str, Any]:
    """What the kernel allows from tier 3 on. Cards bring the cluster's most cores."""
    cpus_most = bounds.bounds(job.cluster, job.device_kind).cpus_max if job.gpus_per_node else max(1.0, job.cpus)
    return {"processes": env.JOB_PROCESSES, "cpus_most": cpus_most}


def _contained(job: Job, uid: int, launch: Launch) -> dict[str, Any]:
    """What tier 4 adds: the container, of the job's own image or the operator's, and the user inside."""
    python = sys.executable if _mounts_python() else env.CONTAINER_PYTHON
    fields = engines.user_of(containers().container, uid) | {"python": python}
    fields |= launch.container
    if launch.ports or job.nodes > 1:  # others have to reach it
        fields |= {"network": "host"}
    return {"uid": uid if fields["user"].startswith(f"{uid}:") else 0, "container": fields}


def _mounts_python() -> bool:
    """Whether containers get the platform's own interpreter and packages, read-only, instead of the image's."""
    return env.CONTAINER_PYTHON == "platform"


def base_environment(attempt: Attempt, run: RunDir, rank: int, cards: list[Device], tmp: Path) -> dict[str, str]:
    """The run contract's own variables; nothing of the platform's environment is passed on."""
    job = attempt.job
    threads = max(1, int(job.cpus))
    # by uuid where there is one: a job that sees no other card counts its own from 0, and a MIG slice has nothing else
    real = [card.uuid or str(card.index) for card in cards if not card.simulated]
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(tmp),
        "TMPDIR": str(tmp),
        "USER": JOB_USER,
        "LOGNAME": JOB_USER,
        "LANG": "C.UTF-8",
        "TZ": os.environ.get("TZ", "UTC"),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": ",".join(real),
        "AIP_JOB_ID": str(job.pk),
        "AIP_ATTEMPT": str(attempt.number),
        "AIP_STARTED_AT": f"{attempt.assigned_at.timestamp():.3f}",  # a budget counts from here
        "AIP_OUTPUT_DIR": str(run.outputs),
        "AIP_CHECKPOINT_DIR": str(run.checkpoints),
        "AIP_RESUME_FROM": attempt.checkpoint_in,
        "AIP_PARAMS": str(run.params),
        "AIP_METRICS_FILE": str(run.metrics),
        "AIP_CONTROL_FILE": str(rank_dir(run, rank) / "control"),
        "AIP_GRACE_SECONDS": str(GRACE_S),
        "AIP_GPUS": str(len(cards)),
        "AIP_NODE_RANK": str(rank),
        "AIP_NODES": str(job.nodes),
        **array_environment(job),
        **dict.fromkeys(THREADS, str(threads)),
        "ORT_DISABLE_TELEMETRY": "1",  # ONNX Runtime would tell its maker names and checksums of models
        "OMP_WAIT_POLICY": "PASSIVE",  # spinning threads cost 15 times the time where jobs share cores
    }


def array_environment(job: Job) -> dict[str, str]:
    """Which of its array a job is; nothing for one by itself."""
    if job.array_id is None or job.array is None:
        return {}
    return {
        "AIP_ARRAY_ID": str(job.array_id),
        "AIP_ARRAY_INDEX": str(job.array_index),
        "AIP_ARRAY_SIZE": str(job.array.size),
    }


def share_environment(held: list[Allocation], mps: Path | None, *, limited: bool = True) -> dict[str, str]:
    """Variables of a job on a share of a GPU; none for whole GPUs.

    `AIP_GPU_MEMORY_FRACTION` is for `torch.cuda.set_per_process_memory_fraction`, which presets and the SDK call.
    Where MPS runs, its own limits come on top: those hold for any program.

    Args:
        mps: the daemon's pipe folder.
        limited: whether the card knows limits of single clients.
    """
    part = joining.shared_card(held)
    if part is None:
        return {}
    fraction = part.share / part.device.capacity
    memory_mib = int(part.device.memory_mib * fraction)
    variables = {"AIP_GPU_MEMORY_FRACTION": f"{fraction:.4f}", "AIP_GPU_MEMORY_MIB": str(memory_mib)}
    if mps:
        variables["CUDA_MPS_PIPE_DIRECTORY"] = str(mps)
    if mps and limited:
        variables |= {
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={memory_mib}M",
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{100 * fraction:g}",
        }
    return variables


def mps_folder(held: list[Allocation]) -> Path | None:
    """The pipe folder of the operator's MPS daemon, for jobs on a share of a real card; None where none runs."""
    shared = any(a.device.kind == Device.Kind.GPU and a.share < a.device.capacity for a in held)
    real = any(not a.device.simulated for a in held if a.device.kind == Device.Kind.GPU)
    folder = Path(env.CUDA_MPS_PIPE) if env.CUDA_MPS_PIPE else None
    return folder if folder and shared and real and folder.is_dir() else None


def _memory_bound(allowed_mib: int, machine_mib: int) -> int:
    """Bytes the job may hold on a node; 0, which costs no looking, where the machine has no more than that anyway."""
    return allowed_mib << 20 if allowed_mib and (not machine_mib or allowed_mib < machine_mib) else 0


def words(can: Capabilities) -> list[str]:
    """Commands of the control file that a job of these capabilities obeys."""
    return ["pause", "suspend", "finish"] if can.suspend else []


def device_files(cards: list[Device]) -> list[str]:
    """Device files that a job on these devices may open."""
    real = [card for card in cards if not card.simulated]
    if not real:
        return []
    shared = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
    minors = sorted({minor_of(_parent_of(card)) for card in real})
    slices = ["/dev/nvidia-caps"] if any(card.parent is not None for card in real) else []
    return [*(f"/dev/nvidia{minor}" for minor in minors), *slices, *shared]


def _parent_of(card: Device) -> Device:
    """The GPU that a MIG slice is cut from, or the GPU itself."""
    if card.parent is None:
        return card
    cut = Device.objects.filter(node=card.node_id, kind=card.kind, index=card.parent, parent=None)
    return cut.first() or card


def minor_of(card: Device, drivers: Path = Path("/proc/driver/nvidia/gpus")) -> int:
    """The number in the GPU's device file. It may differ from the driver's order, and does in containers."""
    for information in drivers.glob("*/information"):
        try:
            facts = dict(line.split(":", 1) for line in information.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if facts.get("GPU UUID", "").strip() == card.uuid:
            return int(facts["Device Minor"])
    return card.index


def lease_meeting(attempt: Attempt) -> int:
    """Lease a port on each node of a gang, and return that of rank 0, where the ranks meet; called when it is placed.

    Raises:
        NoPort: the whole range is taken.
    """
    leads = {held.rank: held for held in attempt.allocations.order_by("-rank", "-pk")}
    ports = [_lease_meeting_port(attempt, leads[rank]) for rank in sorted(leads)]
    return ports[0]


def _lease_meeting_port(attempt: Attempt, held: Allocation) -> int:
    leased = Allocation.objects.filter(node=held.node_id, released_at=None, port__in=env.MEETING_PORTS)
    taken = set(leased.values_list("port", flat=True))
    ports = env.MEETING_PORTS
    first = attempt.pk % len(ports)  # not the one that just failed, in case something foreign listens there
    for port in (*ports[first:], *ports[:first]):
        if port not in taken:
            Allocation.objects.filter(pk=held.pk).update(port=port)
            return port
    raise NoPort(f"no free port for a meeting on {held.node}")


def lease_port(held: Allocation) -> int:
    """Lease a free port of the node for as long as the allocation lives; the same one when called again.

    Raises:
        NoPort: the whole range is taken.
    """
    if held.port is not None:
        return held.port
    leased = Allocation.objects.filter(node=held.node_id, released_at=None, port__isnull=False)
    taken = set(leased.values_list("port", flat=True))
    for port in env.JOB_PORTS:
        if port in taken or not _bindable(port):
            continue
        try:
            with transaction.atomic():
                Allocation.objects.filter(pk=held.pk).update(port=port)
        except IntegrityError:  # another launch took it meanwhile
            continue
        held.port = port
        return port
    raise NoPort(f"no free port on {held.node}")


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _listen_host(held: Allocation) -> str:
    return held.node.address


def _behind(folder: Path) -> list[Path]:
    """What the links in inputs/ point to."""
    return [entry.resolve() for entry in folder.iterdir() if entry.is_symlink()] if folder.is_dir() else []


def on_this_node(held: list[Allocation]) -> bool:
    """Whether these allocations are ours to start."""
    return bool(held) and held[0].node.name == settings.NODE
