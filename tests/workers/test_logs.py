import os
from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.factories import work
from workers.core.models import Attempt
from workers.execution.agent import log_shipping
from workers.jobs.output import logs

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(alice, cluster):
    return work.job(alice, cluster, state="running")


def written(job, data: bytes):
    work.run_dir(job).log.write_bytes(data)
    return job


def joined(job, limit):
    """The whole log, asked piece by piece."""
    text, offset = "", 0
    while True:
        piece = logs.piece(job, offset=offset, limit=limit)
        text += piece.text
        if piece.next_offset == offset:
            return text
        offset = piece.next_offset


def test_job_log_pieces_join_to_the_file_whatever_their_size(running):
    text = "epoch 1 数据 loss=0.5 ✓ 🚀\n" * 40
    written(running, text.encode())

    assert all(joined(running, limit) == text for limit in (4, 5, 7, 64, 1000, 100_000))


@pytest.fixture
def flooded(running):
    """A job that wrote more than its quota since the supervisor last looked: readers see it end at the quota."""
    written(running, b"x" * 300)
    work.run_dir(running).path.joinpath("launch.json").write_text('{"log_quota_bytes": 200}')
    return running


def test_job_log_piece_ends_where_the_log_is_said_to_end(flooded):
    piece = logs.piece(flooded, offset=150)

    assert (piece.size, piece.next_offset, piece.text) == (200, 200, "x" * 50)
    assert logs.piece(flooded, offset=200).next_offset == 200


def test_H02_job_log_piece_never_exceeds_64_kib(running):
    written(running, b"x" * 300_000)

    piece = logs.piece(running, limit=10**9)

    assert (len(piece.text), piece.next_offset, piece.size) == (65_536, 65_536, 300_000)


def test_H03_job_log_shows_what_is_no_text_as_replacement(running):
    written(running, b"a\0b\xff\xfe c\xed\xa0\x80 d\n")

    text = logs.piece(running).text

    assert "\0" not in text
    assert text.startswith("a\ufffdb\ufffd\ufffd c")
    assert text.endswith(" d\n")


def test_job_log_tail_begins_with_a_whole_line(running):
    written(running, b"".join(b"line %04d\n" % n for n in range(1000)))

    piece = logs.piece(running, tail=95)

    assert piece.text.splitlines() == [f"line {n:04d}" for n in range(991, 1000)]
    assert piece.next_offset == piece.size == 10_000


def test_job_log_offset_beyond_the_end_shows_that_the_file_was_cut(running):
    written(running, b"short\n")

    piece = logs.piece(running, offset=5000)

    assert (piece.offset, piece.next_offset, piece.size, piece.text) == (6, 6, 6, "")


def test_job_log_keeps_back_a_cut_last_character_until_the_end_is_known(alice, cluster, running):
    ended = work.job(alice, cluster, state="succeeded")
    for job in (running, ended):
        written(job, "ok 数".encode()[:-1])

    assert logs.piece(running).text == "ok "
    assert logs.piece(ended).text == "ok \ufffd"
    assert not logs.piece(running).ended
    assert logs.piece(ended).ended


def test_job_log_of_a_job_that_never_ran_is_empty(alice, cluster):
    piece = logs.piece(work.job(alice, cluster))

    assert (piece.text, piece.size, piece.ended) == ("", 0, False)


def test_job_log_on_a_slow_shared_disk_is_read_to_its_end(alice, cluster, monkeypatch):
    """Another machine's file: `stat` lags behind, opening shows more, and the end is known before it shows."""
    job = work.job(alice, cluster, state="succeeded")
    log = work.run_dir(job).log
    log.write_bytes(b"one\ntwo\n")
    Attempt.objects.update(log_bytes=14)
    monkeypatch.setattr(type(log), "stat", lambda *_a, **_k: os.stat_result([0] * 10))
    monkeypatch.setattr(type(log), "lstat", lambda *_a, **_k: os.stat_result([0] * 10))

    early = logs.piece(job)
    with log.open("ab") as file:
        file.write(b"three\n")
    full = logs.piece(job, offset=early.next_offset)

    assert (early.text, early.ended) == ("one\ntwo\n", False)
    assert (full.text, full.ended) == ("three\n", True)


def test_job_log_that_its_job_cut_still_ends(alice, cluster):
    job = work.job(alice, cluster, state="succeeded")
    work.run_dir(job).log.write_bytes(b"short\n")
    Attempt.objects.update(log_bytes=1000, ended_at=now() - timedelta(minutes=2))

    assert logs.piece(job).ended


def test_log_shipping_flushes_a_growing_log_where_others_read_it(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(log_shipping, "flush", flushed.append)
    path = tmp_path / "log.txt"
    path.write_text("one\n")
    near, far = log_shipping.Shipped(path, network=False), log_shipping.Shipped(path, network=True)

    first = (near.check(), far.check())
    path.write_text("one\ntwo\n")
    second = (near.check(), far.check())  # flushed a moment ago: not yet
    last = far.check(last=True)

    assert (first, second, last) == ((4, 4), (8, None), 8)
    assert flushed == [path, path]
