"""Programs that are run in a job for their answer: how their end is read."""

from __future__ import annotations

import json
import socket

import pytest

from workers.execution.exec import channels, programs
from workers.execution.exec.channels import ChannelRefused


@pytest.fixture
def job(monkeypatch):
    """The job's end of the channel that `run` opens."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(channels, "connect", lambda way, request, patience_s: ours)
    with ours, theirs:
        yield theirs


def frame(kind: bytes, payload: bytes) -> bytes:
    return programs.FRAME.pack(kind, len(payload)) + payload


def test_program_that_ends_before_its_input_was_sent_is_read_to_its_end(job):
    job.sendall(frame(b"O", b"/opt/code\n") + frame(b"X", json.dumps({"code": 0}).encode()))
    job.close()

    assert programs.run(None, "command -v code", stdin=b"x" * 100_000, patience_s=5) == programs.Ended(0, "/opt/code\n")


def test_program_whose_channel_ends_without_its_code_is_refused(job):
    job.sendall(frame(b"O", b"half"))
    job.close()

    with pytest.raises(ChannelRefused):
        programs.run(None, "true", patience_s=5)
