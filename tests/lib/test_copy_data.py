"""Copies of files that their program may still write to."""

from __future__ import annotations

import errno
import os

import pytest

from aiplatform.lib import files

SIZE = 3_000_000


@pytest.mark.parametrize("is_refused", [False, True], ids=["in the kernel", "by reading"])
def test_copy_ends_at_the_size_that_the_file_had_at_the_beginning(tmp_path, monkeypatch, is_refused):
    path, copy = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"x" * SIZE)
    original = os.copy_file_range

    def appended_to(*given):
        with path.open("ab") as more:
            more.write(b"y" * 1000)
        if is_refused:
            raise OSError(errno.EXDEV, "another file system")
        return original(*given)

    monkeypatch.setattr(os, "copy_file_range", appended_to)
    with path.open("rb") as source, copy.open("xb") as target:
        files.copy_data(source, target)

    assert copy.read_bytes() == b"x" * SIZE
