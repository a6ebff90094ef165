"""Copies of large files are made, and hashed, by a process of their own."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from pathlib import Path

import pytest

from aiplatform.lib import copies, copy_program

LARGE = copies.INLINE_BYTES + 5_000_001


@pytest.fixture
def file(tmp_path):
    """A function that makes an open file of random bytes."""

    def make(size):
        (tmp_path / "a").write_bytes(os.urandom(size))
        return (tmp_path / "a").open("rb")

    return make


@pytest.mark.parametrize("size", [0, 10, LARGE])
def test_copy_has_the_bytes_and_the_hash_of_its_source(tmp_path, file, size):
    with file(size) as source:
        source.read(3)  # where it was read to does not matter
        source.seek(0)
        digest = copies.copy_hashed(source, tmp_path / "b")
        source.seek(0)
        copies.copy(source, tmp_path / "c")

    data = (tmp_path / "a").read_bytes()
    assert ((tmp_path / "b").read_bytes(), (tmp_path / "c").read_bytes()) == (data, data)
    assert digest == hashlib.sha256(data).hexdigest()


def test_large_copy_takes_no_cpu_time_of_this_process(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        file.truncate(100 << 20)
    began = time.process_time()

    with (tmp_path / "a").open("rb") as source:
        copies.copy_hashed(source, tmp_path / "b")

    assert time.process_time() - began < 0.05
    assert (tmp_path / "b").stat().st_size == 100 << 20


def test_what_is_appended_meanwhile_is_left_out(tmp_path, file, monkeypatch):
    source, original = file(LARGE), copies.subprocess.run

    def appended(*args, **more):
        with (tmp_path / "a").open("ab") as file:
            file.write(b"more")
        return original(*args, **more)

    monkeypatch.setattr(copies.subprocess, "run", appended)
    with source:
        copies.copy_hashed(source, tmp_path / "b")

    assert (tmp_path / "b").stat().st_size == LARGE


@pytest.mark.parametrize("copy", [copies.copy, copies.copy_hashed])
def test_full_disk_is_the_error_that_it_is_in_one_process(file, copy):
    with file(LARGE) as source, pytest.raises(OSError, match="No space") as raised:
        copy(source, Path("/dev/full"))

    assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize("is_refused", [False, True], ids=["in the kernel", "by reading"])
def test_program_copies_also_where_the_kernel_does_not(tmp_path, file, monkeypatch, is_refused):
    def refuse(*_args):
        raise OSError(errno.EXDEV, "another file system")

    if is_refused:
        monkeypatch.setattr(os, "copy_file_range", refuse)
    with file(3_000_000) as source, (tmp_path / "b").open("wb") as target:
        copy_program.copy(source.fileno(), target.fileno(), 3_000_000)

    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
