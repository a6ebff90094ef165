"""Whether this node offers containers, found out by trying. For those who write tickets, not for the supervisor."""

import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from workers.supervisor import records
from workers.supervisor.container import Container
from workers.supervisor.engine import Engine, Refused, Unanswered
from workers.supervisor.sandbox import CONTAINER
from workers.supervisor.ticket import Ticket

_TRIAL_S = 30.0
_PING_S = 5.0
_NOBODY = 65_534


@dataclass(frozen=True)
class Offer:
    """What the node has: `container` is for tickets (see Ticket), empty where it offers none and `why` says so."""

    container: dict[str, str] = field(default_factory=dict)
    engine: str = ""  # its name and version, for people
    why: str = ""
    remedy: str = ""

    def __bool__(self) -> bool:
        return bool(self.container)


def sockets(chosen: str = "") -> list[str]:
    """Paths where an engine may answer: the operator's choice, otherwise the usual ones, docker's first."""
    if chosen:
        return [chosen.removeprefix("unix://")]
    docker_host = os.environ.get("DOCKER_HOST", "")
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
    usual = ["/run/docker.sock", "/var/run/docker.sock", f"{runtime}/docker.sock", "/run/podman/podman.sock",
             f"{runtime}/podman/podman.sock"]  # fmt: skip
    paths = [docker_host.removeprefix("unix://"), *usual] if docker_host.startswith("unix://") else usual
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


def offer(image: str, *, chosen: str = "", root: str = "", network: str = "none") -> Offer:
    """Find an engine that answers and runs `image` the way jobs run.

    Args:
        chosen: the operator's socket; "" looks in the usual places.
        root: the platform's data folder, by which it knows its own containers again.

    Returns:
        An offer; false where there is none. Takes about a second; ask once per process.
    """
    paths = sockets(chosen)
    if not paths:
        return Offer(
            why="no docker or podman answers here",
            remedy="Install docker, or start podman's socket: systemctl enable --now podman.socket.",
        )
    offer_found = Offer()
    for path in paths:
        offer_found = _offered(path, image, root, network)
        if offer_found:
            break
    return offer_found


def _offered(path: str, image: str, root: str, network: str) -> Offer:
    engine = Engine(path, _PING_S)
    try:
        version, info = engine.send("GET", "/version"), engine.send("GET", "/info")
        parts = {part.get("Name"): part.get("Version") for part in version.get("Components") or []}
    except (Refused, Unanswered, AttributeError) as exc:
        remedy = f"See that the agent's user may open {path} (docker: the group docker) and that the engine runs."
        return Offer(why=str(exc), remedy=remedy)
    podman = "Podman Engine" in parts
    name = f"podman {parts['Podman Engine']}" if podman else f"docker {version.get('Version', '')}"
    if not image:
        return Offer(engine=name, why=f"{name} answers, but no image is named", remedy="Set AIP_CONTAINER_IMAGE.")
    if not has_image(engine, image):
        pull = f"{name.partition(' ')[0]} pull {image}"
        return Offer(engine=name, why=f"{name} has no image {image}", remedy=f"Fetch it once: {pull}.")
    container = {"engine": path, "image": image, "root": root, "network": network} | _who(info, podman=podman)
    container["cards"] = "request" if "nvidia" in (info.get("Runtimes") or {}) else "files"
    try:
        _try(container)
    except OSError as exc:
        remedy = "The image needs /bin/sh, the engine its init (docker-init or catatonit)."
        return Offer(engine=name, why=f"{name} does not run a job in {image}: {exc}", remedy=remedy)
    return Offer(container=container, engine=name)


def has_image(engine: Engine, image: str) -> bool:
    """Whether the engine holds an image; nothing is ever fetched for a job."""
    try:
        engine.send("GET", f"/images/{image}/json")
    except OSError:
        return False
    return True


def _who(info: dict[str, object], *, podman: bool) -> dict[str, str]:
    """The user of the program inside: one without rights who can write the folders that the job was given."""
    options = info.get("SecurityOptions") or []
    rootless = isinstance(options, list) and any("rootless" in str(option) for option in options)
    own = f"{os.geteuid()}:{os.getegid()}"
    if not rootless:
        return {"user": own}
    return {"user": own, "userns": "keep-id"} if podman else {"user": "0:0"}  # docker's 0 is the engine's own user


def user_of(settings: dict[str, str], uid: int) -> dict[str, str]:
    """The same container for a uid of the person's own, which only root can hand out."""
    return settings | {"user": f"{uid}:{uid}"} if os.geteuid() == 0 and not settings.get("userns") else settings


def _try(settings: dict[str, str]) -> None:
    """Run a job of one word, with the very settings a job gets.

    Raises:
        OSError: it did not run, its processes are not this machine's, or it cannot write what it was given.
    """
    with tempfile.TemporaryDirectory(prefix="aip-trial-") as folder:
        os.chmod(folder, 0o755)
        log = Path(folder, records.LOG)
        log.touch()
        uid = _NOBODY if os.geteuid() == 0 else 0
        ticket = Ticket(
            job=0, attempt=0, argv=["/bin/sh", "-c", "sleep 0.2; echo works"], env={"PATH": "/usr/bin:/bin"}, cwd="/",
            tier=CONTAINER, uid=uid, container=user_of(settings, uid), read_only=[folder], processes=100,
            memory_bytes=256 << 20, rlimits={"CORE": 0},
        )  # fmt: skip
        me = {"pid": os.getpid(), "start_ticks": records.start_ticks(os.getpid()), "boot_id": records.boot_id()}
        box = Container(folder, ticket, me)
        try:
            box.start(guarded=False)
            visible = box.is_visible()
            deadline = time.monotonic() + _TRIAL_S
            while (code := box.code(time.monotonic())) is None:
                if time.monotonic() > deadline:
                    raise OSError("it does not end")
                time.sleep(0.05)
        finally:
            box.remove()
        if not visible:
            raise OSError("its processes are not among this machine's")
        if code or "works" not in log.read_text():
            raise OSError(f"it ended with {code}: {log.read_text()[:200].strip() or 'it could not write its log'}")
