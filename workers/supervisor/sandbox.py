"""How much of the machine a job sees: 0 all of it, 1 Landlock, 2 bubblewrap, 3 and a uid per person, 4 a container.

Below tier 3 this separates colleagues, not enemies.
Everything is by allowance: system folders and the granted paths are there,
whatever else lies on the machine (this repository, the data root, homes) is not.
In every tier a job has no capability, gains none by any program, and may not ask the kernel for what no job needs.
"""

import os
import shlex
import stat
import time

from workers.supervisor import env_file, idmapped, landlock, privileges, records, root_inside, seccomp
from workers.supervisor.ticket import Ticket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PLAIN, LANDLOCK, BUBBLEWRAP, OWN_UID, CONTAINER = 0, 1, 2, 3, 4

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "debian_version", "fonts", "group", "host.conf", "hosts",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "mime.types", "nsswitch.conf", "nvidia",
    "OpenCL", "os-release", "passwd", "pki", "protocols", "resolv.conf", "services", "ssl", "terminfo", "timezone",
    "vulkan",
)  # fmt: skip
#: of ETC what changes with the machine's packages alone: a copy in memory costs a fraction of a mount. Names of hosts
#: stay mounted: networks rewrite them in place, and services run for weeks
COPIED = ("debian_version", "group", "host.conf", "ld.so.cache", "ld.so.conf", "localtime", "magic", "mime.types",
          "nsswitch.conf", "os-release", "passwd", "protocols", "services", "timezone")  # fmt: skip
_COPY_BYTES = 256 << 10  # larger files are mounted: nobody counts this memory
_RUN_BYTES = 64 << 20  # of /run, where packages are installed
RUN = ("/run/systemd/resolve", "/run/nvidia-persistenced", "/run/nscd")
#: of the kernel's own folders: what tells of the whole machine, or works on it; torch and CUDA read none of it
_EMPTY_FILES = ("kcore", "keys", "key-users", "kallsyms", "kmsg", "timer_list", "interrupts", "sched_debug",
                "latency_stats", "sysrq-trigger")  # fmt: skip
_EMPTY_FOLDERS = ("/proc/acpi", "/proc/scsi", "/sys/fs", "/sys/kernel", "/sys/firmware")
FILTER = "seccomp"
EXEC_INPUT = 3  # what the process that becomes the exec server reads; shells know descriptors of one digit
CONNECT = "aip-connect"  # beside the socket of the egress proxy
_SSH, _SSH_CONFIG = "/usr/bin/ssh", "/etc/ssh/ssh_config"
_SSH_CONFIG_BESIDE = "/etc/ssh/ssh_config.d/aip.conf"  # where root inside may install ssh, which brings the other one
SETPRIV = ("/usr/bin/setpriv", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
_LOADS = ("LD_", "GLIBC_", "GCONV_", "LOCPATH", "NLSPATH", "MALLOC_")  # variables that the C library obeys
_HARMLESS_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm", "pts", "ptmx", "fd", "stdin",
                     "stdout", "stderr")  # fmt: skip


def system_paths() -> list[str]:
    """Return what every job may read."""
    names = [*SYSTEM, *RUN, *(f"/etc/{name}" for name in ETC)]
    return [name for name in names if os.path.exists(name)]


def handed(ticket: Ticket) -> "dict[str, int]":
    """Files in memory that bubblewrap takes over by their number: copies, the filter of system calls, the user's name.

    Without a name for its number ssh, git over ssh and many libraries refuse to work. The caller closes them.
    """
    if ticket.tier < BUBBLEWRAP:
        return {}
    contents = {} if "/etc" in _own_system(ticket) else copies()
    if seccomp.works():
        contents[FILTER] = seccomp.program(ticket.calls)
    home = ticket.env.get("HOME", "/tmp")
    if ticket.root and "/etc/passwd" in contents:
        contents["/etc/passwd"] = _users(f"root:x:0:0:root:{home}:/bin/bash\n")
    if not ticket.uid and not ticket.root and "/etc/passwd" in contents:
        name = _name_of(os.geteuid())
        contents["/etc/passwd"] = _users(f"{name}:x:{os.geteuid()}:{os.getegid()}::{home}:/bin/sh\n")
    if ticket.uid and not ticket.root:
        contents["/etc/passwd"] = _users(f"job:x:{ticket.uid}:{ticket.uid}::{home}:/bin/sh\n")
        contents["/etc/group"] = _read("/etc/group") + f"job:x:{ticket.uid}:\n".encode()
    if ticket.own_network and ticket.egress_socket:
        contents[_SSH_CONFIG] = _ssh_config(ticket)
    contents[env_file.PATH] = env_file.content(ticket.env)
    if later := _later(ticket):
        contents[env_file.LATER] = env_file.content(later)
    return {name: _in_memory(content) for name, content in contents.items()}


def _users(own: str) -> bytes:
    """The machine's users, and the job's own line instead of others of that name or number."""
    name, _x, number = own.split(":")[:3]
    others = []
    for line in _read("/etc/passwd").splitlines(keepends=True):
        fields = line.split(b":")
        if fields[0] != name.encode() and fields[2:3] != [number.encode()]:
            others.append(line)
    return b"".join([own.encode(), *others])


def _name_of(uid: int) -> str:
    for line in _read("/etc/passwd").splitlines():
        fields = line.split(b":")
        if fields[2:3] == [str(uid).encode()]:
            return os.fsdecode(fields[0])
    return "job"


def _ssh_config(ticket: Ticket) -> bytes:
    """How ssh, and with it git and rsync, leave a network of the job's own; a person's own file goes before it."""
    program = os.path.join(os.path.dirname(ticket.egress_socket), CONNECT)
    return f"Host *\n    ProxyCommand {shlex.quote(program).replace('%', '%%')} '%h' %p\n".encode()


def _in_memory(content: bytes) -> int:
    opened = past_exec_input(os.memfd_create("handed", 0))  # children inherit it
    os.pwrite(opened, content, 0)  # which reads it from the start
    return opened


def past_exec_input(opened: int) -> int:
    """Return this descriptor, or a copy where it has the number that the exec server's input is to have."""
    if opened != EXEC_INPUT:
        return opened
    copy = os.dup(opened)
    os.set_inheritable(copy, os.get_inheritable(opened))
    os.close(opened)
    return copy


def copies() -> "dict[str, bytes]":
    """Return what the files of COPIED hold now. Files that did not change since the last call are not read again."""
    return {path: content for path in (f"/etc/{name}" for name in COPIED) if (content := _copy(path))}


_copied: "dict[str, tuple[tuple[int, ...], bytes]]" = {}  # by path: inode, mode, size and times, and the content then


def _copy(path: str) -> bytes:
    """Content of a small file that is readable for everyone; empty for any other."""
    try:
        status = os.stat(path)
    except OSError:
        return b""
    now = (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    before, content = _copied.get(path, ((), b""))
    if before != now:
        small = stat.S_ISREG(status.st_mode) and status.st_size <= _COPY_BYTES
        content = _read(path) if small and status.st_mode & stat.S_IROTH else b""
        if time.time() - status.st_ctime > 1.0:  # another change within one tick of the clock would not be seen
            _copied[path] = now, content
    return content


def _read(path: str) -> bytes:
    try:
        return records.content(path)
    except OSError:
        return b""


def wrapped(ticket: Ticket, files: "dict[str, int] | None" = None, before: "Sequence[str]" = ()) -> list[str]:
    """Return the command as it is started: as it is, or inside bubblewrap.

    From tier 2 on the job lives in a pid namespace whose first process dies with the
    supervisor: a killed supervisor leaves nothing behind. Where the supervisor is root,
    setpriv gives up everything inside, for ever, before the first line of the job.

    Args:
        files: as `handed` returns them, open in the process that becomes bubblewrap.
        before: a program that begins inside and becomes the command, which it is given.
    """
    if ticket.tier < BUBBLEWRAP:
        return [*before, *ticket.argv]
    files = files or {}
    argv = [root_inside.program(ticket), "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    argv += ["--unshare-net"] if ticket.own_network else []
    argv += ["--die-with-parent", "--cap-drop", "ALL"]
    is_root = os.geteuid() == 0 and not ticket.root
    argv += root_inside.flags() if ticket.root else []
    if is_root:  # bubblewrap as root keeps what a program could gain: setpriv empties that
        argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    argv += [*_proc(), "--dev", "/dev"]
    shm = ticket.shm if os.path.isdir(ticket.shm) else ""
    argv += (
        ["--bind", root_inside.place(ticket, shm), "/dev/shm"]
        if shm
        else _folder_for_all("/dev/shm", ticket.memory_bytes)
    )
    for device in ticket.devices:
        argv += ["--dev-bind-try", device, device]
    replaced = _own_system(ticket)
    system = [path for path in system_paths() if not path.startswith(tuple(replaced)) or os.path.islink(path)]
    makes_folders = is_root or bool(ticket.root)
    argv += ["--perms", "0755", "--size", str(_RUN_BYTES), "--tmpfs", "/run", "--dir", "/run/lock"] if replaced else []
    argv += _way_to(system) if makes_folders else []
    for path in system:
        if path in files:
            argv += ["--perms", "0644", "--file", str(files[path]), path]
        elif path in SYSTEM and os.path.islink(path):
            argv += ["--symlink", os.readlink(path), path]
        else:
            argv += ["--ro-bind", path, path]
    for path in (env_file.PATH, env_file.LATER):
        argv += ["--perms", "0444", "--file", str(files[path]), path] if path in files else []
    argv += _system(ticket)
    if _SSH_CONFIG in files:
        path = _SSH_CONFIG_BESIDE if "/etc" in replaced and not os.path.exists(_SSH) else _SSH_CONFIG
        argv += [*_way_to([path]), "--perms", "0444", "--ro-bind-data", str(files[_SSH_CONFIG]), path]
    tmp = ticket.tmp and root_inside.place(ticket, ticket.tmp)
    argv += ["--bind", tmp, "/tmp"] if tmp else _folder_for_all("/tmp", ticket.memory_bytes)
    read, write = ticket.paths()
    granted = dict.fromkeys(read, "--ro-bind") | dict.fromkeys(write, "--bind")
    argv += _way_to(granted) if makes_folders else []
    for path in sorted(granted, key=lambda path: path.count("/")):  # a folder before what lies in it
        argv += [granted[path], root_inside.place(ticket, path), path]
    argv += _image(ticket) if ticket.overlay.get("target") else []
    argv += _sys()  # late: it brings mounts along, and bubblewrap reads the list of all mounts after each one
    argv += ["--remount-ro", "/"]  # what is not mounted there is memory that nobody counts
    if FILTER in files:
        argv += ["--seccomp", str(files[FILTER])]
    user = ["--groups=" + ",".join(map(str, ticket.groups)) if ticket.groups else "--clear-groups"]
    user += [f"--reuid={ticket.uid}", f"--regid={ticket.uid}"] if ticket.uid else []
    give_up = [*SETPRIV, *user, "--"] if is_root else []
    set_later = env_file.wrapper(env_file.LATER) if _later(ticket) else []
    return [*argv, "--chdir", ticket.cwd, "--", *give_up, *set_later, *before, *ticket.argv]


def _image(ticket: Ticket) -> list[str]:
    """An image at its place: its layers, below the writable one where the job has a box."""
    target, upper = ticket.overlay["target"], ticket.overlay.get("upper")
    places = root_inside.layers(ticket) if ticket.root else idmapped.places(ticket)
    argv = _way_to([target]) if os.geteuid() == 0 or ticket.root else []
    if not upper and len(places) == 1:
        return [*argv, "--ro-bind", places[0], target]
    argv += [word for layer in places for word in ("--overlay-src", layer)]
    if not upper:
        return [*argv, "--ro-overlay", target]
    upper, work = (root_inside.place(ticket, path) for path in (upper, ticket.overlay["work"]))
    return [*argv, "--overlay", upper, work, target]


def _own_system(ticket: Ticket) -> list[str]:
    """Folders of the machine that a job with root inside has as its own."""
    return [each["target"] for each in root_inside.system(ticket)]


def _system(ticket: Ticket) -> list[str]:
    """Those folders, outer ones first, with what of the machine stays visible in them."""
    argv: list[str] = []
    for each in root_inside.system(ticket):
        upper, target = root_inside.place(ticket, each["upper"]), each["target"]
        if "lower" in each:
            work = root_inside.place(ticket, each["work"])
            argv += ["--overlay-src", root_inside.lower(ticket, target), "--overlay", upper, work, target]
        else:
            argv += ["--bind", upper, target]
    if argv:
        for path in ("/etc/hosts", "/etc/resolv.conf"):
            argv += ["--ro-bind-try", path, path]
    return argv


def environment(ticket: Ticket) -> "dict[str, str]":
    """Return the variables that may be set before rights are given up; `wrapped` sets the others after that.

    What chooses the libraries of a program (ld.so(8)) would otherwise let a job run its code in bubblewrap, outside of
    its sandbox and as the platform's user.
    """
    if ticket.tier < BUBBLEWRAP:
        return ticket.env
    return {name: value for name, value in ticket.env.items() if not name.startswith(_LOADS)}


def _later(ticket: Ticket) -> "dict[str, str]":
    """The variables that `environment` leaves out. No shell and no C library reads one whose name is no identifier."""
    now = environment(ticket)
    return {name: value for name, value in ticket.env.items() if name not in now and name.isidentifier()}


def _proc() -> list[str]:
    """/proc, its settings for reading, without what a job has no business with; bubblewrap hides only what is there."""
    argv = ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    for name in _EMPTY_FILES:
        if os.path.exists(f"/proc/{name}"):
            argv += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    return argv + _emptied("/proc/")


def _sys() -> list[str]:
    """/sys for reading, without what a job has no business with."""
    return ["--ro-bind-try", "/sys", "/sys", *_emptied("/sys/")]


def _emptied(top: str) -> list[str]:
    folders = [folder for folder in _EMPTY_FOLDERS if folder.startswith(top) and os.path.isdir(folder)]
    return [flag for folder in folders for flag in ("--perms", "0555", "--tmpfs", folder, "--remount-ro", folder)]


def _folder_for_all(path: str, most_bytes: int) -> list[str]:
    """A folder in memory that every user may write, as programs expect it, of bounded size."""
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return ["--perms", "1777", "--size", str(most_bytes or half), "--tmpfs", path]


def _way_to(paths: "Iterable[str]") -> list[str]:
    """Flags that make the folders above these, but what the system's hold; root could alone enter them otherwise."""
    folders: set[str] = set()
    for path in paths:
        while (path := path[: path.rfind("/")]) and path not in folders:
            if not path.startswith(SYSTEM):
                folders.add(path)
    return [flag for folder in sorted(folders) for flag in ("--perms", "0755", "--dir", folder)]


def umask(ticket: Ticket) -> int:
    """What files of supervisor and job deny: with a uid of its own all but the job and the platform is outside."""
    return 0o022 if ticket.uid or ticket.tier >= CONTAINER else 0o027


def chown_writable(ticket: Ticket) -> None:
    """Make what the job may write its uid's own; files of other owners stay theirs, links are not followed.

    Inner folders come first, so that one that is the job's already was given as a whole. Folders are held open
    meanwhile: another job of the same person cannot put a link in their place.
    """
    shared = ticket.env.get("CUDA_MPS_PIPE_DIRECTORY")
    for top in [*ticket.paths()[1], ticket.tmp]:
        if not top or top == shared or os.lstat(top).st_uid != os.geteuid():
            continue
        for _path, folders, files, at in os.fwalk(top, topdown=False):
            for name in (*folders, *files):
                if os.stat(name, dir_fd=at, follow_symlinks=False).st_uid == os.geteuid():
                    os.chown(name, ticket.uid, ticket.uid, dir_fd=at, follow_symlinks=False)
        os.lchown(top, ticket.uid, ticket.uid)


def enter(ticket: Ticket) -> None:
    """Restrict the calling process for ever; runs in the child, just before the command.

    Raises:
        OSError: the kernel refused.
    """
    if ticket.tier == LANDLOCK:
        read, write = ticket.paths()
        devices = [f"/dev/{name}" for name in _HARMLESS_DEVICES] + ticket.devices
        landlock.restrict([*system_paths(), "/proc", "/sys", *read], [*write, *devices])
    elif ticket.tier >= BUBBLEWRAP:
        landlock.scope()
    if ticket.tier < BUBBLEWRAP:
        privileges.give_up(ticket.uid, ticket.groups)
        if seccomp.works():
            seccomp.load(seccomp.program(ticket.calls))
