"""The GPU report without GPUs: judgement, time limit, processes, files, command line."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from aiplatform import env
from aiplatform.cli import doctor, gpu_report
from aiplatform.cli.gpu_report import children, command, documents, locks, node_facts, reservation, runner
from aiplatform.cli.gpu_report.catalog import CHECKS
from aiplatform.cli.gpu_report.definitions import Check, Context, Need, NotAvailable, Quantity, Status, judge
from aiplatform.cli.gpu_report.reservation import Reservation
from tests.cases import case_table
from tests.running import wait_for
from workers.execution import measurement_jobs
from workers.resources.nodes.telemetry.probe import Card, FakeProbe

GPUS = [Card(0, "GPU-1", "Test GPU", 16_384), Card(1, "GPU-2", "Test GPU", 16_384)]
FACTS = {"devices": [], "simulated": False, "torch": {"available": True}}
SPEED = Quantity("speed", "Speed", 2.0, "×", at_least=1.2)


def made(name, work, *, seconds=1.0, quantities=(SPEED,), needs=(), limit_factor=3.0):
    """A check that runs a function of the test."""

    class Made(Check):
        def function(self):
            return work

    return Made(name, name.title(), ("1",), "", seconds, quantities, needs, limit_factor)


@pytest.fixture
def reserve():
    """Reserves both GPUs; `.problem` says that they are gone."""

    @contextmanager
    def one(devices, _facts, _left_s):
        one.held = True
        try:
            yield Reservation(list(devices), "job", 7, problem=lambda: one.problem)
        finally:
            one.held = False

    one.problem, one.held = "", False
    return one


@pytest.fixture
def report(tmp_path, reserve, monkeypatch):
    """`report(check, …)`: the document of a run with two GPUs."""
    monkeypatch.setattr(runner, "_facts", lambda *_given: FACTS | {"devices": [vars_of(card) for card in GPUS]})

    def one(*checks, minutes=2.0, **options):
        document = runner.run(checks, minutes=minutes, folder=tmp_path, reserve=reserve, **options)
        assert list(tmp_path.iterdir()) == []  # nothing of its work is left
        assert not reserve.held
        return document

    return one


def vars_of(card):
    return {name: getattr(card, name) for name in Card.__slots__}


def statuses(document):
    return {check["id"]: check["status"] for check in document["checks"]}


@case_table("check", CHECKS, ids=lambda check: check.id)
def test_catalog_check_passes_with_its_examples_and_fails_beside_them(check):
    for quantity in check.quantities:
        assert not quantity.is_expected or quantity.is_met(quantity.example)
    assert judge(check, check.examples()).status == Status.PASSED
    expected = [quantity for quantity in check.quantities if quantity.is_expected]
    assert expected
    for quantity in expected:
        wrong = (
            (not quantity.equals) if isinstance(quantity.equals, bool) else -1.0 if quantity.at_most is None else 1e9
        )
        failed = judge(check, check.examples() | {quantity.key: wrong})
        assert failed.status == Status.FAILED
        assert quantity.label in failed.reason
    assert callable(check.function())


def test_catalog_fits_its_names():
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        keys = [quantity.key for quantity in check.quantities]
        assert len(set(keys)) == len(keys)
        assert check.lines
    claimed = {line for check in CHECKS for line in check.lines}
    assert {"65", "69", "70", "73", "148", "154", "155", "157", "183", "R32", "R34", "R35", "I08", "I10"} <= claimed


def test_missing_value_fails_unless_it_is_optional():
    check = made(
        "speed", None, quantities=(SPEED, Quantity("note", "Note", 1.0), replace(SPEED, key="o", optional=True))
    )

    assert judge(check, {}).reason == "Speed: not measured, expected ≥ 1.2 ×"
    assert judge(check, {"speed": 1.3}).status == Status.PASSED
    assert judge(check, {"speed": 1.3, "o": 1.0}).status == Status.FAILED


def test_report_runs_checks_in_order_and_counts_them(report):
    def unavailable(_context):
        raise NotAvailable("The GPU is a MIG slice.")

    def broken(_context):
        print("before the fault")
        raise ValueError("a fault")

    document = report(
        made("good", lambda context: {"speed": float(len(context.devices))}),
        made("slow", lambda _context: {"speed": 1.0}),
        made("slice", unavailable),
        made("broken", broken),
        made("killed", lambda _context: os.kill(os.getpid(), signal.SIGKILL)),
        made("needy", lambda _context: {"speed": 2.0}, needs=(Need.TENSORRT,)),
    )

    assert statuses(document) == {
        "good": "pass", "slow": "fail", "slice": "not available", "broken": "fail", "killed": "fail",
        "needy": "not available",
    }  # fmt: skip
    reasons = {check["id"]: check["reason"] for check in document["checks"]}
    assert reasons["slow"] == "Speed: 1 ×, expected ≥ 1.2 ×"
    assert reasons["slice"] == "The GPU is a MIG slice."
    assert reasons["broken"] == "ValueError: a fault"
    assert reasons["killed"] == "The check process was terminated by SIGKILL."
    assert "before the fault" in document["checks"][3]["output"]
    assert (
        document["checks"][0]["values"][0] | {"value": 2.0, "expectation": "≥ 1.2 ×", "met": True}
        == (document["checks"][0]["values"][0])
    )
    assert document["exit_code"] == 1
    assert document["summary"] == {"pass": 1, "fail": 3, "not available": 2, "skipped": 0, "simulated": 0}


def test_check_that_hangs_is_killed_with_all_it_started(report, tmp_path):
    def hang(context):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        job = measurement_jobs.MeasurementJob(
            context.folder / "job", [sys.executable, "-c", "import time; print('up'); time.sleep(600)"], []
        )
        job.wait_for_line("up", 60)
        print(json.dumps([child.pid, job.supervisor_pid()]), flush=True)
        time.sleep(600)  # pause: until it is killed

    document = report(made("hang", hang, seconds=5.0, limit_factor=1.0), made("next", lambda _context: {"speed": 2.0}))

    (hung, after) = document["checks"]
    assert (hung["status"], after["status"]) == ("fail", "pass")
    assert hung["reason"] == "The check was stopped at its limit of 5 s."
    pids = json.loads(hung["output"].splitlines()[-1]) if hung["output"] else []
    for pid in pids:
        wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))


def _is_zombie(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return True


def test_what_a_killed_report_left_is_removed_and_its_jobs_end(report, tmp_path):
    left, alive = tmp_path / ".work-killed", tmp_path / ".work-alive"
    for work in (left, alive):
        work.mkdir(mode=0o755)
        work.chmod(0o755)
    (left / "lock").touch()
    (tmp_path / ".owner-1").touch()
    job = measurement_jobs.MeasurementJob(left / "job", [sys.executable, "-c", "import time; time.sleep(600)"], [])
    assert job.supervisor_pid()
    os.utime(left, (0, 0))

    with locks.held(alive / "lock"):
        locks.sweep(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [".work-alive"]
    assert measurement_jobs.running_supervisor(left / "job") is None


def test_check_without_enough_time_left_is_skipped(report):
    ran = report(made("long", lambda _context: {"speed": 2.0}, seconds=500.0), made("short", lambda _: {"speed": 2.0}))

    assert statuses(ran) == {"long": "skipped", "short": "pass"}
    assert re.match(r"Not enough time left: the check takes about 500 s, \d+ s are left", ran["checks"][0]["reason"])
    none = report(made("short", lambda _: {"speed": 2.0}), minutes=0.1)
    assert (statuses(none), none["exit_code"]) == ({"short": "skipped"}, 2)


def test_checks_stop_when_the_reservation_has_ended(report, reserve):
    def lose(_context):
        return {"speed": 2.0}

    reserve.problem = "The reservation, job #7, was ended."
    document = report(made("one", lose))

    assert document["checks"][0]["status"] == "skipped"
    assert document["checks"][0]["reason"] == reserve.problem


def test_report_ends_where_no_gpu_can_be_reserved(report, monkeypatch, tmp_path):
    @contextmanager
    def refuse(*_given):
        raise reservation.Unavailable("They are held by train (#3).")
        yield

    document = runner.run([made("one", None)], minutes=1, folder=tmp_path, reserve=refuse)

    assert (statuses(document), document["exit_code"]) == ({"one": "skipped"}, 2)
    assert document["reservation"] == {"how": "none", "problem": "They are held by train (#3)."}


@pytest.mark.parametrize("gpus", [0, 2])
def test_whole_catalog_runs_with_simulated_gpus_and_passes_nothing(gpus, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(env, "FAKE_GPUS", gpus)
    monkeypatch.setattr(env, "DATA_ROOT", tmp_path)
    monkeypatch.setattr(reservation, "is_platform_running", lambda: False)
    before = signal.getsignal(signal.SIGTERM)
    try:
        code = doctor.main(["--gpu-report", "--output", str(tmp_path / "out")])
    finally:
        signal.signal(signal.SIGTERM, before)
    printed = capsys.readouterr().out

    assert code == 2
    if not gpus:
        assert "This node has no NVIDIA GPU." in printed
        for check in CHECKS:
            assert f"{check.id}: {check.title}" in printed
        assert "1.2 ×" in printed
        assert not (tmp_path / "out").exists()
        return
    document = json.loads((tmp_path / "out" / "report.json").read_text())
    assert document["schema"] == runner.SCHEMA
    assert document["simulated"] is True
    assert set(statuses(document).values()) == {"simulated"}
    assert [check["id"] for check in document["checks"]] == [check.id for check in CHECKS]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "nothing was measured" in page
    assert not re.search(r"(?:src|href)=|@import|url\(", page)  # it needs nothing beside itself
    assert 'class="s pass"' not in page
    assert [entry.name for entry in (tmp_path / gpu_report.FOLDER).iterdir()] == []


@pytest.mark.parametrize("options", [["--minutes", "0.5"], ["--gpus", "0"]])
def test_report_refuses_limits_in_which_nothing_can_be_measured(options, capsys):
    assert doctor.main(["--gpu-report", *options]) == 2
    assert "--minutes must be at least 1, and --gpus at least 1." in capsys.readouterr().out


def test_only_chosen_checks_run_and_unknown_ones_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(env, "DATA_ROOT", tmp_path)

    assert doctor.main(["--gpu-report", "--only", "binding", "no-such-check"]) == 2
    assert "no-such-check." in capsys.readouterr().out


def test_report_page_escapes_what_the_node_says(report):
    document = report(made("one", lambda _context: {"speed": 1.0}), node="<script>alert(1)</script>")
    document["checks"][0]["reason"] = "<b>bold</b>"

    page = documents.page(document)

    assert "<script>" not in page
    assert "<b>bold</b>" not in page
    assert "&lt;b&gt;bold" in page


def test_facts_of_a_node_are_shown(report):
    document = report(made("one", lambda _context: {"speed": 2.0}))
    document["facts"] |= {
        "nvml": {
            "driver": "580.1", "cuda_driver": "13.0", "links": [["X", "NVLink"], ["NVLink", "X"]],
            "gpus": [{"name": "Test GPU", "ecc": True, "power_limit_w": 700.0}, {"name": "Test GPU", "mig": False}],
        },
    }  # fmt: skip

    page = documents.page(document)

    for text in ("580.1", "13.0", "X · NVLink", "<th>power limit w</th><td>700</td>", "<th>ecc</th><td>yes</td>"):
        assert text in page


def test_needs_name_what_a_node_lacks():
    facts = {
        "torch": {"available": True}, "mps": {"obstacle": "The daemon is not installed."}, "tensorrt": "", "pyav": "18",
        "evictions": {"code": "no_driver", "detail": "too old"}, "triton": "3", "compiler": "/usr/bin/cc",
    }  # fmt: skip

    assert node_facts.missing([Need.TORCH, Need.VIDEO, Need.COMPILER], facts, 1) == ""
    assert node_facts.missing([Need.TORCH, Need.MPS], facts, 1) == "The daemon is not installed."
    assert "two are required" in node_facts.missing([Need.TWO_GPUS], facts, 1)
    assert "too old" in node_facts.missing([Need.EVICTION], facts, 2)
    assert node_facts.missing([Need.TORCH], {}, 2) == "PyTorch finds no CUDA device."


def test_facts_of_simulated_gpus_ask_no_driver():
    facts = node_facts.read(2)

    assert [device["uuid"] for device in facts["devices"]] == [card.uuid for card in FakeProbe(2).cards()]
    assert "torch" not in facts


def test_child_of_a_killed_report_ends_with_it(tmp_path):
    """The process that measures ends with the one that reports, also where that one is killed."""
    told = tmp_path / "pid"
    program = (
        "import os, pathlib, time\n"
        "import django; django.setup()\n"
        "from aiplatform.cli.gpu_report import children\n"
        "def work():\n"
        f"    pathlib.Path({str(told)!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n"
        f"children.run(work, pathlib.Path({str(tmp_path / 'work')!r}), 600)\n"
    )
    reporter = subprocess.Popen([sys.executable, "-c", program], cwd=Path(env.__file__).parents[1])
    pid = int(wait_for(lambda: told.exists() and told.read_text(), 120))
    reporter.kill()
    reporter.wait()

    assert wait_for(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))


def test_value_of_a_child_comes_back_as_it_is(tmp_path):
    outcome = children.run(lambda: {"a": [1, "b", True]}, tmp_path / "one", 30)

    assert (outcome.value, outcome.error, (tmp_path / "one").exists()) == ({"a": [1, "b", True]}, "", False)
    assert isinstance(Context(GPUS, tmp_path, 1.0), Context)
    assert command.COLORS[Status.FAILED] == "31"
