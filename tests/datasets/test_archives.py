"""Attack cases D01–D07 and D12 of archives that are uploaded, and what must still come in."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import time
import unicodedata
import zipfile
import zlib
from pathlib import Path

import pytest
import zstandard

from aiplatform.lib import archives
from aiplatform.lib.archive_refusals import ArchiveRefused
from aiplatform.lib.archives import Limits, extract, kind_of

MIB = 1 << 20


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    """A folder with a canary beside the place archives unpack to."""
    (tmp_path / "canary").mkdir()
    (tmp_path / "canary" / "x").write_text("untouched")
    return tmp_path


def untouched(yard: Path) -> bool:
    names = {path.relative_to(yard).as_posix() for path in yard.rglob("*")} - {"a.zip", "a.tar"}
    return names == {"canary", "canary/x"} and (yard / "canary" / "x").read_text() == "untouched"


def make_zip(path: Path, *entries: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in entries:
            out.writestr(name, data)
    return path


def raw_zip(path: Path, *entries: tuple[bytes, bytes], flags: int = 0, system: int = 0) -> Path:
    """A zip written by hand: raw name bytes, stored data, chosen flags."""
    body, table = b"", b""
    for name, data in entries:
        crc = zlib.crc32(data)
        local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, flags, 0, 0, 33, crc, len(data), len(data), len(name), 0)
        facts = (20 | system << 8, 20, flags, 0, 0, 33, crc, len(data), len(data), len(name), 0, 0, 0, 0, 0, len(body))
        table += struct.pack("<4s6H3I5H2I", b"PK\1\2", *facts) + name
        body += local + name + data
    count = len(entries)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(table), len(body), 0)
    path.write_bytes(body + table + end)
    return path


def make_tar(path: Path, *members: tarfile.TarInfo | tuple[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as out:
        for member in members:
            if isinstance(member, tuple):
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                out.addfile(info, io.BytesIO(member[1]))
            else:
                out.addfile(member)
    return path


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/abs", "..\\x", "a\\b", "C:\\x", "c:x", "/../x"])
def test_D01_extract_refuses_whole_a_zip_whose_names_leave(yard, name):
    archive = raw_zip(yard / "a.zip", (b"good.png", b"1"), (name.encode(), b"2"))

    with pytest.raises(ArchiveRefused, match="unsafe name"):
        extract(archive, yard / "out")

    assert untouched(yard)


D02 = {
    "dotdot": ("../x", b"1"),
    "absolute": ("/tmp/x", b"1"),
    "link out": special("a", tarfile.SYMTYPE, "../canary/x"),
    "link in": special("a", tarfile.SYMTYPE, "good"),
    "hard link": special("a", tarfile.LNKTYPE, "../canary/x"),
    "fifo": special("a", tarfile.FIFOTYPE),
    "character device": special("a", tarfile.CHRTYPE),
    "block device": special("a", tarfile.BLKTYPE),
    "contiguous": special("a", b"9"),
}


@pytest.mark.parametrize("member", D02.values(), ids=D02)
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_D02_extract_refuses_whole_a_tar_with_links_devices_or_ways_out(yard, member, mode):
    archive = make_tar(yard / "a.tar", ("good", b"1"), member, mode=mode)

    with pytest.raises(ArchiveRefused):
        extract(archive, yard / "out")

    assert untouched(yard)


def test_D02_extract_refuses_a_setuid_file(yard):
    info = tarfile.TarInfo("su")
    info.mode = 0o4755

    with pytest.raises(ArchiveRefused, match="setuid"):
        extract(make_tar(yard / "a.tar", info), yard / "out")


def test_D02_extract_refuses_links_and_setuid_inside_a_zip(yard):
    for mode in (0o120777, 0o010644, 0o104755):
        info = zipfile.ZipInfo("a")
        info.external_attr = mode << 16
        info.create_system = 3
        with pytest.raises(ArchiveRefused, match="link"):
            extract(make_zip(yard / "a.zip", (info, b"../canary/x")), yard / "out")

    assert untouched(yard)


def test_D03_extract_refuses_the_path_max_chain_of_links(yard):
    deep = "d" * 247
    members: list[tarfile.TarInfo | tuple[str, bytes]] = []
    path = ""
    for step in "abcdefghijklmnop":
        members.append(special(os.path.join(path, deep), tarfile.DIRTYPE))
        members.append(special(os.path.join(path, step), tarfile.SYMTYPE, deep))
        path = os.path.join(path, deep)
    members.append(special("escape", tarfile.SYMTYPE, "a/b/c/" + "../" * 16))
    members.append(("escape/canary/x", b"gone"))

    with pytest.raises(ArchiveRefused):
        extract(make_tar(yard / "a.tar", *members), yard / "out")

    assert untouched(yard)


@pytest.mark.parametrize("mode", ["zip", "w:gz", "w:bz2", "w:xz"])
def test_D04_extract_stops_a_bomb_within_its_budget_and_leaves_nothing(yard, mode):
    size = 75 * MIB
    if mode == "zip":
        archive = yard / "a.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out, out.open("zeros", "w") as file:
            for _ in range(75):
                file.write(bytes(MIB))
    else:
        archive = yard / "a.tar"
        info = tarfile.TarInfo("zeros")
        info.size = size
        with tarfile.open(archive, mode) as out:
            out.addfile(info, io.BytesIO(bytes(size)))
    began = time.monotonic()

    with pytest.raises(ArchiveRefused, match="more than"):
        extract(archive, yard / "out", limits=Limits(max_bytes=50 * MIB))

    assert time.monotonic() - began < 60
    assert untouched(yard)


def test_D04_extract_ratio_rule_needs_no_size_limit():
    limits = Limits()

    assert limits.budget(MIB) == 300 * MIB
    assert limits.budget(1 << 50) == limits.max_bytes


def test_D05_extract_refuses_overlapping_entries(yard):
    archive = raw_zip(yard / "a.zip", (b"one", b"1" * 40), (b"two", b"2" * 40))
    data = bytearray(archive.read_bytes())
    second = data.rfind(b"PK\1\2")
    data[second + 42 : second + 46] = struct.pack("<I", 0)  # the second entry points at the first one's bytes
    archive.write_bytes(data)

    with pytest.raises(ArchiveRefused, match="overlap"):
        extract(archive, yard / "out")

    assert untouched(yard)


def test_D05_extract_finds_out_a_header_that_lies_about_its_size(yard):
    archive = make_zip(yard / "a.zip", ("zeros", bytes(MIB)))
    data = bytearray(archive.read_bytes())
    for mark, at in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        start = data.find(mark)
        data[start + at : start + at + 4] = struct.pack("<I", 10)
    archive.write_bytes(data)

    with pytest.raises(ArchiveRefused):
        extract(archive, yard / "out")

    assert untouched(yard)


def test_D05_extract_treats_an_archive_inside_as_any_other_file(yard):
    inner = make_zip(yard / "a.zip", ("x.png", b"1")).read_bytes()

    report = extract(make_zip(yard / "a.zip", ("inner.zip", inner)), yard / "out")

    assert report.files == 1
    assert (yard / "out" / "inner.zip").read_bytes() == inner


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_D06_extract_refuses_too_many_entries_before_unpacking(yard, kind):
    entries = [(f"{n}.png", b"") for n in range(2000)]
    archive = make_zip(yard / "a.zip", *entries) if kind == "zip" else make_tar(yard / "a.tar", *entries)

    with pytest.raises(ArchiveRefused, match="entries"):
        extract(archive, yard / "out", limits=Limits(max_files=1999))

    assert untouched(yard)
    assert extract(archive, yard / "out", limits=Limits(max_files=2000)).files == 2000


def test_D07_extract_makes_awkward_names_harmless_and_reports_them(yard):
    long = "é" * 150 + ".png"
    names = ["new\nline.png", "rtl\u202egnp.exe", "-rf.png", "CON", "con.txt", "dot.", long, "dir./ok.png", "fine.png"]

    report = extract(make_zip(yard / "a.zip", *[(name, b"1") for name in names]), yard / "out")

    found = {path.relative_to(yard / "out").as_posix() for path in (yard / "out").rglob("*") if path.is_file()}
    short = "é" * 98 + ".png"
    assert found == {
        "new_line.png",
        "rtl_gnp.exe",
        "_-rf.png",
        "_CON",
        "_con.txt",
        "dot",
        short,
        "dir/ok.png",
        "fine.png",
    }
    assert {old for old, _new in report.renamed} == set(names) - {"fine.png"}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a.png", "a.png"),
        ("A.png", "a.png"),
        (unicodedata.normalize("NFC", "é.png"), unicodedata.normalize("NFD", "é.png")),
        ("a", "a/b.png"),
        ("a/b.png", "a"),
        ("x.", "x"),
    ],
    ids=["twice", "case", "nfc nfd", "file then folder", "folder then file", "made equal"],
)
def test_D07_extract_refuses_two_entries_of_one_name(yard, one, two):
    archive = raw_zip(yard / "a.zip", (one.encode(), b"1"), (two.encode(), b"2"), flags=0x800)

    with pytest.raises(ArchiveRefused, match="The archive contains two entries that have the same name on"):
        extract(archive, yard / "out")

    assert untouched(yard)


def test_D07_extract_refuses_a_name_with_a_nul(yard):
    with pytest.raises(ArchiveRefused, match="NUL"):
        extract(raw_zip(yard / "a.zip", (b"a.png\0.exe", b"1")), yard / "out")


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_D07_extract_decodes_names_of_chinese_windows(yard, encoding, kind):
    names = ["数据集/图像/细胞一.jpg", "数据集/标注/联通.xml", "plain.txt"]
    if kind == "zip":
        archive = raw_zip(yard / "a.zip", *[(name.encode(encoding), b"1") for name in names])
    else:
        archive = yard / "a.tar"
        with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT, encoding=encoding) as out:
            for name in names:
                out.addfile(tarfile.TarInfo(name))

    extract(archive, yard / "out")

    assert all((yard / "out" / name).is_file() for name in names)


def test_D07_extract_decodes_names_of_japanese_windows(yard):
    names = ["データ/細胞の画像.jpg", "データ/写真１.png", "plain.txt"]

    extract(raw_zip(yard / "a.zip", *[(name.encode("cp932"), b"1") for name in names], system=0), yard / "out")

    found = {str(path.relative_to(yard / "out")) for path in (yard / "out").rglob("*") if path.is_file()}
    assert found == set(names)


def test_D07_extract_reads_a_short_gbk_name_that_is_also_utf8_as_chinese(yard):
    extract(raw_zip(yard / "a.zip", ("联通.jpg".encode("gbk"), b"1"), system=0), yard / "out")

    assert (yard / "out" / "联通.jpg").is_file()


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"\x1f\x8b\x08", b"not an archive at all" * 100, bytes(512)[:-1]])
def test_D12_extract_refuses_what_is_no_archive_in_words(yard, data):
    (yard / "a.zip").write_bytes(data)

    with pytest.raises(ArchiveRefused, match=r"archive"):
        extract(yard / "a.zip", yard / "out")

    assert untouched(yard)


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz", "w:bz2", "w:xz"])
def test_D12_extract_refuses_a_truncated_archive(yard, mode):
    data = os.urandom(200_000)
    path = make_zip(yard / "a.zip", ("x", data)) if mode == "zip" else make_tar(yard / "a.tar", ("x", data), mode=mode)
    path.write_bytes(path.read_bytes()[:100_000])

    with pytest.raises(ArchiveRefused):
        extract(path, yard / "out")

    assert untouched(yard)


def test_extract_says_that_a_zip_has_a_password(yard):
    archive = raw_zip(yard / "a.zip", (b"x", b"1"), flags=0x1)

    with pytest.raises(ArchiveRefused, match="password"):
        extract(archive, yard / "out")


def test_extract_does_not_fill_memory_for_a_tar_header_of_a_gigabyte(yard):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 900 * MIB
    (yard / "a.tar").write_bytes(info.tobuf(tarfile.USTAR_FORMAT) + bytes(4096))

    with pytest.raises(ArchiveRefused):
        extract(yard / "a.tar", yard / "out")


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst"])
def test_extract_knows_every_kind_by_content_and_unpacks_it_whole(yard, kind):
    files = {
        "图/a.png": os.urandom(300_000),
        "b.txt": b"",
        "deep/er/c.bin": b"x" * 5000,
        "._b.txt": b"",
        ".DS_Store": b"",
    }
    path = yard / "a.zip"
    if kind == "zip":
        make_zip(path, *files.items())
    elif kind == "tar.zst":
        make_tar(path, *files.items())
        path.write_bytes(zstandard.compress(path.read_bytes()))
    else:
        make_tar(path, *files.items(), mode="w:" + kind.partition(".")[2])
    steps = []

    report = extract(path, yard / "out", on_progress=lambda *step: steps.append(step))

    assert kind_of(path) == kind
    wanted = {name: data for name, data in files.items() if name in {"图/a.png", "b.txt", "deep/er/c.bin"}}
    assert {name: (yard / "out" / name).read_bytes() for name in wanted} == wanted
    assert (report.files, report.ignored, steps[-1]) == (3, 2, (3, 305_000))
    assert report.renamed == []


def test_extract_reads_gzip_members_one_after_the_other_as_one_stream(yard):
    import gzip

    whole = make_tar(yard / "a.tar", ("x", b"1" * 100_000)).read_bytes()
    (yard / "a.tar").write_bytes(gzip.compress(whole[:5000]) + gzip.compress(whole[5000:]))

    assert extract(yard / "a.tar", yard / "out").size_bytes == 100_000


def test_extract_does_not_blame_the_archive_for_a_full_disk(yard, monkeypatch):
    def full(*_args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archives, "_write", full)

    with pytest.raises(OSError, match="No space left"):
        extract(make_zip(yard / "a.zip", ("x", b"1")), yard / "out")

    assert untouched(yard)
