"""What launching hands to the supervisor: everything it needs, so that it never asks anybody.

A plain class: the supervisor starts with every job, and `dataclasses` alone would cost it 5 ms.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Ticket:
    """One command to keep. Times are seconds, sizes bytes, paths absolute.

    Args:
        env: the whole environment: nothing is inherited.
        tier: see sandbox; `bwrap` is the path of the bubblewrap binary, needed for tier 2.
        tmp: folder that stands for /tmp from tier 2 on.
        overlay: an image in tiers 2 and 3: its `layers`, the lowest first, at `target`; below a writable `upper` with
            the file system's `work` beside it, or for reading. `mapped`: folder where they become the uid's own.
            `system`: folders of the machine that the job has its own layer over, where it is root inside: each with
            its `target`, an `upper`, and `lower` and `work` unless `upper` stands for all of it; `mapped`: the files
            of `lower` become its own.
        root: it is root inside: `uids` and `gids` of its user namespace, see `userns`; {} is an ordinary job.
        uid: user and group id the job runs under; 0 is the agent's own. Only root can hand out another.
        groups: what else it belongs to below tier 4, to find its way to the data and open its cards.
        calls: system calls that it may use although no job needs them (names of seccomp.CALLS).
        processes, cpus_most: most processes and cores' worth of time from tier 3 on; 0 is no limit.
        container: in tier 4 the `engine`'s socket, the `image`, the `user` as "uid:gid", the `network` ("none" unless
            more is allowed), how to hand over `cards` ("request" or "files"), the `userns`, the platform's `root` and
            the `python` that can be the exec server; `writable`: what it writes can be saved as an image.
        devices: device files the job may open, besides the harmless.
        listens: words of the control file the script obeys.
        max_runtime_s: paused time does not count; None is no limit.
        secrets: values of the job's own to star out in its log.
        opening: what its log begins with, see log_lines; a log that begins with nothing is not told its end either.
        memory_bytes: most memory all processes together may hold; 0 is no limit.
        card_memory_bytes: most memory of its cards: so much more it may hold while it is evicted from them.
        disk_bytes: most disk space that `disk_folders` may take; 0 is no limit.
        disk_project: project number for a quota on them, where the kernel can keep one; 0 is none.
        libcuda: name or path of the CUDA driver's library, for evictions.
        stop_grace_s: from TERM to KILL after `stop`; term_grace_s: after everything else.
        suspend_grace_s, finish_grace_s: time to write a checkpoint, or to save and evaluate, before TERM.
        rlimits: soft limits by the name after RLIMIT_.
        exec_socket: where the job's exec server is to be reached from outside its sandbox; "": it has none.
        own_network: whether the job has a network of its own, with nothing but a loopback, from tier 2 on.
        shm: folder that stands for /dev/shm from tier 2 on, where the job shares it with an MPS daemon; "": its own.
        egress_socket: what the job's connections to other machines are handed to, where its network is its own.
    """

    def __init__(
        self,
        *,
        job: int,
        attempt: int,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        rank: int = 0,
        tier: int = 0,
        bwrap: str = "",
        read_only: list[str] | None = None,
        read_write: list[str] | None = None,
        tmp: str = "",
        overlay: "dict[str, Any] | None" = None,
        root: "dict[str, Any] | None" = None,
        uid: int = 0,
        groups: list[int] | None = None,
        calls: list[str] | None = None,
        processes: int = 0,
        cpus_most: float = 0.0,
        container: "dict[str, Any] | None" = None,
        devices: list[str] | None = None,
        listens: list[str] | None = None,
        max_runtime_s: float | None = None,
        memory_bytes: int = 0,
        card_memory_bytes: int = 0,
        disk_bytes: int = 0,
        disk_folders: list[str] | None = None,
        disk_project: int = 0,
        libcuda: str = "libcuda.so.1",
        log_quota_bytes: int = 2 << 30,
        secrets: list[str] | None = None,
        opening: list[str] | None = None,
        stop_grace_s: float = 10.0,
        term_grace_s: float = 30.0,
        suspend_grace_s: float = 60.0,
        finish_grace_s: float = 900.0,
        rlimits: dict[str, int] | None = None,
        exec_socket: str = "",
        own_network: bool = False,
        egress_socket: str = "",
        shm: str = "",
    ) -> None:
        self.job, self.attempt, self.rank = job, attempt, rank
        self.argv, self.env, self.cwd = argv, env, cwd
        self.tier, self.bwrap, self.tmp = tier, bwrap, tmp
        self.overlay: dict[str, Any] = overlay or {}
        self.root: dict[str, Any] = root or {}
        self.uid, self.groups, self.calls = uid, groups or [], calls or []
        self.processes, self.cpus_most = processes, cpus_most
        self.read_only, self.read_write = read_only or [], read_write or []
        self.container = container or {}
        self.devices, self.listens = devices or [], listens or []
        self.max_runtime_s, self.memory_bytes, self.log_quota_bytes = max_runtime_s, memory_bytes, log_quota_bytes
        self.card_memory_bytes, self.libcuda = card_memory_bytes, libcuda
        self.disk_bytes, self.disk_folders, self.disk_project = disk_bytes, disk_folders or [], disk_project
        self.stop_grace_s, self.term_grace_s = stop_grace_s, term_grace_s
        self.suspend_grace_s, self.finish_grace_s = suspend_grace_s, finish_grace_s
        self.rlimits, self.secrets, self.opening = rlimits or {}, secrets or [], opening or []
        self.exec_socket, self.own_network, self.egress_socket = exec_socket, own_network, egress_socket
        self.shm = shm

    @classmethod
    def from_json(cls, value: "dict[str, Any]") -> "Ticket":
        """Build a ticket from launch.json; unknown keys are ignored so that old and new may meet."""
        fields = cls.__init__.__annotations__
        return cls(**{key: item for key, item in value.items() if key in fields})

    def to_json(self) -> "dict[str, Any]":
        """Return the ticket as written to launch.json."""
        return dict(vars(self))

    def paths(self) -> tuple[list[str], list[str]]:
        """Return what the command may read and what it may also write, existing paths only."""
        return [p for p in self.read_only if os.path.exists(p)], [p for p in self.read_write if os.path.exists(p)]
