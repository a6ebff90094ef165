"""Errors of a job's cards, from the kernel's log and the NPUs' own, each kept once."""

import json
import os
import time

import pytest
from django.utils.timezone import now

from tests.factories import work
from workers.core.models import Device
from workers.execution.agent import device_errors, npu_logs
from workers.execution.agent.npu_logs import NpuLogs
from workers.jobs.output import device_errors as shown

UUID = "GPU-1234"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel log and a driver that names one card's place on the bus."""
    about = tmp_path / "gpus" / "0000:3B:00.0"
    about.mkdir(parents=True)
    (about / "information").write_text(f"Model: \t X\nGPU UUID: \t {UUID}\n")
    monkeypatch.setattr(
        device_errors, "bus_addresses", lambda read=device_errors.bus_addresses: read(tmp_path / "gpus")
    )
    log = tmp_path / "kmsg"
    log.write_text("")
    monkeypatch.setattr(device_errors.env, "KERNEL_LOG", str(log))
    monkeypatch.setattr(device_errors.env, "NPU_LOGS", str(tmp_path / "npus"))
    return log


@pytest.fixture
def job(alice, cluster):
    node = work.node("node1", gpus=2)
    Device.objects.filter(node=node, kind="gpu", index=1).update(uuid=UUID)
    job = work.job(alice, cluster, state="running", gpus_per_node=1)
    work.hold(job, Device.objects.get(node=node, kind="gpu", index=1))
    work.run_dir(job)
    return job


def xid(number, *, bus="0000:3b:00", code=79, ago_s=0.0):
    us = int((time.clock_gettime(time.CLOCK_BOOTTIME) - ago_s) * 1e6)
    return f"4,{number},{us},-;NVRM: Xid (PCI:{bus}): {code}, pid=7, GPU has fallen off the bus.\n SUBSYSTEM=pci\n"


@pytest.mark.django_db
def test_device_errors_of_a_jobs_card_are_kept_once(kernel, job, as_alice, api):
    kernel.write_text(
        "6,1,5,-;usb 1-1: new device\n" + xid(2, ago_s=9_999) + xid(3, bus="0000:af:00") + xid(4) + xid(5, code=31)
    )

    written = [device_errors.collect("node1") for _ in range(2)]
    page = as_alice.get(f"/jobs/{job.pk}/?tab=console").content.decode()
    answer = api.get(f"/api/v1/jobs/{job.pk}/device-errors/").json()

    assert written == [2, 0]
    assert {(row["node"], row["card"], row["code"]) for row in answer} == {("node1", "gpu1", 79), ("node1", "gpu1", 31)}
    assert "GPU has fallen off the bus." in page
    assert 'id="h-device-errors"' in page


@pytest.mark.django_db
def test_device_errors_survive_a_line_that_was_half_written(kernel, job):
    path = work.run_dir(job).path / shown.FOLDER / "node1.jsonl"
    kernel.write_text(xid(1))
    device_errors.collect("node1")
    path.write_bytes(path.read_bytes()[:-20])

    device_errors.collect("node1")

    assert [error.code for error in shown.list_errors(job)] == [79]


@pytest.mark.django_db
def test_device_errors_of_npus_come_from_the_folder_that_is_set(kernel, job, tmp_path):
    npu = Device.objects.create(node=Device.objects.first().node, kind="npu", index=3, model="910")
    work.hold(job, npu)
    folder = tmp_path / "npus" / "device-3"
    folder.mkdir(parents=True)
    soon = now().astimezone().replace(year=now().year + 1)
    lines = [
        f"[ERROR] TS(1,x):{soon:%Y-%m-%d-%H:%M:%S}.123.456 [task] failed",
        f"[INFO] TS(1,x):{soon:%Y-%m-%d-%H:%M:%S}.123.456 [task] fine",
        "[ERROR] TS(1,x):2020-01-01-00:00:00.123.456 [task] long ago",
    ]
    (folder / "device-3_1.log").write_text("\n".join(lines) + "\n")

    device_errors.collect("node1")

    assert [(error.card, error.code, "failed" in error.text) for error in shown.list_errors(job)] == [
        ("npu3", None, True)
    ]


@pytest.fixture
def npu_log(kernel, job, tmp_path):
    """The log of an NPU that the job holds."""
    npu = Device.objects.create(node=Device.objects.first().node, kind="npu", index=3, model="910")
    work.hold(job, npu)
    log = tmp_path / "npus" / "device-3" / "device-3_1.log"
    log.parent.mkdir(parents=True)
    log.write_text("")
    return log


def npu_row(words, at=None):
    at = at or f"{now().astimezone().replace(year=now().year + 1, day=1):%Y-%m-%d-%H:%M:%S}"
    return f"[ERROR] TS(1,x):{at}.123.456 [task] {words}\n"


@pytest.mark.django_db
def test_device_errors_of_npus_are_kept_once_though_their_logs_are_rotated_and_cut(npu_log, job):
    logs = NpuLogs()
    npu_log.write_text(npu_row("one") + npu_row("two"))
    written = [device_errors.collect("node1", logs)]
    npu_log.rename(npu_log.with_name("device-3_0.log"))
    npu_log.write_text(npu_row("three"))
    written.append(device_errors.collect("node1", logs))
    npu_log.write_text(npu_row("4"))  # cut: shorter than it was
    written.append(device_errors.collect("node1", logs))
    written.append(device_errors.collect("node1", NpuLogs()))  # by an agent that was restarted

    assert written == [2, 1, 1, 0]
    assert {error.text.rpartition(" ")[2] for error in shown.list_errors(job)} == {"one", "two", "three", "4"}


@pytest.mark.django_db
def test_device_errors_of_npus_pass_over_a_date_that_no_calendar_has(npu_log, job):
    npu_log.write_text(
        npu_row("odd", at="2026-02-31-10:00:00") + npu_row("late", at="9999-99-99-99:99:99") + npu_row("x")
    )

    assert device_errors.collect("node1", NpuLogs()) == 1


def test_npu_logs_are_read_on_from_where_they_were_left(tmp_path, monkeypatch):
    log = tmp_path / "device-3" / "a.log"
    log.parent.mkdir()
    log.write_text("[INFO] nothing\n" * 50_000 + npu_row("one") + npu_row("half")[:-9])
    logs, read = NpuLogs(), []
    pread = os.pread
    monkeypatch.setattr(
        npu_logs.os, "pread", lambda *given: read.append(len(data := pread(*given))) or data, raising=True
    )

    first = [line.text for line in logs.read_errors(tmp_path, 3)]
    before = sum(read)
    read.clear()
    with log.open("a") as file:
        file.write("ended half\n")
    second = [line.text for line in logs.read_errors(tmp_path, 3)]

    assert (len(first), len(second)) == (1, 2)
    assert before > 700_000
    assert sum(read) < 2_000


@pytest.mark.django_db
def test_device_errors_of_npus_know_what_was_written_down_by_number_before(npu_log, job):
    npu_log.write_text(npu_row("one"))
    path = work.run_dir(job).path / shown.FOLDER / "node1.jsonl"
    path.parent.mkdir(parents=True)
    row = {"number": "device-3_1.log:0", "at": 1.0, "card": "npu3", "code": None, "text": npu_row("one").strip()}
    path.write_text(json.dumps(row) + "\n")

    assert device_errors.collect("node1", NpuLogs()) == 0


@pytest.mark.django_db
def test_device_errors_need_no_kernel_log(kernel, job, as_alice):
    kernel.unlink()

    assert device_errors.collect("node1") == 0
    assert 'id="h-device-errors"' not in as_alice.get(f"/jobs/{job.pk}/?tab=console").content.decode()


def test_device_error_record_stays_below_its_room(tmp_path, monkeypatch):
    monkeypatch.setattr(device_errors, "MAX_BYTES", 250)
    lines = [device_errors.Line(str(n), float(n), "gpu0", 1, "x" * 40) for n in range(9)]

    assert device_errors.append_lines(tmp_path / "a" / "n.jsonl", lines) == 2
    assert (tmp_path / "a" / "n.jsonl").stat().st_size <= 250
