"""Files that were made to hurt: bounded time and memory, nothing from outside the folder, and never an exception."""

import contextlib
import os
import resource
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import work
from workers.core.models import Curve
from workers.jobs.output import media, metrics
from workers.jobs.output import report_ingestion as reporting
from workers.jobs.output.reporting import crc32c, events, finding, graphs, hparams, protobuf, tensors
from workers.jobs.output.reporting.harvest import Harvest
from workers.jobs.output.reporting.watched import Watched

pytestmark = pytest.mark.django_db


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number, kind, payload):
    return varint(number << 3 | kind) + (varint(len(payload)) if kind == 2 else b"") + payload


def record(data, length=None):
    head = struct.pack("<Q", len(data) if length is None else length)
    return head + struct.pack("<I", crc32c.masked(head)) + data + struct.pack("<I", crc32c.masked(data))


def scalar(tag, step, value):
    one = field(1, 2, tag.encode()) + field(2, 5, struct.pack("<f", value))
    return record(field(1, 1, struct.pack("<d", 1.7e9)) + field(2, 0, varint(step)) + field(5, 2, field(1, 2, one)))


@pytest.fixture
def running(alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.run_dir(job).outputs.mkdir()
    return job


@pytest.fixture
def outputs(running):
    return work.run_dir(running).outputs


def take(job, **how):
    reporting._SEARCHES.clear()
    return reporting.ingest(job.attempts.get(), **how)


def test_reports_follow_no_link_and_wait_for_no_pipe(running, outputs, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "metrics.csv").write_text("step,secret\n1,42\n")
    (secret / "events.out.tfevents.1").write_bytes(scalar("secret", 1, 42))
    (outputs / "linked").symlink_to(secret)
    (outputs / "metrics.csv").symlink_to(secret / "metrics.csv")
    (outputs / "events.out.tfevents.2").symlink_to(secret / "events.out.tfevents.1")
    os.mkfifo(outputs / "results.csv")
    os.mkfifo(outputs / "events.out.tfevents.3")
    begun = time.monotonic()

    assert take(running, ended=True) == 0
    assert time.monotonic() - begun < 5
    assert not Curve.objects.exists()


def test_reports_folder_swapped_for_a_link_after_it_was_found_leads_nowhere(running, outputs, tmp_path):
    (tmp_path / "metrics.csv").write_text("step,secret\n1,42\n")
    (outputs / "a").mkdir()
    (outputs / "a" / "metrics.csv").write_text("step,mine\n1,1\n")
    search = reporting._search(running.attempts.get())
    assert search.files() == ["outputs/a/metrics.csv"]
    (outputs / "a" / "metrics.csv").unlink()
    (outputs / "a").rmdir()
    (outputs / "a").symlink_to(tmp_path)

    assert reporting.ingest(running.attempts.get()) == 0
    assert not Curve.objects.exists()


def test_sdk_line_reads_only_files_beside_it(running, outputs):
    (outputs / "aip-media").mkdir()
    (outputs / "aip-media" / "media.jsonl").write_text(
        '{"kind": "text", "name": "a", "step": 1, "file": "../../spec.json"}\n'
        '{"kind": "text", "name": "b", "step": 1, "file": "/etc/passwd"}\n'
        '{"kind": "image", "name": "c", "step": 1, "file": "\\u0000"}\n'
        '{"kind": "vectors", "name": "d", "step": 1, "file": ".."}\n'
    )
    (work.run_dir(running).path / "spec.json").write_text("secret")

    take(running)

    assert [row.facts["text"] for row in media.items_of(running).filter(series__kind="text")] == ["", ""]


def test_event_file_of_garbage_is_given_up_and_not_read_again(running, outputs):
    file = outputs / "events.out.tfevents.1"
    file.write_bytes(scalar("loss", 1, 0.5) + os.urandom(4096) + scalar("loss", 2, 0.5))

    assert take(running, ended=True) == 1
    row = running.attempts.get().report_files.get()
    assert (row.over, row.missed) == (True, {"file_broken": 1})
    assert take(running, ended=True) == 0


def test_event_file_leaves_out_a_damaged_record_and_goes_on(running, outputs):
    bad = bytearray(scalar("loss", 2, 0.5))
    bad[20] ^= 1
    (outputs / "events.out.tfevents.1").write_bytes(scalar("loss", 1, 0.5) + bytes(bad) + scalar("loss", 3, 0.5))

    take(running, ended=True)

    assert metrics.curves(running).series == {"loss": [(1, 0.5), (3, 0.5)]}
    assert running.attempts.get().report_files.get().missed == {"record_broken": 1}


def test_event_file_leaves_out_a_huge_record_without_reading_it(running, outputs):
    file = outputs / "events.out.tfevents.1"
    huge = 3 * 1024**3
    with file.open("wb") as out:
        head = struct.pack("<Q", huge)
        out.write(head + struct.pack("<I", crc32c.masked(head)))
        out.seek(huge + 4, os.SEEK_CUR)  # a hole
        out.write(scalar("loss", 7, 0.5))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    take(running, ended=True)

    assert metrics.curves(running).series == {"loss": [(7, 0.5)]}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


def test_event_file_that_claims_more_than_it_has_is_waited_for(running, outputs):
    (outputs / "events.out.tfevents.1").write_bytes(record(b"", length=2**63))

    assert take(running, ended=True) == 0


def test_reports_of_a_million_names_are_bounded(running, outputs, monkeypatch):
    monkeypatch.setattr(finding, "MAX_ENTRIES", 500)
    for number in range(2000):
        (outputs / f"{number}.tfevents").touch()
    search = reporting._search(running.attempts.get())

    found = search.files()

    assert len(found) == finding.MAX_FOUND
    assert search.more
    assert sum(folder.entries for folder in search._known.values()) <= 500


def test_reports_look_into_no_folder_twice_that_rests(running, outputs, monkeypatch):
    for number in range(30):
        (outputs / f"run{number}").mkdir()
        os.utime(outputs / f"run{number}", (1e9, 1e9))
    os.utime(outputs, (1e9, 1e9))
    search = reporting._search(running.attempts.get())
    search.files(at_once=True)
    listed = []
    scan = os.scandir
    monkeypatch.setattr(finding.os, "scandir", lambda path: listed.append(path) or scan(path))

    search.files(at_once=True)

    assert listed == []


def test_reports_of_many_figures_keep_to_the_bound_of_keys(running, outputs):
    with (outputs / "events.out.tfevents.1").open("wb") as out:
        for number in range(1000):
            out.write(scalar(f"k{number}", 1, 1.0))

    take(running, ended=True)

    assert Curve.objects.count() == metrics.MAX_KEYS


def test_reports_without_end_are_taken_in_portions(running, outputs, monkeypatch):
    monkeypatch.setattr(reporting, "AT_ONCE_S", 0.1)
    with (outputs / "events.out.tfevents.1").open("wb") as out:
        out.write(b"".join(scalar("loss", step, 1.0) for step in range(25_000)))
    begun, first = time.monotonic(), take(running)

    assert 0 < first < 25_000
    assert time.monotonic() - begun < 5
    take(running, ended=True)
    assert Curve.objects.get().count == 25_000


@given(st.binary(max_size=400))
def test_no_bytes_break_the_readers_of_messages(data):
    for read in (
        lambda: list(protobuf.fields(data)),
        lambda: graphs.parsed(memoryview(data)),
        lambda: tensors.read(memoryview(data)),
        lambda: hparams.read(memoryview(data)),
    ):
        with contextlib.suppress(protobuf.Malformed):
            read()


@given(st.binary(max_size=300), st.booleans())
def test_no_record_breaks_the_reader_of_events(tmp_path_factory, data, wrapped):
    """Any message, also one that is a summary with any value."""
    message = field(5, 2, field(1, 2, field(1, 2, b"t") + data)) if wrapped else data
    file = tmp_path_factory.mktemp("events") / "x.tfevents"
    file.write_bytes(record(message) + scalar("after", 1, 1.0))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        watched = Watched("outputs/x", descriptor, file.stat().st_size, 0.0)
        harvest = Harvest(time.monotonic() + 60)
        events.read(watched, harvest)
    finally:
        os.close(descriptor)

    assert watched.position == file.stat().st_size
    assert any(name == "after" for points in harvest.points.values() for name, *_ in points)


def test_message_of_endless_fields_is_refused():
    with pytest.raises(protobuf.Malformed):
        list(protobuf.fields(b"\x08\x01" * (protobuf.MAX_FIELDS + 1)))


def test_graph_of_many_nodes_is_cut_and_says_how_many_there_are():
    def node(number):
        return field(1, 2, field(1, 2, f"n{number}".encode()) + field(2, 2, b"Add") + field(3, 2, b"n0:1"))

    facts, data = graphs.parsed(memoryview(b"".join(node(number) for number in range(5000))))

    assert facts == {"nodes": 5000, "shown": graphs.MAX_NODES}
    assert len(data) < 1024 * 1024


def test_csv_and_lines_of_endless_rows_hold_up_nothing(running, outputs):
    (outputs / "metrics.csv").write_bytes(b"step," + b"a" * 200_000)
    (outputs / "results.csv").write_bytes(b"step,loss\n1," + b"9" * 2_000_000 + b"\n2,0.5\n")
    (outputs / "log.jsonl").write_bytes(b'{"step": 1, "loss": ' + b"9" * 2_000_000 + b'}\n{"step": 2, "lr": 1}\n')
    (outputs / "deep.jsonl").write_bytes(b'{"step": 1, "a": ' + b"[" * 60_000 + b"\n")
    (outputs / "trainer_state.json").write_bytes(b"[" * 3_000_000)

    take(running, ended=True)

    assert metrics.curves(running).series == {"loss": [(2, 0.5)], "lr": [(2, 1.0)]}
