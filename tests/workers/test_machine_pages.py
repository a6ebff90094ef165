"""The pages of machines: processes with their jobs, disks, curves, a day in bars."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, time, timedelta

import pytest
from django.conf import settings
from django.utils import timezone
from django.utils.timezone import now

from tests.conftest import signed_in
from tests.factories import work
from workers.core.models import ClusterSample, NodeSample
from workers.resources.nodes.telemetry import processes


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/x/python", "/x/manage.py", "agent"], ("agent", "")),
        (["/x/python", "/x/manage.py", "exec_relay"], ("exec_relay", "")),
        (["python", "-m", "celery", "--app", "a", "worker", "--hostname", "cpu@n1", "--queues", "q"], ("cpu", "")),
        (["python", "-m", "aiplatform.cli.web", "--port", "1", "aiplatform.asgi:application"], ("web", "")),
        (["python", "-m", "aiplatform.cli.fork_server", ""], ("fork server", "")),
        (["/x/valkey-server unixsocket:/d/run/valkey.sock", ""], ("broker", "")),
        (["python", "/x/workers/supervisor/__main__.py", "/d/jobs/7/2"], ("supervisor", "/d/jobs/7/2")),
        (["python", "-I", "-S", "/x/workers/supervisor/fork_server.py"], ("fork server", "")),
        (["python", "train.py", "agent"], ("", "")),
        ([], ("", "")),
    ],
)
def test_processes_named_tells_a_process_by_its_command(words, expected):
    assert processes.identify(words) == expected


def test_processes_services_lists_only_our_own(tmp_path):
    """The same command for another platform's folder on this machine is not ours."""
    program = tmp_path / "supervisor" / "__main__.py"
    program.parent.mkdir()
    program.write_text("import sys; print(flush=True); sys.stdin.read()")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [
        subprocess.Popen([sys.executable, str(program), str(root / "jobs" / "7" / "1")], **pipes)
        for root in (ours, theirs)
    ]
    try:
        for process in started:
            process.stdout.readline()
        found = processes.services(ours)
    finally:
        for process in started:
            process.communicate()

    assert [(one["name"], one["pid"]) for one in found if one["run"]] == [("supervisor", started[0].pid)]
    assert found[0]["memory_mib"] > 1


def test_processes_services_know_their_own_by_a_folder_that_was_named_relatively(tmp_path, monkeypatch):
    """The server was started with `AIP_DATA_ROOT=var`; its agent names the same folder as the settings read it."""
    program = tmp_path / "manage.py"
    program.write_text("import sys; print(flush=True); sys.stdin.read()")
    monkeypatch.setenv("AIP_DATA_ROOT", str(tmp_path / "var"))
    started = subprocess.Popen(
        [sys.executable, str(program), "scheduler"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={"AIP_DATA_ROOT": "var"},
    )
    try:
        started.stdout.readline()
        found = processes.services(tmp_path / "var")
    finally:
        started.communicate()

    assert started.pid in {one["pid"] for one in found}


def test_supervisors_are_told_the_data_folder_as_the_settings_read_it(tmp_path):
    said = subprocess.run(
        [sys.executable, "-c", "from workers.execution import supervisors; print(*supervisors._ENVIRONMENT.values())"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"AIP_DATA_ROOT": "var", "PYTHONPATH": str(settings.BASE_DIR), "AIP_BOOTSTRAP": "0"},
    )  # fmt: skip

    assert str(tmp_path / "var") in said.stdout.split()


def test_processes_disks_are_local_ones(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/x {tmp_path} ext4 rw 0 0\n/dev/x /again ext4 rw 0 0\nserver:/a /mnt nfs rw 0 0\n")

    [disk] = processes.disks(mounts)

    assert disk["path"] == str(tmp_path)
    assert disk["total_bytes"] == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize


def test_node_page_names_jobs_only_to_those_who_may_see_them(alice, bob, cluster):
    job = work.job(alice, cluster, name="secret-plan", state="running")
    told = [{"name": "supervisor", "pid": 41, "memory_mib": 12.0, "up_s": 60, "run": f"/d/jobs/{job.pk}/1"}]
    disks = [{"path": "/data", "free_bytes": 2**30, "total_bytes": 2**31}]
    node = work.node(
        "n1", facts={"services": told, "disks": disks, "interfaces": [{"name": "eth0", "in_bps": 1024, "out_bps": 0}]}
    )

    mine = signed_in(alice).get(f"/cluster/nodes/{node.pk}/").content.decode()
    theirs = signed_in(bob).get(f"/cluster/nodes/{node.pk}/").content.decode()

    assert "secret-plan" in mine
    assert "/data" in mine
    assert "eth0" in mine
    assert "secret-plan" not in theirs
    assert "a job" in theirs


def test_node_history_comes_by_api(api, as_anna, cluster):
    node, at = work.node("n1", gpus=2), now().replace(microsecond=0)
    for minutes in (2, 1):
        row = {"step": 10, "at": at - timedelta(minutes=minutes)}
        NodeSample.objects.create(node=node, cpu=20.0, gpus=2, gpus_held=1, **row)
        ClusterSample.objects.create(cluster=cluster, gpus=1, **row)

    found = api.get("/api/v1/history/?span=1h").json()
    assert found["series"]["cpu"] == [20.0, None, 20.0]
    assert api.get("/api/v1/history/?of=clusters").json()["series"]["default"] == [1.0, None, 1.0]
    assert api.get(f"/api/v1/history/?node={node.pk}").json()["step"] == 10
    assert api.get("/api/v1/history/?node=999").status_code == 404
    assert api.get("/api/v1/history/?span=2y").status_code == 400
    assert as_anna.get("/api/v1/history/").status_code == 403


def test_node_page_shows_the_day_beside_another_day(as_alice, cluster):
    node = work.node("n1", gpus=4)
    today = timezone.localdate()
    for day, held in ((today, 3), (today - timedelta(days=7), 1)):
        at = timezone.make_aware(datetime.combine(day, time(9, 10)))
        NodeSample.objects.create(node=node, step=600, at=at, gpus=4, gpus_held=held)

    chart = as_alice.get("/cluster/").context["chart"]

    assert chart.rows[9] == (9, 25.0, 75.0)
    assert (chart.now.mean, chart.then.mean) == (75.0, 25.0)
    assert (chart.now.bars[0].height, chart.then.bars[0].height) == ("120.0", "40.0")
    assert as_alice.get("/cluster/?day=nonsense&than=0000-13-45").status_code == 200
    assert as_alice.get("/cluster/?day=9999-12-31&than=0001-01-01").status_code == 200
