"""The gate says how each step went, and how to run a failing one again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.apps import apps

from aiplatform.cli import gate, gate_steps
from tests import cpu_time, migrated
from tests.running import wait_for

PREPARED = gate._prepared


@pytest.fixture(autouse=True)
def _nothing_to_prepare(monkeypatch):
    monkeypatch.delenv("AIP_STEP_TIMEOUT", raising=False)
    monkeypatch.setattr(gate, "_prepared", lambda names: contextlib.nullcontext(list))


@pytest.fixture
def steps(monkeypatch):
    """Two steps that run in this process: the first passes, the second fails."""
    monkeypatch.setattr(gate_steps, "STEPS", {"lint": lambda: 0, "browser": lambda: 1})
    monkeypatch.setattr(gate_steps, "ON_DEMAND", {"coverage"})
    monkeypatch.setattr(gate_steps, "LANES", ((), ("lint", "coverage", "unit", "browser", "proof")))
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
    monkeypatch.setenv("NO_COLOR", "1")


def test_gate_prints_seconds_of_every_step_and_how_to_repeat_a_failing_one(steps, capsys):
    code = gate.main([])

    said = capsys.readouterr().out
    assert code == 1
    assert said.count("  0.0 s") == 4  # each step when it ends, and all of them at the end
    assert said.count("again: python3 manage.py test browser") == 2  # when it ends, and at the end
    assert "one test: python3 manage.py test -- -m browser tests/" in said
    assert "1 passed, 1 failed" in said


def test_gate_runs_named_steps_alone(steps, capsys):
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    assert gate.main(["lint"]) == 0

    assert "again:" not in capsys.readouterr().out
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers


def test_gate_long_lengthens_what_is_not_set(steps, monkeypatch):
    for name in gate_steps.LONG:
        monkeypatch.setenv(name, "")  # restored afterwards, whatever the gate sets
        monkeypatch.delenv(name)
    monkeypatch.setenv("AIP_KILLS", "7")

    gate.main(["--long", "lint"])

    assert os.environ["AIP_KILLS"] == "7"
    assert os.environ["AIP_CHAOS_KILLS"] == gate_steps.LONG["AIP_CHAOS_KILLS"]


@pytest.mark.parametrize(("form", "chosen"), [([], "(proof) and not long"), (["--long"], "proof")])
def test_gate_asks_tests_marked_long_in_the_long_form_alone(steps, monkeypatch, form, chosen):
    for name in gate_steps.LONG:
        monkeypatch.setenv(name, "")  # restored afterwards, whatever the gate sets
        monkeypatch.delenv(name)
    run: list[tuple[str, ...]] = []
    monkeypatch.setattr(gate_steps, "_pytest", lambda *arguments, **more: run.append(arguments) or 0)
    monkeypatch.setitem(gate_steps.STEPS, "proof", gate_steps.proof)

    gate.main([*form, "proof"])

    assert run[0][run[0].index("-m") + 1] == chosen


def test_gate_long_names_only_settings_that_a_test_reads():
    own = {"AIP_TEST_TIMEOUT", "AIP_STEP_TIMEOUT", "AIP_LONG"}
    read = "".join(
        path.read_text() for path in (gate_steps.ROOT / "tests").rglob("*.py") if path.name != "test_gate.py"
    )

    assert [name for name in gate_steps.LONG if f'"{name}"' not in read and name not in own] == []


def test_gate_lanes_run_side_by_side_and_count_as_one_gate(monkeypatch, capsys):
    def apart(name: str) -> gate.Result:
        return gate.Result(name, 1 if name == "chaos" else 0, 1.0, 1.5)

    monkeypatch.setattr(gate, "_run_in_process", apart)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
    monkeypatch.setenv("NO_COLOR", "1")

    assert gate.main(["journey", "unit", "lint", "chaos"]) == 1

    summary = capsys.readouterr().out.split("=== the gate")[1]
    assert [line.split()[1] for line in summary.splitlines() if " s " in line and "CPU" in line][:4] == [
        "lint", "unit", "chaos", "journey",
    ]  # fmt: skip
    assert "3 passed, 1 failed" in summary


@pytest.mark.parametrize(("npm", "node", "skipped"), [(False, True, 1), (False, False, 2), (True, True, 0)])
def test_gate_scripts_step_says_what_it_skips(monkeypatch, capsys, npm, node, skipped):
    from tests.scripts import tools

    ran: list[str] = []
    monkeypatch.setattr(tools, "install", lambda: tools.Tools(Path("biome"), Path("tsc")) if npm else None)
    monkeypatch.setattr(tools, "node", lambda: "node" if node else None)
    monkeypatch.setattr(gate_steps, "execute", lambda *command: ran.append(command[0]) or 0)

    assert gate_steps.scripts() == 0
    assert capsys.readouterr().out.count("skipped") == skipped
    assert ran == (["biome", "tsc"] if npm else []) + (["node"] if node else [])


@pytest.mark.parametrize("failing", ["biome", "tsc", "node"])
def test_gate_scripts_step_fails_with_each_of_its_tools(monkeypatch, failing):
    from tests.scripts import tools

    monkeypatch.setattr(tools, "install", lambda: tools.Tools(Path("biome"), Path("tsc")))
    monkeypatch.setattr(tools, "node", lambda: "node")
    monkeypatch.setattr(gate_steps, "execute", lambda *command: 1 if command[0] == failing else 0)

    assert gate_steps.scripts() == 1


def test_gate_runs_steps_on_demand_only_when_they_are_named(steps, monkeypatch, capsys):
    monkeypatch.setattr(gate_steps, "STEPS", {"lint": lambda: 0, "coverage": lambda: 0})

    gate.main([])
    assert "coverage" not in capsys.readouterr().out
    gate.main(["coverage"])
    assert "coverage" in capsys.readouterr().out


def test_gate_names_at_its_end_what_was_left_out(steps, monkeypatch, capsys):
    monkeypatch.setenv(gate_steps.SKIPPED, "")  # restored afterwards
    monkeypatch.setitem(gate_steps.STEPS, "browser", lambda: gate_steps._skipped("Chromium"))

    assert gate.main([]) == 0
    assert "Chromium is not installed and cannot be installed here" in capsys.readouterr().out.partition("the gate")[2]


@pytest.mark.parametrize(
    ("offered", "asked"),
    [
        ({"chromium-headless-shell", "chromium"}, ["chromium-headless-shell"]),
        ({"chromium"}, ["chromium-headless-shell", "chromium"]),
    ],
)
def test_gate_looks_for_the_browser_without_windows_first(monkeypatch, offered, asked):
    wanted, ran = [], []
    monkeypatch.delenv("AIP_CHROMIUM", raising=False)
    monkeypatch.setattr(gate_steps.shutil, "which", lambda _name: None)
    monkeypatch.setattr(gate_steps, "_apt", lambda program, *packages: wanted.append(program) or program in offered)
    monkeypatch.setattr(gate_steps, "_pytest", lambda *arguments: ran.append(arguments[-1]) or 0)

    assert gate_steps.browser() == 0
    assert (wanted, ran) == (asked, ["tests/browser"])


def test_gate_prepares_once_what_steps_with_tests_need(monkeypatch):
    ran = []
    monkeypatch.setattr(gate_steps, "execute", lambda *command: ran.append(command[2]) or 0)

    with PREPARED(["lint"]) as ready:
        assert ready() == []
    assert ran == []
    with PREPARED(["lint", "unit"]) as ready:
        assert ready() == []
    assert ran == ["compileall", "tests.migrated"]


def test_gate_fails_where_what_the_tests_need_did_not_come_about(monkeypatch, steps, capsys):
    monkeypatch.setattr(gate, "_prepared", PREPARED)
    monkeypatch.setattr(gate_steps, "execute", lambda *command: 1 if "tests.migrated" in command else 0)
    monkeypatch.setattr(gate_steps, "STEPS", {"lint": lambda: 0, "unit": lambda: 0})

    assert gate.main([]) == 1

    said = capsys.readouterr().out
    assert "again: python -m tests.migrated" in said
    assert "2 passed, 1 failed" in said


def test_migrated_database_belongs_to_the_migrations_of_every_app():
    paths = [Path(config.path) for config in apps.get_app_configs()]
    own = [path for path in paths if path.is_relative_to(gate_steps.ROOT) and "site-packages" not in path.parts]
    there = {path for folder in own for path in (folder / "migrations").glob("*.py")}

    assert there - set(migrated.migrations()) == set()


def test_migrated_database_is_made_by_its_own_command(tmp_path):
    code = (
        "import sys; from pathlib import Path; from tests import migrated\n"
        "migrated.KEPT = Path(sys.argv[1])\n"
        "migrated.main()"
    )
    unset = ("DJANGO_SETTINGS_MODULE", "AIP_TEST_ROOT")
    env = {name: value for name, value in os.environ.items() if name not in unset}

    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=gate_steps.ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("migrated-*.sqlite3"))) == 1


def test_gate_ends_a_step_that_hangs_and_says_where_it_stood(monkeypatch, capsys):
    hangs = "import faulthandler, subprocess, sys; faulthandler.enable(); subprocess.run(['sleep', '600'])"
    real = subprocess.Popen
    monkeypatch.setattr(gate.subprocess, "Popen", lambda _argv, **more: real([sys.executable, "-c", hangs], **more))
    monkeypatch.setattr(gate, "LAST_WORDS_S", 0.5)
    monkeypatch.setenv("AIP_STEP_TIMEOUT", "2")

    result = gate._run_in_process("browser")

    said = capsys.readouterr().out
    assert result.code != 0
    assert "more than its budget of 2 s. The stacks of its processes are in the output." in said
    assert "subprocess.py" in said  # the stack of the process that waited
    assert "FAIL" in said


def test_gate_fails_with_the_name_of_the_step_that_exceeds_its_budget(steps, monkeypatch, capsys):
    monkeypatch.setattr(gate_steps, "BUDGETS_S", {"lint": 0.0})

    assert gate.main(["lint"]) == 1

    summary = capsys.readouterr().out.partition("=== the gate")[2]
    assert "lint took 0 s, more than its budget of 0 s." in summary
    assert "0 passed, 1 failed" in summary


def test_gate_ends_a_step_when_the_total_budget_is_used_up(monkeypatch, capsys):
    real = subprocess.Popen
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(gate.subprocess, "Popen", lambda _argv, **more: real(sleep, **more))
    monkeypatch.setattr(gate, "LAST_WORDS_S", 0.1)
    monkeypatch.delenv("AIP_STEP_TIMEOUT", raising=False)
    monkeypatch.setitem(gate._started, "at", time.monotonic() - gate_steps.TOTAL_BUDGET_S + 0.3)

    result = gate._run_in_process("journey")

    assert result.code != 0
    assert "the other steps left 0 s of the total budget of 3600 s." in result.problem


def test_gate_prints_tests_of_each_step_and_the_slowest_of_all(steps, monkeypatch, tmp_path, capsys):
    def run_tests() -> int:
        row = {"name": "tests/x.py::test_slow", "setup": [0.1, 0.2], "call": [3.0, 7.0], "teardown": [0.0, 0.0]}
        (Path(os.environ[gate_steps.TIMES]) / "unit").write_text(json.dumps(row) + "\n")
        return 0

    monkeypatch.setenv(gate_steps.TIMES, "")  # restored afterwards
    monkeypatch.setattr(cpu_time, "REMEMBERED", tmp_path / "seconds.json")
    monkeypatch.setattr(gate_steps, "STEPS", {"lint": lambda: 0, "unit": run_tests})

    assert gate.main([]) == 0

    summary = capsys.readouterr().out.partition("=== the gate")[2]
    assert "     1 tests" in summary
    assert "     3.10    7.20  unit: tests/x.py::test_slow" in summary
    assert cpu_time.remembered() == {"tests/x.py": 7.2}


def test_gate_waits_for_a_step_that_ends(monkeypatch, capsys):
    real = subprocess.Popen
    monkeypatch.setattr(
        gate.subprocess, "Popen", lambda _argv, **more: real([sys.executable, "-c", "print(7)"], **more)
    )

    assert gate._run_in_process("browser").code == 0
    assert "7" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "file"),
    [("chaos", "tests/inference/test_edge_agent.py"), ("chaos", "tests/chaos/test_kills.py"),
     ("journey", "tests/journeys/test_reload.py"), ("proof", "tests/presets/test_anomaly.py")],
)  # fmt: skip
def test_gate_steps_take_the_tests_of_their_mark_from_every_folder(monkeypatch, step, file):
    calls = []
    monkeypatch.setattr(gate_steps, "_pytest", lambda *arguments, **_env: calls.append(arguments) or 0)
    monkeypatch.setattr(gate_steps, "_apt", lambda *_packages: True)
    naming = [str(path) for path in (gate_steps.ROOT / "tests").rglob("test_*.py") if gate_steps.names(path, step)]

    gate_steps.run(step)

    assert str(gate_steps.ROOT / file) in calls[0]
    assert set(naming) <= set(calls[0])


STOPPED_GATE = """
import subprocess, sys
from aiplatform.cli import gate, gate_steps

def step():
    # As a test starts a platform: in a session of its own; the second one is deaf to SIGTERM.
    script = 'setsid sleep 3600 & setsid sh -c "trap : TERM; while :; do sleep 3601; done" & wait'
    return subprocess.run(["sh", "-c", script]).returncode

gate.STOP_S = 0.5
gate_steps.STEPS, gate_steps.ON_DEMAND, gate_steps.LANES = {"lint": step}, set(), (("lint",),)
gate_steps.WITH_TESTS = set()
gate_steps.execute = lambda *_command: step()
sys.exit(gate.main(sys.argv[1:]))
"""


@pytest.mark.sockets("processes of its own")
@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGTERM, ["lint"]), (signal.SIGINT, ["lint"]), (signal.SIGINT, ["--", "tests/x"])]
)
def test_gate_that_is_stopped_ends_what_its_tests_have_started(number, words):
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED_GATE, *words], stdout=subprocess.PIPE, text=True, cwd=gate_steps.ROOT,
        start_new_session=True,
    )  # fmt: skip
    try:
        wait_for(lambda: len(gate._family(process.pid)) >= 5, 10, "the step has not started everything")
        family = gate._family(process.pid)

        process.send_signal(number)
        said, _nothing = process.communicate(timeout=20)

        assert process.returncode == 128 + number
        assert [pid for pid in family if not gate._has_ended(pid)] == []
        assert "The gate was stopped by SIG" in said
    finally:
        for pid in gate._family(process.pid):
            gate._send(pid, signal.SIGKILL)
        process.communicate()
