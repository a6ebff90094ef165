"""What checks of the GPU report make of what they read, with drivers and daemons played by fakes."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from aiplatform.celery import app
from aiplatform.cli.gpu_report import runner
from aiplatform.cli.gpu_report.catalog import CHECKS
from aiplatform.cli.gpu_report.checks import binding, hardware, serving, sharing, signals
from aiplatform.cli.gpu_report.definitions import Context, NotAvailable, Status, judge
from workers.core.runs import RunDir
from workers.execution import measurement_jobs
from workers.execution.agent.eviction_proof import Proof
from workers.resources.nodes.telemetry.probe import Card, Reading
from workers.supervisor import processes, records

GPUS = [Card(0, "GPU-1", "NVIDIA H200", 16_384), Card(1, "GPU-2", "NVIDIA H200", 16_384)]


@pytest.fixture
def context(tmp_path):
    tmp_path.chmod(0o755)
    yield Context(GPUS, tmp_path, 200, "cpu")
    measurement_jobs.end_all(tmp_path)


def result(check_id, values):
    """How the catalog judges values."""
    return judge(next(check for check in CHECKS if check.id == check_id), values)


class Driver:
    """The first GPU: busy while a measurement job runs, and holding memory while one is there."""

    def __init__(self, folder, paused_load=0.0):
        self.folder, self.paused_load = folder, paused_load

    def read(self):
        runs = [path.parent for path in self.folder.rglob(records.SUPERVISOR)]
        alive = [run for run in runs if measurement_jobs.running_supervisor(run)]
        states = [(records.read(run / records.STATUS) or {}).get("state") for run in alive]
        load = 99.0 if "running" in states else self.paused_load
        pids = [pid for run in alive for pid in processes.descendants(measurement_jobs.running_supervisor(run))]
        return [
            Reading(0, load, 3000.0 * len(alive), 55.0, 300.0, dict.fromkeys(pids[-1:], 2500.0)),
            Reading(1, 0.0, 0.0),
        ]


@pytest.fixture
def driver(context, monkeypatch):
    def one(**about):
        monkeypatch.setattr(signals, "find_probe", lambda: Driver(context.folder, **about))

    monkeypatch.setattr(signals, "SETTLE_S", 0)
    monkeypatch.setattr(signals, "PIECES", 1)
    one()
    return one


@pytest.mark.parametrize(("paused_load", "status"), [(0.0, Status.PASSED), (40.0, Status.FAILED)])
def test_pause_passes_only_where_the_gpu_does_nothing_meanwhile(context, driver, paused_load, status):
    driver(paused_load=paused_load)

    found = signals.pause(context)

    assert (found["busy"], found["paused"], found["again"], found["left"]) == (99, paused_load, 99, 0)
    assert result("pause", found).status == status


@pytest.mark.parametrize(("power", "status"), [("300", "pass"), ("100", "fail"), ("[N/A]", "pass")])
def test_telemetry_is_compared_with_nvidia_smi(context, driver, monkeypatch, power, status):
    seen = []

    def answer(command, **_options):
        seen.append(command)
        return SimpleNamespace(stdout=f"3000, 99, 55, {power}\n")

    monkeypatch.setattr(signals, "subprocess", SimpleNamespace(run=answer))

    found = signals.telemetry(context)

    assert "--id=GPU-1" in seen[0]
    assert (found["memory"], found["util"], found["temperature"], found["own_mib"]) == (0, 0, 0, 2500)
    assert result("telemetry", found).status == status


def test_eviction_reports_shares_of_what_was_held(context, driver, monkeypatch):
    monkeypatch.setattr(signals.eviction_proof, "prove", lambda *_a, **_o: Proof(1600, 1550, 12_000, 0.8, 0.6, 400))

    found = signals.eviction(context)

    assert (found["freed"], found["filled"]) == (0.969, 0.732)
    assert result("eviction", found).status == Status.PASSED
    with pytest.raises(NotAvailable):
        signals.eviction(Context([Card(100, "MIG-1", "Slice", 8192, parent=0)], context.folder, 10))


@pytest.fixture
def throughput(monkeypatch):
    """Steps per second of so many jobs: in turns always 1000, by MPS 1000 each."""
    asked, was_read = [], threading.Event()

    def read():
        was_read.set()
        return [Reading(1, 90.0), Reading(0, 40.0)]

    def together(home, card, clients, seconds, program, daemon):
        asked.append((clients, daemon is not None))
        was_read.clear()
        assert not home.name.isdigit() or was_read.wait(60)  # only rounds without MPS are watched
        return 1000.0 * (clients if daemon else 1)

    monkeypatch.setattr(sharing.mps_gain, "together", together)
    monkeypatch.setattr(sharing.mps_gain, "daemon_for", lambda card: nullcontext("daemon"))
    monkeypatch.setattr(sharing, "find_probe", lambda: SimpleNamespace(read=read))
    return asked


def test_jobs_in_turns_are_counted_for_each_number_of_them(context, throughput, monkeypatch):
    monkeypatch.setattr(sharing, "SAMPLE_S", 0.001)
    found = sharing.turns(context)

    assert throughput == [(1, False), (2, False), (4, False), (8, False)]
    assert (found["steps_8"], found["kept"]) == (1000, 1.0)
    assert 0 < found["load_8"] <= 40  # of the GPU that is measured, not of its neighbor
    assert result("throughput", found).status == Status.PASSED


def test_jobs_by_mps_are_compared_with_those_in_turns(context, throughput):
    found = sharing.mps(context)

    assert throughput == [(4, False), (2, True), (4, True), (8, True), (4, True)]
    assert (found["turns"], found["steps_8"], found["ratio"], found["limited"]) == (1000, 8000, 4.0, True)
    assert result("mps", found).status == Status.PASSED


def test_memory_of_shares_is_compared_with_what_each_may_have(context, monkeypatch):
    class Held:
        def __init__(self, eighths):
            self.eighths = eighths

        def wait_for_line(self, _word, _limit_s):
            return [str(16_384 * self.eighths / 8 - 64)]

    monkeypatch.setattr(sharing, "_share", lambda _context, eighths, _pieces: Held(eighths))

    found = sharing.memory(context)

    assert found == {"used_2": 0.984, "used_4": 0.992}
    assert result("share_memory", found).status == Status.PASSED


def test_rates_are_compared_with_the_device_catalog(context, monkeypatch):
    measured = {"float32_tflops": 50.0, "bfloat16_tflops": 100.0, "memory_gb_s": 4000.0}
    monkeypatch.setattr(hardware.jobs, "run", lambda *_given, **_options: measured)

    found = hardware.rates(context)

    assert (found["float32_tflops_share"], found["bfloat16_tflops_share"]) == (0.746, 0.101)
    judged = result("rates", found)
    assert (judged.status, judged.reason) == (
        Status.FAILED, "bfloat16 relative to the catalog: 0.101, expected ≥ 0.4",
    )  # fmt: skip


@pytest.mark.parametrize(("served", "unserved"), [((0, 1), 0), ((0,), 1)])
def test_queues_of_gpus_need_a_worker_and_the_job_its_gpus(context, monkeypatch, settings, served, unserved):
    settings.NODE = "node1"
    queues = {"cpu@node1": [{"name": f"node1.gpu{index}"} for index in served]}
    monkeypatch.setattr(app.control, "inspect", lambda **_o: SimpleNamespace(active_queues=lambda: queues))
    run = RunDir.for_attempt(77, 1).path
    run.mkdir(parents=True, exist_ok=True)
    records.write(run / records.LAUNCH, {"env": {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2"}})

    found = binding.queues(Context(GPUS, context.folder, 10, job=77))

    assert found == {"unserved": unserved, "bound": True}
    assert result("queues", found).status == (Status.FAILED if unserved else Status.PASSED)
    with pytest.raises(NotAvailable, match=r"The platform is not running on this node."):
        binding.queues(context)


@pytest.mark.parametrize("known", [["vaapi"], ["vaapi", "cuda"]])
def test_video_is_not_available_where_ffmpeg_was_built_without_cuda(context, monkeypatch, known):
    printed = {"decoder": "software", "why": "", "devices": known, "whole": True, "frames_s": 900.04}
    monkeypatch.setattr(serving.jobs, "run", lambda *_given, **_options: dict(printed))
    on_gpu = Context(GPUS, context.folder, 10)

    if "cuda" not in known:
        with pytest.raises(NotAvailable, match="without CUDA"):
            serving.video(on_gpu)
    else:
        judged = result("video", serving.video(on_gpu))
        assert (judged.status, judged.reason) == (Status.FAILED, "Decoder: software, expected cuda")


def test_check_of_the_catalog_runs_in_a_process_of_its_own(context):
    check = next(check for check in CHECKS if check.id == "xid")

    judged = runner.run_check(check, Context(GPUS, context.folder / "xid", 60, "cpu"))

    assert judged.status == Status.FAILED
    assert judged.reason == "The PCI address of the GPU is known: no, expected yes"
