"""Files are reached beneath a root or not at all, and written whole or not at all."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from aiplatform.lib import files
from aiplatform.lib.files import (
    OutsideRoot,
    atomic_writer,
    open_beneath,
    resolve_beneath,
    walk_beneath,
    write_atomically,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "a" / "deep" / "x").write_text("inside")
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "x").write_text("outside")
    (tmp_path / "a" / "out").symlink_to(tmp_path / "ab")
    (tmp_path / "a" / "file").symlink_to(tmp_path / "ab" / "x")
    return tmp_path / "a"


def read(root: Path, name: str) -> str:
    with os.fdopen(open_beneath(root, name)) as file:
        return file.read()


def test_open_beneath_opens_a_file_beneath_its_root(root):
    assert read(root, "deep/x") == "inside"


@pytest.mark.parametrize("name", ["../ab/x", "deep/../../ab/x", "/etc/passwd", "out/x", "file", "deep", "", "a\0b"])
def test_E01_open_beneath_refuses_everything_else(root, name):
    with pytest.raises(OutsideRoot):
        os.close(open_beneath(root, name))


def test_open_beneath_reports_a_missing_file_as_missing_not_refused(root):
    with pytest.raises(FileNotFoundError):
        open_beneath(root, "deep/y")


@pytest.mark.parametrize("name", ["../ab", "out", "out/x", "/etc", "../a/../ab/x", "a\0b"])
def test_E01_resolve_beneath_stays_beneath_and_knows_the_prefix_trap(root, name):
    with pytest.raises(OutsideRoot):
        resolve_beneath(root, name)
    assert resolve_beneath(root, "deep/../deep/x") == root / "deep" / "x"


def test_E02_open_beneath_lets_none_of_ten_thousand_swaps_escape(root):
    """A folder on the way turns into a link outside and back while the file is opened again and again."""
    stop = threading.Event()
    (root / "swap").mkdir()
    (root / "swap" / "x").write_text("inside")

    def swap() -> None:
        while not stop.is_set():
            (root / "swap").rename(root / "kept")
            (root / "swap").symlink_to(root.parent / "ab")
            (root / "swap").unlink()
            (root / "kept").rename(root / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(10_000):
            try:
                seen.add(read(root, "swap/x"))
            except (OutsideRoot, OSError):
                continue
    finally:
        stop.set()
        thread.join()

    assert seen <= {"inside"}


def test_E04_open_beneath_refuses_pipes_without_waiting(root):
    os.mkfifo(root / "pipe")

    with pytest.raises(OutsideRoot):
        open_beneath(root, "pipe")
    assert list(walk_beneath(root)) == ["deep/x"]


def test_walk_beneath_ends_at_too_many_files(root):
    with pytest.raises(OutsideRoot):
        list(walk_beneath(root.parent, max_files=1))


def test_write_whole_that_breaks_off_leaves_the_old_file_and_nothing_else(root):
    target = root / "deep" / "x"

    def break_off() -> None:
        with atomic_writer(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()

    assert target.read_text() == "inside"
    assert [path.name for path in target.parent.iterdir()] == ["x"]
    write_atomically(target, b"new")
    assert target.read_text() == "new"


def test_link_or_copy_costs_no_bytes_and_remove_tree_removes_all(root):
    files.link_or_copy(root / "deep" / "x", root / "y")

    assert (root / "y").stat().st_ino == (root / "deep" / "x").stat().st_ino
    files.remove_tree(root / "deep")
    files.remove_tree(root / "deep")
    assert sorted(path.name for path in root.iterdir()) == ["file", "out", "y"]


def test_walk_beneath_looks_no_deeper_than_it_is_cheap_where_it_is_lenient(root):
    at_the_end = root.joinpath(*["d"] * (files.MAX_DEPTH + 1))
    (at_the_end / "d").mkdir(parents=True)
    (at_the_end.parent / "found").touch()
    (at_the_end / "d" / "too-deep").touch()

    lenient = {path.rpartition("/")[2] for path in walk_beneath(root, lenient=True)}
    strict = {path.rpartition("/")[2] for path in walk_beneath(root)}

    assert "found" in lenient
    assert "too-deep" not in lenient
    assert {"found", "too-deep"} <= strict


def test_remove_tree_removes_what_is_deeper_than_calls_and_follows_no_link(root):
    outside = root / "outside"
    (outside / "kept").mkdir(parents=True)
    deep = root / "deepest"
    deep.mkdir()
    place = os.open(deep, os.O_RDONLY)
    for _level in range(2000):
        os.mkdir("down", dir_fd=place)
        os.symlink(outside, "link", dir_fd=place)
        below = os.open("down", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)

    try:
        files.remove_tree(deep)
    finally:  # pytest itself would stumble over what is left
        left = [path for path in root.iterdir() if "deepest" in path.name]
        subprocess.run(["rm", "-rf", *left], check=True)

    assert (outside / "kept").is_dir()
    assert not left
