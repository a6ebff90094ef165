"""What a job is left with in each tier: no capability, no way to gain one, no call that no job needs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.workers.supervised import BEST, PYTHON, UID, Run
from workers.supervisor import env_file, landlock, processes, records, sandbox, seccomp
from workers.supervisor.ticket import Ticket

TIERS = range(BEST + 1)
OPEN_PYTHON = "/usr/bin/python3"  # ours may lie in root's home, where no user of a job gets without a sandbox
STATUS = "print(open('/proc/self/status').read())"
#: calls of a number with arguments that hurt nobody; prints what each answered
CALLS = """
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def ask(number, *args):
    ctypes.set_errno(0)
    found = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args])
    return errno.errorcode[ctypes.get_errno()] if found < 0 else "allowed"
print(json.dumps({name: ask(*call) for name, call in json.loads(sys.argv[1]).items()}))
"""


@pytest.fixture
def ground():
    """A folder that an ordinary user may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="aip-sandbox-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def said(ground):
    """What a program prints that runs in a tier."""
    made = []

    def one(program: str, *args: str, tier: int, **more: object) -> str:
        python = OPEN_PYTHON if tier < 2 and more.get("uid") else PYTHON
        job = Run(ground / str(len(made)), tier, [python, "-I", "-S", "-c", program, *args], **more)
        made.append(job)
        assert job.start() == 0
        assert job.exit()["code"] == 0, job.log()
        return job.log()

    yield one
    for job in made:
        if records.is_alive(job.supervisor):
            os.kill(job.supervisor["pid"], signal.SIGKILL)
        processes.send(job.programs(), signal.SIGKILL)


def fields(status: str) -> dict[str, str]:
    return {name: value.strip() for name, _colon, value in (line.partition(":") for line in status.splitlines())}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("uid", [0, UID] if os.geteuid() == 0 else [0])
def test_sandbox_leaves_a_job_without_capabilities_for_ever(said, tier, uid):
    found = fields(said(STATUS, tier=tier, **({"uid": uid} if tier < 3 else {})))

    sets = {name: int(found[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert sets == dict.fromkeys(sets, 0)
    assert int(found["CapBnd"], 16) == 0 or os.geteuid()  # an ordinary user outside a namespace cannot empty it
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
    if uid or (tier == 3):
        assert found["Uid"].split() == found["Gid"].split() == [str(UID)] * 4
        assert found["Groups"] == ""


@pytest.mark.parametrize("tier", TIERS)
def test_sandbox_hands_a_job_every_signal_as_programs_expect_it(said, tier):
    """The supervisor ignores INT, HUP, USR1, USR2 and PIPE; a shell that inherits that knows no Ctrl-C."""
    shell = 'while read -r line; do echo "$line"; done </proc/self/status'
    found = fields(said(f"import os; os.execv('/bin/sh', ['sh', '-c', {shell!r}])", tier=tier))

    ignored = int(found["SigIgn"], 16)
    names = ("SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGTERM", "SIGCHLD")
    assert [name for name in names if ignored >> (getattr(signal, name) - 1) & 1] == []
    assert int(found["SigBlk"], 16) == 0


@pytest.mark.parametrize("tier", TIERS)
def test_sandbox_gives_any_shell_the_environment_by_a_file(said, tier):
    """Values are taken as they are, whatever a shell would make of them."""
    odd = "it's $HOME; `id`\nsecond \\ line"
    program = """
import os, subprocess, sys
place = "/pod.env" if os.path.exists("/pod.env") else os.environ["RUN"] + "/tmp/pod.env"
read = ["/bin/sh", "-c", '. "$0"; printf %s "$ODD"', place]
sys.stdout.write(subprocess.run(read, env={}, capture_output=True, text=True, check=True).stdout)
if place == "/pod.env":
    assert not os.access(place, os.W_OK)
"""

    assert said(program, tier=tier, env={"ODD": odd, "not a name": "x"}) == odd
    assert not Path(env_file.PATH).exists()


@pytest.mark.parametrize("tier", TIERS)
def test_sandbox_refuses_system_calls_that_no_job_needs(said, tier):
    """Arguments are wrong on purpose: without the filter these answer EFAULT, EBADF and the like, or do no harm."""
    column, _word, clone, ioctl, sock = seccomp.MACHINES[os.uname().machine]
    dangerous = {"reboot", "syslog", "iopl", "ioperm"}
    calls = {row[0]: [row[column], *[-1] * 5] for row in seccomp.CALLS if row[0] not in dangerous and row[column] >= 0}
    calls |= {
        "clone in a user namespace": [clone, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0],
        "type into a terminal": [ioctl, 0, 0x5412, 0], "ciphers of the kernel": [sock, 38, 5, 0],
        "past the network": [sock, 40, 1, 0],
    }  # fmt: skip

    found = json.loads(said(CALLS, json.dumps(calls | {"clone3": [435, 0, 0]}), tier=tier))

    assert found.pop("clone3") == "ENOSYS"
    assert {name: answer for name, answer in found.items() if answer != "EPERM"} == {}


@pytest.mark.parametrize("tier", TIERS)
def test_sandbox_allows_a_refused_call_where_the_operator_says_so(said, tier):
    asked = json.dumps({"ptrace": [seccomp.CALLS[15][1], 16, 999_999, 0, 0]})
    assert seccomp.CALLS[15][0] == "ptrace"

    assert json.loads(said(CALLS, asked, tier=tier)) == {"ptrace": "EPERM"}
    assert json.loads(said(CALLS, asked, tier=tier, calls=["ptrace"])) == {"ptrace": "ESRCH"}


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_seccomp_filter_answers_each_call_of_each_machine_as_its_table_says(machine):
    """The filter is walked by hand, as the kernel does it: also for the machine that this is not."""
    column, word, clone, ioctl, sock = seccomp.MACHINES[machine]
    code = seccomp.program(machine=machine)
    refused = {row[column] for row in seccomp.CALLS if row[column] >= 0}
    asked = {number: answer(code, number, word) for number in range(600) if number not in (clone, ioctl, sock)}

    assert {number for number, said in asked.items() if said == "EPERM"} == refused
    assert {number for number, said in asked.items() if said == "ENOSYS"} == {435}
    assert answer(code, clone, word, 0x01200011) == "allowed"  # fork
    assert answer(code, clone, word, 0x10000011) == "EPERM"  # a user namespace
    assert (answer(code, ioctl, word, 0, 0x5401), answer(code, ioctl, word, 0, 0x5412)) == ("allowed", "EPERM")
    assert (answer(code, sock, word, 1), answer(code, sock, word, 40)) == ("allowed", "EPERM")
    assert answer(code, 0, 0x40000003) == "ENOSYS"  # a program of another machine
    if machine == "x86_64":
        assert answer(code, 0x40000000 + 165, word) == "ENOSYS"


def answer(code: bytes, number: int, word: int, *arguments: int) -> str:
    """What a filter says to one call."""
    seen = struct.pack("<IIQ6Q", number, word, 0, *arguments, *[0] * (6 - len(arguments)))
    at, held = 0, 0
    while True:
        kind, yes, no, value = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        if kind == 0x20:
            held = struct.unpack_from("<I", seen, value)[0]
        elif kind == 0x06:
            return {0x7FFF0000: "allowed", 0x50001: "EPERM", 0x50026: "ENOSYS"}[value]
        else:
            holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[kind]
            at += yes if holds else no


KERNEL = """
import json, os
def writes(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
        return True
    except OSError:
        return False
def reads(path):
    try:
        return bool(open(path, 'rb').read(1))
    except OSError:
        return False
def files(*tops):
    return [os.path.join(at, name) for top in tops for at, _, names in os.walk(top) for name in names]
print(json.dumps({
    'written': list(filter(writes, [*files('/proc/sys'), '/proc/sysrq-trigger', '/proc/kcore', '/sys/power/state'])),
    'read': [p for p in ('kcore', 'keys', 'key-users', 'kallsyms', 'kmsg', 'timer_list') if reads('/proc/' + p)],
    'knobs': len(files('/sys/kernel', '/sys/fs', '/sys/firmware')),
    'hostname': reads('/proc/sys/kernel/hostname'),
    'cards': os.path.isdir('/sys/class') and os.path.isdir('/sys/devices'),
}))
"""


@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier >= 2])
def test_sandbox_shows_of_the_kernel_what_programs_read_and_lets_nothing_be_set(said, tier):
    """Root of the host by /proc/sys/kernel/core_pattern: whoever is uid 0 inside could write it."""
    found = json.loads(said(KERNEL, tier=tier))

    assert found == {"written": [], "read": [], "knobs": 0, "hostname": True, "cards": True}


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user may write nothing there anyway")
def test_sandbox_without_bubblewrap_lets_the_uid_of_a_job_set_nothing_of_the_kernel(said):
    found = json.loads(said(KERNEL, tier=0, uid=UID))

    assert [path for path in found["written"] if not path.endswith(("ns_last_pid", "/tty"))] == []


SHARED_MEMORY = """
import json, multiprocessing, os
lock, room = multiprocessing.Lock(), os.statvfs('/dev/shm')
print(json.dumps({'mode': oct(os.stat('/dev/shm').st_mode & 0o7777), 'mib': room.f_blocks * room.f_frsize >> 20}))
"""


@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier >= 2])
def test_sandbox_has_shared_memory_that_its_user_may_write_and_cannot_fill_the_machine_with(said, tier):
    found = json.loads(said(SHARED_MEMORY, tier=tier, memory_bytes=256 << 20))

    assert found == {"mode": "0o1777", "mib": 256}


@pytest.mark.sockets("a neighbour of the job's, without a path")
@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier >= 1])
@pytest.mark.skipif(landlock.abi() < 6, reason="scopes of sockets came with Linux 6.12")
def test_sandbox_reaches_no_abstract_socket_of_the_machine(said, tier):
    with socket.socket(socket.AF_UNIX) as neighbour:
        neighbour.bind(f"\0aip-test-{os.getpid()}")
        neighbour.listen()
        program = (
            "import socket, sys\ns = socket.socket(socket.AF_UNIX)\n"
            "print(s.connect_ex('\\0' + sys.argv[1]))\n"
            "mine = socket.socket(socket.AF_UNIX); mine.bind('\\0mine'); mine.listen()\n"
            "print(socket.socket(socket.AF_UNIX).connect_ex('\\0mine'))"
        )
        assert said(program, f"aip-test-{os.getpid()}", tier=tier).split() == ["1", "0"]


@pytest.mark.parametrize("tier", TIERS)
def test_sandbox_lets_no_program_leave_a_core_or_raise_that_limit(said, tier):
    assert said("import resource; print(resource.getrlimit(resource.RLIMIT_CORE))", tier=tier).strip() == "(0, 0)"


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's bubblewrap has no right that a job lacks")
@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier >= 2])
def test_sandbox_lets_a_job_choose_libraries_for_its_own_programs_only(said, tier):
    """A library of the job's own in bubblewrap or setpriv, which have rights yet, would be code that runs as root."""
    log = said("print('ran')", tier=tier, uid=UID, env={"LD_DEBUG": "libs"})

    begun = [line.rpartition(" ")[2] for line in log.splitlines() if "initialize program:" in line]
    assert {Path(name).name for name in begun} & {"python", "python3", "python3.11"}
    assert "ran" in log
    assert not {Path(name).name for name in begun} & {"bwrap", "setpriv"}


@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier >= 2])
def test_sandbox_lets_a_job_read_the_system_settings_it_is_shown(said, tier):
    """Root made the folders on the way for itself alone: names were not found, certificates not checked."""
    program = "import os; print(*(name for name in ('/etc', '/etc/hosts', '/etc/ssl') if os.access(name, os.R_OK)))"

    assert said(program, tier=tier).split() == ["/etc", "/etc/hosts", "/etc/ssl"]


LOADER = """
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, at): return torch.full((3, 32, 32), float(at * at))
loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2)
print(sum(float(batch[:, 0, 0, 0].sum()) for batch in loader))
"""


@pytest.mark.parametrize("tier", [BEST])
def test_sandbox_runs_a_data_loader_with_workers(ground, tier):
    """Batches travel by shared memory, which belonged to root in tier 3."""
    job = Run(ground / "run", tier, [sys.executable, "-c", LOADER])

    assert job.start() == 0
    assert job.exit()["code"] == 0, job.log()
    assert job.log().split()[-1] == str(float(sum(n * n for n in range(64))))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives away")
def test_sandbox_gives_a_job_its_folders_and_nothing_that_a_link_points_to(ground):
    job = Run(ground / "run", BEST, ["true"], uid=UID) if BEST < 3 else Run(ground / "run", 3, ["true"])
    (ground / "precious").write_text("root's")
    (job.path / "code" / "deep").mkdir()
    (job.path / "code" / "deep" / "file").write_text("x")
    (job.path / "code" / "deep" / "link").symlink_to(ground / "precious")

    job.start()
    job.exit()

    assert (job.path / "code" / "deep" / "file").stat().st_uid == UID
    assert (job.path / "code").stat().st_uid == UID
    assert (ground / "precious").stat().st_uid == 0


@pytest.mark.skipif(BEST < 2, reason="needs bubblewrap")
@pytest.mark.parametrize("name", [name for name in sandbox.COPIED if name not in ("passwd", "group")])
def test_sandbox_shows_a_copy_as_it_is_on_the_machine(said, name):
    path = Path("/etc", name)
    if not path.is_file():
        pytest.skip(f"this machine has no {path}")

    found = said(f"import pathlib; print(pathlib.Path({str(path)!r}).read_bytes().hex())", tier=BEST)

    assert found.strip() == path.read_bytes().hex()


def test_sandbox_copies_nothing_that_is_large_or_not_for_everybody(tmp_path, monkeypatch):
    for name, size, mode in (
        ("small", 100, 0o644),
        ("large", 1 << 20, 0o644),
        ("own", 100, 0o600),
        ("empty", 0, 0o644),
    ):
        (tmp_path / name).write_bytes(b"x" * size)
        (tmp_path / name).chmod(mode)
    names = [f"..{tmp_path}/{name}" for name in ("small", "large", "own", "empty", "absent")]
    monkeypatch.setattr(sandbox, "COPIED", names)

    files = sandbox.handed(Ticket(job=1, attempt=1, argv=["true"], env={}, cwd="/", tier=2, bwrap="/usr/bin/bwrap"))
    for opened in files.values():
        os.close(opened)

    assert files.keys() - {sandbox.FILTER, env_file.PATH} == {f"/etc/{names[0]}"}


def test_sandbox_reads_a_system_file_again_once_it_changed(tmp_path, monkeypatch):
    read, original = [], sandbox._read
    monkeypatch.setattr(sandbox, "_read", lambda path: read.append(path) or original(path))
    file = tmp_path / "services"
    file.write_text("ssh 22")
    later = SimpleNamespace(time=lambda: time.time() + 5)
    monkeypatch.setattr(sandbox, "time", later)

    assert [sandbox._copy(str(file)) for _ in range(3)] == [b"ssh 22"] * 3
    assert len(read) == 1
    file.write_text("ssh 2222")
    assert sandbox._copy(str(file)) == b"ssh 2222"
    file.chmod(0o600)
    assert sandbox._copy(str(file)) == b""
    file.unlink()
    assert sandbox._copy(str(file)) == b""
