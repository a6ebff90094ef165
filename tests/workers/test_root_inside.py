"""Root inside: what a job is, and is not, whose programs are root of a user namespace of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from tests.running import wait_for
from tests.workers.supervised import BEST, BWRAP, PYTHON, UID, Run
from workers.execution import root_users
from workers.planning.planner.fit import Space, why_never
from workers.planning.planner.snapshot import Cluster, Device, Node, Request
from workers.supervisor import env_file, processes, records, root_inside, sandbox
from workers.supervisor.ticket import Ticket

FIRST = 2_100_000_000
IS_ROOT = os.geteuid() == 0
IDS = [[0, UID, 1], [1, FIRST + 1, 1022], [65534, FIRST + 1023, 1]] if IS_ROOT else None
ROOT = {"uids": IDS or [[0, os.geteuid(), 1]], "gids": IDS or [[0, os.getegid(), 1]]}
needs_tier_2 = pytest.mark.skipif(BEST < 2, reason="no bubblewrap works here")
needs_platform_root = pytest.mark.skipif(not IS_ROOT or BEST < 3, reason="only a root platform has users to give")

ABOUT = """
import json, os
status = dict(line.rstrip().split(":", 1) for line in open("/proc/self/status"))
open("mine", "w").close()
os.chmod("mine", 0o4755)
print(json.dumps({
    "ids": os.getresuid() + os.getresgid(), "caps": status["CapEff"].strip(), "nnp": status["NoNewPrivs"].strip(),
    "seccomp": status["Seccomp"].strip(), "nosuid": bool(os.statvfs(".").f_flag & os.ST_NOSUID),
    "uids": [list(map(int, line.split())) for line in open("/proc/self/uid_map")],
}))
"""
TRIES = """
import ctypes, json, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tried(act):
    try:
        act()
    except OSError as exc:
        return exc.errno
    return 0
def call(name, *args):
    def act():
        if getattr(libc, name)(*args) != 0:
            raise OSError(ctypes.get_errno(), name)
    return act
open("f", "w").close()
print(json.dumps({
    "give to a user that is not its own": tried(lambda: os.chown("f", 4242, 4242)),
    "make a device": tried(lambda: os.mknod("d", 0o020666, os.makedev(1, 3))),
    "raw socket": tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    "packet socket": tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
    "host name": tried(lambda: socket.sethostname("x")),
    "mount": tried(call("mount", b"none", b"/tmp", b"tmpfs", 0, None)),
    "unmount": tried(call("umount2", b"/proc/sys", 0)),
    "user namespace": tried(call("unshare", 0x10000000)),
    "change root": tried(lambda: os.chroot("/tmp")),
    "core pattern": tried(lambda: open("/proc/sys/kernel/core_pattern", "w")),
    "shadow": tried(lambda: open("/etc/shadow")),
}))
"""


@pytest.fixture
def ground():
    """A folder that only the platform may enter, as its data are."""
    folder = Path(tempfile.mkdtemp(prefix="aip-root-"))
    folder.chmod(0o750)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def run(ground):
    made = []

    def one(program: str, **more: object) -> Run:
        tier = 3 if IS_ROOT and BEST >= 3 else 2
        job = Run(ground / str(len(made)), tier, [PYTHON, "-I", "-S", "-c", program], root=ROOT, **more)
        made.append(job)
        assert job.start() == 0
        return job

    yield one
    for job in made:
        if records.is_alive(job.supervisor):
            os.kill(job.supervisor["pid"], signal.SIGKILL)
        processes.send(job.programs(), signal.SIGKILL)


@needs_tier_2
def test_root_inside_is_uid_0_there_and_the_jobs_user_outside(run):
    job = run(ABOUT)

    assert job.exit()["code"] == 0, job.log()
    said = json.loads(job.log())
    assert said["ids"] == [0] * 6
    assert said["uids"] == [list(line) for line in ROOT["uids"]]
    assert (said["nnp"], said["seccomp"], said["nosuid"]) == ("1", "2", True)
    made = (job.path / "code/mine").stat()
    assert made.st_uid == (UID if IS_ROOT else os.geteuid())  # its setuid bit gives nobody root


@needs_tier_2
def test_root_inside_holds_what_installing_takes_and_nothing_else(run):
    job = run(ABOUT)

    job.exit()
    names = ("CHOWN", "DAC_OVERRIDE", "_", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "_", "_", "NET_BIND_SERVICE")
    expected = sum(1 << number for number, name in enumerate(names) if name in root_inside.CAPABILITIES)
    assert int(json.loads(job.log())["caps"], 16) == expected


@needs_tier_2
def test_root_inside_is_refused_what_works_on_the_machine(run):
    job = run(TRIES)

    assert job.exit()["code"] == 0, job.log()
    said = json.loads(job.log())
    assert [what for what, number in said.items() if number == 0] == []


@needs_platform_root
def test_root_inside_reads_nothing_of_the_platform_or_of_another_person(run, ground):
    secret, other = ground / "secret", ground / "other"
    for path, uid in ((secret, 0), (other, UID - 1)):
        path.write_text("canary")
        path.chmod(0o600)
        os.chown(path, uid, uid)

    job = run(f"""
import json, os
def read(path):
    try:
        return open(path).read()
    except OSError as exc:
        return exc.errno
print(json.dumps([read(path) for path in {[str(secret), str(other)]}]))
""", read_only=[str(secret), str(other)])  # fmt: skip

    assert job.exit()["code"] == 0, job.log()
    assert json.loads(job.log()) == [13, 13]


@needs_platform_root
def test_root_inside_serves_users_of_packages_by_a_range_that_is_the_persons(run):
    job = run("import os; open('f', 'w').close(); os.chown('f', 42, 1000)")

    assert job.exit()["code"] == 0, job.log()
    about = (job.path / "code/f").stat()
    assert (about.st_uid, about.st_gid) == (FIRST + 42, FIRST + 1000)


@needs_platform_root
def test_root_inside_changes_folders_of_the_machine_in_a_layer_of_its_own(run, ground):
    box = ground / "box"
    for name in ("usr", "usr.work"):
        (box / name).mkdir(parents=True)
        os.chown(box / name, UID, UID)
    layer = {"target": "/usr", "lower": "/usr", "mapped": "1", "upper": str(box / "usr"), "work": str(box / "usr.work")}
    overlay = {"system": [layer]}

    first = run("import os; open('/usr/bin/aip-made', 'w').close(); os.unlink('/usr/bin/yes')", overlay=overlay)
    assert first.exit()["code"] == 0, first.log()
    later = run(
        "import os; print(os.path.exists('/usr/bin/aip-made'), os.path.exists('/usr/bin/yes'))", overlay=overlay
    )
    later.exit()

    assert later.log().split() == ["True", "False"]
    assert not Path("/usr/bin/aip-made").exists()
    assert Path("/usr/bin/yes").exists()


@needs_platform_root
@pytest.mark.skipif(not shutil.which("ssh"), reason="no ssh is here")
@pytest.mark.parametrize("own_etc", [False, True])
def test_ssh_of_root_inside_leaves_a_network_of_its_own_by_the_proxy(run, ground, own_etc):
    """Also after a stop: what lies in the way of the mount is left in the box."""
    (ground / "box/etc").mkdir(parents=True)
    (ground / "box/etc/passwd").write_text("root:x:0:0:root:/tmp:/bin/sh\n")
    for path in (ground / "box/etc", ground / "box/etc/passwd"):
        os.chown(path, UID, UID)
    layer = {"target": "/etc", "upper": str(ground / "box/etc")}
    more = {"own_network": True, "egress_socket": "/run/aip/egress/proxy"}
    for _start in range(2):
        job = run(
            "import subprocess; subprocess.run(['ssh', '-G', 'forge.example'])",
            overlay={"system": [layer]} if own_etc else {}, **more,
        )  # fmt: skip

        assert job.exit()["code"] == 0, job.log()
        assert "proxycommand /run/aip/egress/aip-connect '%h' %p" in job.log()


def test_root_inside_has_users_of_each_person_apart():
    ranges = [root_users.ids(200_000 + owner, owner)["uids"] for owner in range(1, 4)]

    taken = [(line[1], line[1] + line[2]) for lines in ranges for line in lines]
    assert all(end <= begin for (_, end), (begin, _) in zip(sorted(taken), sorted(taken)[1:], strict=False))
    assert all(begin > 0 for begin, _end in taken)


def test_bubblewrap_is_started_without_variables_that_load_code_before_the_sandbox(monkeypatch):
    ticket = Ticket(job=1, attempt=1, argv=["true"], env={"LD_PRELOAD": "/home/evil.so", "A": "b"}, cwd="/", tier=2,
                    bwrap=BWRAP)  # fmt: skip
    for uid in (0, 1000):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)

        assert sandbox.environment(ticket) == {"A": "b"}
        files = sandbox.handed(ticket)
        assert b"/home/evil.so" in os.pread(files[env_file.LATER], 1000, 0)
        assert not [word for word in sandbox.wrapped(ticket, files) if "evil" in word]
        for opened in files.values():
            os.close(opened)


@pytest.mark.skipif(BEST < 2, reason="no bubblewrap")
@pytest.mark.parametrize("tier", range(2, min(BEST, 3) + 1))
def test_variables_that_load_code_reach_the_job_and_no_command_line(tmp_path, tier):
    value = "it's a \n $(secret) \\ thing"
    job = Run(
        tmp_path / "run", tier, ["/bin/sh", "-c", 'printf "<%s>" "$MALLOC_SECRET"; id -u; exec sleep 600'],
        env={"PATH": "/usr/bin:/bin", "MALLOC_SECRET": value},
    )  # fmt: skip
    job.start()
    wait_for(lambda: "<" in job.log() and ">" in job.log())
    mine = [job.supervisor["pid"], *processes.descendants(job.supervisor["pid"])]
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in mine]
    job.wish("kill")
    job.exit()

    assert f"<{value}>" in job.log()
    assert len(lines) > 2
    assert not [line for line in lines if b"secret)" in line]


def test_root_inside_is_placed_on_machines_that_offer_it():
    nodes = [Node(1, "a"), Node(2, "b", root_inside=True)]
    devices = [Device(1, 1, "cpu", capacity=64), Device(2, 2, "cpu", capacity=8)]
    request, large = Request(cpu_shares=8, root_inside=True), Request(cpu_shares=16, root_inside=True)
    space = Space(nodes, devices)
    cluster = Cluster(1, "lab")

    assert space.find(space.shape(request, None), space.free) == ((2, ((2, 8),)),)
    assert why_never(request, nodes, devices, cluster) == ()
    assert [never.code for never in why_never(large, nodes, devices, cluster)] == ["no_root_inside"]
