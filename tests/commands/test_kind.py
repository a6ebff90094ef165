"""What a command finds when it starts, and how it runs and ends."""

from __future__ import annotations

import json
import os
import stat
import subprocess

import pytest

from aiplatform.lib import sealed
from aiplatform.lib.errors import Invalid
from tests.factories import work
from training.commands import services
from training.commands.kind import CommandKind
from training.commands.models import Command
from training.programs.start import CannotRun
from workers.core.models import Allocation, Attempt, Job
from workers.core.runs import RunDir

kind = CommandKind()


def prepared(command):
    """The launch and the run directory of the first attempt, as launching would ask for them."""
    Job.objects.filter(pk=command.pk).update(attempt_number=1)
    job = Job.objects.get(pk=command.pk)
    attempt, _made = Attempt.objects.get_or_create(job=job, number=1)
    run = RunDir.for_attempt(job.pk, 1)
    run.path.mkdir(parents=True, exist_ok=True)
    return kind.prepare(job, attempt, run), run


def ran(launch, run) -> subprocess.CompletedProcess[str]:
    """Run it as its supervisor would, without a sandbox."""
    env = {"PATH": os.environ["PATH"]} | launch.env
    return subprocess.run(launch.argv, cwd=run.code, env=env, capture_output=True, text=True, check=False)


def test_command_runs_in_its_code_with_its_variables_and_data(submitted, code, cells):
    command = submitted(
        command='pwd; ls; echo "$GREETING $AIP_DATASET_DIR"', code=code, variables={"GREETING": "hi"}, datasets=[cells]
    )

    launch, run = prepared(command)
    told = ran(launch, run).stdout.splitlines()

    assert told[0] == str(run.code)
    assert {"train.py", "helper.py", "aip"} <= set(told[1:])
    assert told[-1] == f"hi {cells.path}"
    assert cells.path in launch.read_only
    assert [link.resolve() for link in run.inputs.iterdir()] == [cells.path.resolve()]
    assert json.loads(launch.env["AIP_DATASETS"]) == [{"name": "cells v1", "role": "data", "dir": str(cells.path)}]


def test_command_prepared_twice_is_the_same(submitted, code, cells):
    command = submitted(command="make", code=code, datasets=[cells], output_path="runs")

    assert prepared(command)[0] == prepared(command)[0]


@pytest.mark.parametrize(
    ("script", "out", "exit_code"),
    [
        ("echo a; exit 7", "a\n", 7),
        ("false\necho never", "", 1),
        ("#!/usr/bin/env python3\nimport sys\nprint('snake')\nsys.exit(3)", "snake\n", 3),
        ("echo one\r\necho two", "one\ntwo\n", 0),
        ("shopt -q progcomp || true; [[ 1 == 1 ]] && echo bash", "bash\n", 0),
    ],
)
def test_command_ends_with_its_own_code_and_at_the_first_failing_line(submitted, script, out, exit_code):
    done = ran(*prepared(submitted(command=script)))

    assert (done.stdout, done.returncode) == (out, exit_code)


def test_command_gets_its_secrets_and_the_log_hides_them(submitted):
    command = submitted(
        command="tool --api-key in-the-line", secrets={"HUB": "open-sesame"}, variables={"DB_PASSWORD": "in-the-env"}
    )

    launch, _run = prepared(command)

    assert launch.env["HUB"] == "open-sesame"
    assert sorted(launch.secrets) == ["in-the-env", "in-the-line", "open-sesame"]
    assert "in-the-line" not in json.dumps(command.job.spec)


def test_command_whose_secrets_no_longer_open_says_so(submitted, settings):
    command = submitted(secrets={"HUB": "open-sesame"})
    settings.SECRET_KEY = "another"

    with pytest.raises(Invalid, match="a different secret key"):
        prepared(command)


def test_sealed_secrets_open_again_and_differ_each_time():
    first, second = (sealed.seal({"A": "ß"}) for _time in range(2))

    assert sealed.unseal(first) == sealed.unseal(second) == {"A": "ß"}
    assert first != second
    assert sealed.seal({}) == ""
    with pytest.raises(sealed.Unsealable):
        sealed.unseal(first[:-4] + "AAA=")


def test_command_keeps_scripts_of_its_code_executable(alice, machine, tmp_path):
    from training.programs import snapshots

    script = tmp_path / "mine" / "run.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    (script.parent / "plain.txt").write_text("x")
    subprocess.run(["tar", "czf", str(tmp_path / "mine.tar.gz"), "-C", str(tmp_path), "mine"], check=True)
    code = snapshots.from_archive(owner=alice, archive=tmp_path / "mine.tar.gz", name="mine.tar.gz")
    request = services.CommandRequest(command="./run.sh", cpus=1.0, code=code)

    launch, run = prepared(services.submit(user=alice, request=request))

    assert ran(launch, run).stdout == "ran\n"
    assert not (run.code / "plain.txt").stat().st_mode & stat.S_IXUSR


def test_command_is_refused_at_its_start_where_its_data_or_its_owner_is_gone(submitted, cells, alice):
    command = submitted(datasets=[cells])
    cells.delete()
    with pytest.raises(CannotRun, match="cells v1"):
        prepared(command)

    command = submitted()
    alice.is_active = False
    alice.save()
    with pytest.raises(CannotRun):
        prepared(command)


def test_command_on_several_machines_is_told_where_they_meet(alice, db):
    nodes = [work.node(name, cores=4) for name in ("first", "second")]
    command = services.submit(user=alice, request=services.CommandRequest(command="mpirun x", nodes=2, cpus=1.0))
    Job.objects.filter(pk=command.pk).update(attempt_number=1)
    attempt = Attempt.objects.create(job=command.job, number=1)
    for rank, node in enumerate(nodes):
        device = node.devices.get(kind="cpu")
        Allocation.objects.create(
            attempt=attempt, node=node, device=device, rank=rank, share=1, port=31_000 if rank == 0 else None
        )

    launch, _run = prepared(command)

    assert (launch.env["MASTER_ADDR"], launch.env["MASTER_PORT"]) == (nodes[0].address, "31000")


def test_platforms_own_commands_need_no_row(alice, machine, cluster):
    job = work.job(alice, cluster, kind="command", spec={"argv": ["true"]})
    attempt = Attempt.objects.create(job=job, number=1)

    assert kind.prepare(job, attempt, RunDir.for_attempt(job.pk, 1)).argv == ["true"]
    assert kind.facts(job) == []
    assert kind.again(job, alice) == []
    assert not Command.objects.exists()
