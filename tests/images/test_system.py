"""Folders of the machine under root inside: packages stay in the job's box, and what is closed is not there."""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.workers.supervised import BEST, UID, Run
from workers.execution import root_users
from workers.images.store import system

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or BEST < 3, reason="only a root platform has users to give"),
    pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="packages are Debian's here"),
]
REAL_HIDDEN = system.hidden
ROOT = root_users.ids(UID, 99_998)


@pytest.fixture
def ground(monkeypatch):
    """A folder that only the platform may enter, where layers can lie."""
    monkeypatch.setattr(system, "works", lambda: True)
    monkeypatch.setattr(system, "hidden", lambda _moment: {"/usr": ["share/aip/closed", "bin/yes"]})
    folder = Path(tempfile.mkdtemp(prefix="aip-system-"))
    folder.chmod(0o750)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def box(ground):
    made = ground / "box"
    made.mkdir()
    return made


def package(folder: Path) -> Path:
    """A package of Debian with a program and a file of a user of its own."""
    tree = folder / "aip-hello"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "etc").mkdir()
    control = "Package: aip-hello\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: says hello\n"
    (tree / "DEBIAN/control").write_text(control)
    (tree / "DEBIAN/postinst").write_text("#!/bin/sh\nset -e\nchown daemon:daemon /etc/aip-hello\n")
    (tree / "DEBIAN/postinst").chmod(0o755)
    (tree / "usr/bin/aip-hello").write_text("#!/bin/sh\necho hello\n")
    (tree / "usr/bin/aip-hello").chmod(0o755)
    (tree / "etc/aip-hello").touch()
    made = folder / "aip-hello.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(made)], check=True, capture_output=True)
    return made


def run(folder: Path, name: str, command: str, box: Path, **more: object) -> str:
    job = Run(
        folder / name, 3, ["/bin/sh", "-ec", command], root=ROOT,
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        overlay={"system": system.folders(box, UID, "/home/rosa")}, **more,
    )  # fmt: skip
    job.start()
    assert job.exit()["code"] == 0, job.log()
    return job.log()


def test_package_of_the_system_is_installed_and_stays(ground, box):
    deb = package(ground)

    run(ground, "first", f"dpkg -i {deb}", box, read_only=[str(deb)])
    later = run(ground, "later", "aip-hello; stat -c %U /etc/aip-hello; dpkg -s aip-hello", box)

    assert later.splitlines()[:2] == ["hello", "daemon"]
    assert "Status: install ok installed" in later
    assert not Path("/usr/bin/aip-hello").exists()
    assert not Path("/var/lib/dpkg/info/aip-hello.list").exists()
    assert system.installed(box) == ["aip-hello"]
    run(ground, "last", "dpkg -P aip-hello", box)
    assert system.installed(box) == []


def test_packages_of_a_box_are_named_without_leaving_it(box, tmp_path):
    """What lies in the layer is the job's: a link would have the platform read elsewhere."""
    assert system.installed(box) == []
    (box / "system/dpkg").mkdir(parents=True)
    (tmp_path / "elsewhere.list").touch()
    (box / "system/dpkg/info").symlink_to(tmp_path)

    assert system.installed(box) == []


def test_folders_of_the_machine_can_be_added_to(ground, box):
    said = run(
        ground,
        "run",
        "touch /usr/local/bin/a /opt/b /etc/c /var/lib/d /run/e; ls /usr/local/bin/a; id -un; getent passwd root",
        box,
    )

    assert said.split() == ["/usr/local/bin/a", "root", "root:x:0:0:root:/home/rosa:/bin/bash"]


def test_closed_files_of_the_machine_are_not_there(ground, box):
    system.folders(box, UID, "/home/rosa")

    mark = (box / "system/usr/bin/yes").lstat()
    shadow = (box / "system/etc/shadow").read_text()
    assert stat.S_ISCHR(mark.st_mode)
    assert mark.st_rdev == 0
    assert all(line.split(":")[1] == "*" for line in shadow.splitlines())
    assert not (box / "system/etc/ssh").exists() or not list((box / "system/etc/ssh").glob("*_key"))
    assert run(ground, "run", "test ! -e /usr/bin/yes && echo gone", box).strip() == "gone"


def test_copies_hold_only_what_everybody_may_read(ground):
    source, target = ground / "source", ground / "target"
    (source / "closed").mkdir(parents=True, mode=0o700)
    (source / "closed").chmod(0o700)
    for name, mode in (("open", 0o644), ("secret", 0o640), ("closed/inner", 0o644)):
        (source / name).write_text("x")
        (source / name).chmod(mode)
    source.chmod(0o755)

    system._copy(source, target)

    assert [path.name for path in target.rglob("*")] == ["open"]


@pytest.fixture
def host(ground):
    """A folder of the machine that no job has any business with."""
    made = ground / "host"
    made.mkdir(mode=0o700)
    return made


def tree(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((path.name, path.lstat().st_mode, path.lstat().st_uid) for path in [folder, *folder.rglob("*")])


@pytest.mark.parametrize("below", ["share/aip", "share"])
def test_links_of_a_job_in_its_layer_lead_root_nowhere(ground, box, host, below):
    system.folders(box, UID, "/home/rosa")
    link = box / "system/usr" / below
    shutil.rmtree(link)
    link.symlink_to(host)
    before = tree(host)

    system.folders(box, UID, "/home/rosa")

    assert tree(host) == before
    assert link.is_symlink()


def test_file_of_a_job_in_the_way_of_a_mark_stays(ground, box):
    system.folders(box, UID, "/home/rosa")
    shutil.rmtree(box / "system/usr/share/aip")
    (box / "system/usr/share/aip").write_text("mine")
    (box / "system/usr/bin/yes").unlink()
    (box / "system/usr/bin/yes").write_text("mine")

    system.folders(box, UID, "/home/rosa")

    assert (box / "system/usr/share/aip").read_text() == (box / "system/usr/bin/yes").read_text() == "mine"


def test_names_of_the_layers_are_not_the_job_s_to_change(ground, box):
    system.folders(box, UID, "/home/rosa")

    about = (box / "system").stat()
    assert (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)) == (os.geteuid(), UID, 0o750)
    assert (box / "system/usr").stat().st_uid == UID


def test_machine_says_what_is_closed_in_each_mapped_folder(ground, monkeypatch):
    monkeypatch.undo()
    closed = ground / "mapped/dpkg/lists/partial"
    closed.mkdir(parents=True, mode=0o700)
    closed.chmod(0o700)
    (ground / "mapped/dpkg/open").touch()
    (ground / "mapped/shut").mkdir(mode=0o700)
    monkeypatch.setattr(
        system,
        "MAPPED",
        {"usr": "/usr", "dpkg": str(ground / "mapped/dpkg"), "rpm": str(ground / "mapped/shut")},
    )

    found = system.hidden.__wrapped__(0)

    assert found.pop(str(ground / "mapped/dpkg")) == ["lists/partial"]
    assert list(found) == ["/usr"]  # what is closed as a whole is not mapped at all
    assert all(not path.startswith("local/") for path in found["/usr"])
    for path in found["/usr"]:
        mode = Path("/usr", path).lstat().st_mode
        assert not mode & 0o004 or (stat.S_ISDIR(mode) and not mode & 0o001)


@pytest.mark.parametrize("command", ["echo /usr/bin/yes; echo broken >&2; exit 1", "sleep 9"])
def test_box_is_refused_where_what_is_closed_is_not_known_to_the_end(box, ground, monkeypatch, command):
    monkeypatch.undo()
    monkeypatch.setattr(system, "works", lambda: True)
    monkeypatch.setattr(system, "LOOK_S", 0.5)
    monkeypatch.setattr(system, "FIND", ("/bin/sh", "-c", command))
    system.hidden.cache_clear()

    with pytest.raises(system.NotLookedThrough) as refused:
        system.folders(box, UID, "/home/rosa")

    assert any(why in str(refused.value.worded.facts) for why in ("broken", "> 0.5 s"))
    assert not list((box / "system").glob("usr/bin/*"))


def test_package_manager_works_without_the_closed_files_of_its_folders(ground, box, monkeypatch):
    """The locks of dpkg and apt are closed: it makes its own."""
    monkeypatch.setattr(system, "hidden", REAL_HIDDEN)
    deb = package(ground)

    said = run(ground, "real", f"dpkg -i {deb} >/dev/null; aip-hello; apt-get check -q", box, read_only=[str(deb)])

    assert "hello" in said
