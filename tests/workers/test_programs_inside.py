"""Programs that are run inside a job for an answer."""

from __future__ import annotations

import json
import socket

import pytest

from workers.execution.exec import channels, programs


def test_program_that_ended_before_its_input_was_sent_has_its_answer_heard(monkeypatch):
    ours, theirs = socket.socketpair()
    theirs.sendall(programs._frame(b"O", b"said") + programs._frame(b"X", json.dumps({"code": 3}).encode()))
    theirs.close()
    monkeypatch.setattr(channels, "connect", lambda *_given, **_more: ours)

    ended = programs.run(object(), "true", stdin=b"x" * 100_000, patience_s=5.0)

    assert (ended.code, ended.output) == (3, "said")


def test_program_that_breaks_off_without_an_end_is_unreachable(monkeypatch):
    ours, theirs = socket.socketpair()
    theirs.close()
    monkeypatch.setattr(channels, "connect", lambda *_given, **_more: ours)

    with pytest.raises(channels.ChannelRefused):
        programs.run(object(), "true", patience_s=5.0)
