"""Root inside: programs of a job that are root of a user namespace of their own, and the person's user outside.

Where the platform is root, uid 0 inside is the uid of the job, and what packages know by number (mail, www-data, _apt)
is a range that no other person has. Elsewhere it is the platform's user and nobody else. Either way the kernel asks
for rights in the namespace that owns a thing, so this root may change what belongs to the job and nothing more.

The first programs that run inside may be the job's own, so everything is given up before bubblewrap begins: it builds
the sandbox as that root. What it needs below folders that are closed for the job is mounted where it can get to.
"""

import ctypes
import os

from workers.supervisor import idmapped, userns
from workers.supervisor.ticket import Ticket

#: what installing packages and serving low ports of its own network takes. No mounts, no devices, no tracing
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")
#: by number, those and what bubblewrap needs before it gives them up: SETPCAP, NET_ADMIN, SYS_CHROOT, SYS_ADMIN
_BOUNDING = frozenset((0, 1, 3, 4, 5, 6, 7, 8, 10, 12, 18, 21))
_PLACES = ("/mnt", "/media", "/srv")  # some folder of the machine that everybody may enter, hidden from the job
_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_SLAVE, _MS_NOSUID, _MS_NODEV = 0x1000, 0x4000, 0x80000, 0x2, 0x4
_CAPBSET_READ, _CAPBSET_DROP = 23, 24
_libc = ctypes.CDLL(None, use_errno=True)


def flags() -> list[str]:
    """bubblewrap's options for the rights of this root."""
    return [word for name in CAPABILITIES for word in ("--cap-add", f"CAP_{name}")]


def system(ticket: Ticket) -> "list[dict[str, str]]":
    """Folders of the machine that the job has a writable layer over, outer ones first; see `Ticket`."""
    folders: list[dict[str, str]] = ticket.overlay.get("system", []) if ticket.root else []
    return folders


def program(ticket: Ticket) -> str:
    """Path of bubblewrap, with the libraries in its folder."""
    if not _moves(ticket) or ticket.bwrap.startswith("/usr/"):
        return ticket.bwrap
    top = _top_of(ticket.bwrap)
    return os.path.join(_at("program"), os.path.relpath(ticket.bwrap, top))


def place(ticket: Ticket, path: str) -> str:
    """Where bubblewrap finds something that was granted to the job."""
    if not _moves(ticket):
        return path
    granted = _granted(ticket)
    if path in granted:
        return _at(str(granted.index(path)))
    folder, name = os.path.split(path)
    return os.path.join(_at(str(granted.index(folder))), name)


def layers(ticket: Ticket) -> list[str]:
    """Where bubblewrap finds the layers of the job's image, the lowest first."""
    own: list[str] = ticket.overlay.get("layers", [])
    return [_at(f"layer{number}") for number in range(len(own))] if _moves(ticket) else own


def lower(ticket: Ticket, target: str) -> str:
    """Where bubblewrap finds the machine's own files for one of `system`."""
    folder = next(each for each in system(ticket) if each["target"] == target)
    return _at("system" + target.replace("/", "-")) if folder.get("mapped") else folder["lower"]


def enter(ticket: Ticket) -> None:
    """Make the calling process this root, for ever.

    Raises:
        OSError: the kernel refused.
    """
    if not ticket.root:
        return
    users = userns.new(ticket.root["uids"], ticket.root["gids"])
    try:
        if _moves(ticket):
            _mount_granted(ticket, users)
            os.setgroups(ticket.groups)
        userns.enter(users)
    finally:
        os.close(users)
    number = 0
    while _libc.prctl(_CAPBSET_READ, number, 0, 0, 0) >= 0:
        if number not in _BOUNDING:
            _checked("capabilities", _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0))
        number += 1


def _moves(ticket: Ticket) -> bool:
    """Whether what the job was granted has to be mounted where its user gets to."""
    return bool(ticket.root) and os.geteuid() == 0


def _at(name: str) -> str:
    return os.path.join(next(filter(os.path.isdir, _PLACES), _PLACES[0]), name)


def _top_of(program_path: str) -> str:
    """The folder of packages that contains a program of a wheel and its libraries."""
    folder = os.path.dirname(program_path)
    return folder if os.path.basename(folder) != "_bin" else os.path.dirname(os.path.dirname(folder))


def _granted(ticket: Ticket) -> list[str]:
    """Everything that bubblewrap mounts from where the job's user may not get to.

    Of layers it is the folder they lie in: the kernel wants an upper layer and what belongs to it in one mount.
    """
    own = [ticket.overlay.get("upper", ""), *(each["upper"] for each in system(ticket))]
    folders = [os.path.dirname(path) for path in own]
    return list(dict.fromkeys(filter(None, [*ticket.read_only, *ticket.read_write, ticket.tmp, ticket.shm, *folders])))


def _mount_granted(ticket: Ticket, users: int) -> None:
    """Mount all that was granted below one folder, visible to the calling process and its children only."""
    _checked("mounts of its own", _libc.unshare(_CLONE_NEWNS))
    _checked("mounts of its own", _libc.mount(None, b"/", None, _MS_REC | _MS_SLAVE, None))
    wanted = {path: place(ticket, path) for path in _granted(ticket)}
    if program(ticket) != ticket.bwrap:
        wanted[_top_of(ticket.bwrap)] = _at("program")
    opened = {
        target: os.open(path, os.O_PATH | os.O_CLOEXEC) for path, target in wanted.items() if os.path.exists(path)
    }
    mapped = dict(zip(layers(ticket), ticket.overlay.get("layers", []), strict=True))
    mapped |= {lower(ticket, each["target"]): each["lower"] for each in system(ticket) if each.get("mapped")}
    trees = {target: idmapped.mapped_tree(path, users) for target, path in mapped.items()}
    top = os.fsencode(_at(""))
    _checked("mounts of its own", _libc.mount(b"none", top, b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=0755,size=1m"))
    for target, descriptor in opened.items():
        _bind(descriptor, target)
        os.close(descriptor)
    for target, tree in trees.items():
        os.mkdir(target, 0o755)
        idmapped.attach(tree, target)


def _bind(descriptor: int, target: str) -> None:
    source = f"/proc/self/fd/{descriptor}"
    if os.path.isdir(source):
        os.mkdir(target, 0o755)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    _checked(target, _libc.mount(source.encode(), os.fsencode(target), None, _MS_BIND | _MS_REC, None))


def _checked(name: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
