"""Packed layers: what comes back is what was saved, and nothing else gets in."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile

import pytest
import zstandard

from tests.cases import case_table
from workers.images.store import archive, unpacking
from workers.images.store.unpacking import BadLayer


@pytest.fixture
def upper(tmp_path):
    """A layer with one of everything that pip and people leave."""
    top = tmp_path / "upper"
    (top / "lib/ring/stdlib/sys").mkdir(parents=True)
    (top / "lib/ring/data.bin").write_bytes(os.urandom(70_000))
    (top / "lib/ring/stdlib/sys/a.py").write_text("1")
    os.link(top / "lib/ring/data.bin", top / "lib/ring/twin.bin")
    (top / "lib/ring/python").symlink_to("/usr/bin/python3")
    (top / "bin").mkdir(mode=0o755)
    (top / "bin/ring").write_text("#!/bin/sh\n")
    (top / "bin/ring").chmod(0o4755)
    (top / "lib/closed").mkdir()
    (top / "lib/closed/in.txt").write_text("x")
    (top / "lib/closed/in.txt").chmod(0)
    (top / "lib/closed").chmod(0)
    os.mknod(top / "lib/gone.py", stat.S_IFCHR, 0)
    os.setxattr(top / "lib/ring/stdlib", "user.overlay.opaque", b"y")
    yield top
    (top / "lib/closed").chmod(0o700)


def tree(top) -> dict[str, tuple]:
    found = {}
    for path, folders, names in os.walk(top):
        for name in (*folders, *names):
            whole = os.path.join(path, name)
            about = os.lstat(whole)
            held = os.readlink(whole) if stat.S_ISLNK(about.st_mode) else ""
            if stat.S_ISREG(about.st_mode):
                with open(whole, "rb") as file:
                    held = hashlib.sha256(file.read()).hexdigest()
            kept = about.st_mode & ~(stat.S_ISUID | stat.S_ISGID)
            links = about.st_nlink if stat.S_ISREG(about.st_mode) else 0
            found[os.path.relpath(whole, top)] = (kept, held, links)
    return found


def unpack(packed, layer, figures, **more):
    unpacking.unpack(
        packed, layer, **{
            "sha256": figures.sha256, "most_bytes": figures.bytes, "most_files": figures.files, **more
        },
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads files of mode 000 by their walk")
def test_layer_comes_back_as_it_was(upper, tmp_path):
    figures = archive.pack(upper, tmp_path / "packed")
    unpack(tmp_path / "packed", tmp_path / "layer", figures)

    assert tree(tmp_path / "layer") == tree(upper)
    assert os.getxattr(tmp_path / "layer/lib/ring/stdlib", "user.overlay.opaque") == b"y"
    assert stat.S_IMODE((tmp_path / "layer/bin/ring").stat().st_mode) == 0o755
    assert (figures.whiteouts, figures.opaque, figures.left_out) == (1, 1, [])
    assert figures.bytes == archive.measure(upper).bytes
    assert figures.files == archive.measure(upper).files
    assert figures.packed == (tmp_path / "packed").stat().st_size
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_layer_leaves_secrets_histories_and_homes_out(tmp_path):
    top = tmp_path / "upper"
    hidden = [
        "lib/a/.ssh/id_ed25519", "pip.conf", "src/x/.git/config", ".netrc", "home/anna/notes", "tmp/x",
        "lib/id_rsa.pub", ".bash_history",
    ]  # fmt: skip
    shown = ["lib/tmp/x.py", "lib/sys/run/dev.py", "lib/netrc.py", "lib/gitconfig"]
    for name in hidden + shown:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("secret")

    figures = archive.pack(top, tmp_path / "packed")
    unpack(tmp_path / "packed", tmp_path / "layer", figures)

    assert sorted(figures.left_out) == sorted(
        [".bash_history", ".netrc", "home", "lib/a/.ssh", "lib/id_rsa.pub", "pip.conf", "src/x/.git", "tmp"]
    )
    files = sorted(os.path.relpath(os.path.join(at, name), tmp_path / "layer")
                   for at, _folders, names in os.walk(tmp_path / "layer") for name in names)  # fmt: skip
    assert files == sorted(shown)


@case_table("pattern", archive.LEFT_OUT)
def test_layer_leaves_out_every_name_that_the_page_of_saving_promises(tmp_path, pattern):
    """At its top and deep within a package, as a file and as a folder."""
    name = pattern.replace("*", "x")
    top = tmp_path / "upper"
    for folder in (top, top / "lib" / "package"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("open-sesame")
    (top / "lib" / name).mkdir()
    (top / "lib" / name / "inner").write_text("open-sesame")
    (top / "lib" / "code.py").write_text("x = 1")

    figures = archive.pack(top, tmp_path / "packed")

    assert sorted(figures.left_out) == sorted([name, f"lib/{name}", f"lib/package/{name}"])
    assert b"open-sesame" not in zstandard.ZstdDecompressor().decompressobj().decompress(
        (tmp_path / "packed").read_bytes()
    )
    assert figures.files == 3  # lib, package, code.py


def test_layer_with_a_file_named_like_a_whiteout_is_not_packed(tmp_path):
    (tmp_path / "upper").mkdir()
    (tmp_path / "upper/.wh.passwd").write_text("")

    with pytest.raises(archive.Unpackable, match="such names are whiteouts"):
        archive.pack(tmp_path / "upper", tmp_path / "packed")

    assert [path.name for path in tmp_path.iterdir()] == ["upper"]


def test_layer_packs_no_file_through_a_link(tmp_path):
    (tmp_path / "upper").mkdir()
    (tmp_path / "upper/shadow").symlink_to("/etc/shadow")

    figures = archive.pack(tmp_path / "upper", tmp_path / "packed")

    assert figures.bytes == 0


class Hostile:
    """Packs whatever it is told."""

    def __init__(self, path) -> None:
        self.path, self.entries = path, []

    def add(self, name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", **more) -> Hostile:
        entry = tarfile.TarInfo(name)
        entry.type, entry.size, entry.mode = kind, len(data), more.pop("mode", 0o644)
        for key, value in more.items():
            setattr(entry, key, value)
        self.entries.append((entry, data))
        return self

    def unpack(self, layer, **more) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as made:
            for entry, data in self.entries:
                made.addfile(entry, io.BytesIO(data))
        self.path.write_bytes(zstandard.compress(packed.getvalue()))
        figures = archive.Figures(files=100, bytes=10_000, sha256=hashlib.sha256(self.path.read_bytes()).hexdigest())
        unpack(self.path, layer, figures, **more)


FOLDER = tarfile.DIRTYPE
ATTACKS = {
    "a way through a link": (
        lambda a: a.add("out", tarfile.SYMTYPE, linkname="/tmp").add("out/x", data=b"x"), "passes through a link"),
    "a hard link out": (lambda a: a.add("x", tarfile.LNKTYPE, linkname="../../etc/passwd"), "passes through a link"),
    "an absolute hard link": (lambda a: a.add("x", tarfile.LNKTYPE, linkname="/etc/passwd"), "passes through a link"),
    "a hard link through a link": (
        lambda a: a.add("e", tarfile.SYMTYPE, linkname="/etc").add("x", tarfile.LNKTYPE, linkname="e/passwd"),
        "passes through a link"),
    "a hard link to a link": (
        lambda a: a.add("e", tarfile.SYMTYPE, linkname="/etc/passwd").add("x", tarfile.LNKTYPE, linkname="e"),
        "passes through a link"),
    "a whiteout of whiteouts": (lambda a: a.add(".wh..wh.x"), "is not a valid name"),
    "a whiteout of nothing": (lambda a: a.add(".wh."), "is not a valid name"),
    "a whiteout of the folder above": (lambda a: a.add("a", FOLDER, mode=0o755).add("a/.wh..."), "is not a valid name"),
    "a whiteout with content": (lambda a: a.add(".wh.x", data=b"x"), "is not a valid name"),
    "a whiteout over what it brings": (lambda a: a.add("x").add(".wh.x"), "is not a valid name"),
    "a whiteout that is a folder": (lambda a: a.add(".wh.x", FOLDER, mode=0o755), "is not a valid name"),
    "setuid": (lambda a: a.add("su", mode=0o4755), "permissions of another user"),
    "a setgid folder": (lambda a: a.add("su", FOLDER, mode=0o2755), "permissions of another user"),
    "a device": (lambda a: a.add("mem", tarfile.CHRTYPE, devmajor=1, devminor=1), "is a device"),
    "a block device": (lambda a: a.add("disk", tarfile.BLKTYPE, devmajor=8, devminor=0), "is a device"),
    "a pipe": (lambda a: a.add("pipe", tarfile.FIFOTYPE), "is a device"),
    "an absolute name": (lambda a: a.add("/etc/cron.d/x"), "is not a valid name"),
    "a climbing name": (lambda a: a.add("../x"), "is not a valid name"),
    "a climbing name inside": (lambda a: a.add("a", FOLDER, mode=0o755).add("a/../../x"), "is not a valid name"),
    "the top itself": (lambda a: a.add("./", FOLDER, mode=0o755), "is not a valid name"),
    "a folder that is not there": (lambda a: a.add("no/x"), "passes through a link"),
    "the same name twice": (lambda a: a.add("x", data=b"1").add("x", data=b"2"), "is not a valid name"),
    "a file over a link": (lambda a: a.add("x", tarfile.SYMTYPE, linkname="/etc/passwd").add("x"), "not a valid name"),
    "very deep": (lambda a: a.add("/".join("a" * 200)), "is not a valid name"),
    "more bytes than noted": (lambda a: a.add("x", data=b"0" * 20_000), "larger than recorded"),
    "more files than noted": (lambda a: [a.add(f"x{n}") for n in range(101)] and a, "larger than recorded"),
}  # fmt: skip


@case_table("attack", ATTACKS)
def test_hostile_layer_is_refused_and_leaves_nothing(tmp_path, attack):
    made, said = ATTACKS[attack]
    outside = tmp_path / "victim"
    outside.write_text("mine")

    with pytest.raises(BadLayer, match=said):
        made(Hostile(tmp_path / "packed").add("first", data=b"x")).unpack(tmp_path / "layers" / "layer")

    assert list((tmp_path / "layers").iterdir()) == []
    assert outside.read_text() == "mine"


def test_layer_of_another_checksum_or_damaged_is_refused(upper, tmp_path):
    figures = archive.pack(upper, tmp_path / "packed")
    whole = (tmp_path / "packed").read_bytes()
    cut = whole[: len(whole) // 2]
    (tmp_path / "cut").write_bytes(cut)

    with pytest.raises(BadLayer, match="checksum"):
        unpack(tmp_path / "packed", tmp_path / "layer", figures, sha256="0" * 64)
    with pytest.raises(BadLayer, match="damaged"):
        unpack(tmp_path / "cut", tmp_path / "layer", figures, sha256=hashlib.sha256(cut).hexdigest())

    assert not (tmp_path / "layer").exists()


def test_bomb_ends_when_more_comes_out_than_was_noted(tmp_path):
    """A gigabyte of zeros as one header after another: the archive's own sizes are not what is counted."""
    block = tarfile.TarInfo("x").tobuf()
    with open(tmp_path / "packed", "wb") as file, zstandard.ZstdCompressor().stream_writer(file) as out:
        for _ in range(200):
            out.write(b"\0" * 511 + b"1" + block * 200)

    sha256 = hashlib.sha256((tmp_path / "packed").read_bytes()).hexdigest()
    with pytest.raises(BadLayer):
        unpacking.unpack(tmp_path / "packed", tmp_path / "layer", sha256=sha256, most_bytes=10, most_files=10)

    assert not (tmp_path / "layer").exists()
