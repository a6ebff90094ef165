"""Environments that really run: what one person's sees of another's, and whom their secrets are said to."""

from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path

import pytest
from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder

from datasets.files import homes
from tests.running import printed, wait_for
from training.environments import services
from training.environments.models import Environment
from training.environments.services import EnvironmentRequest
from workers.access.proxy import admissions, published_ports
from workers.access.ssh import passwords
from workers.core.models import Attempt, Device, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.execution import job_users, launch
from workers.execution.exec import channels, programs
from workers.scheduling import placing
from workers.supervisor import records, sandbox, tiers

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("exec servers of environments"),
    pytest.mark.skipif(tiers.best_tier()[0] < sandbox.BUBBLEWRAP, reason="below tier 2 colleagues are not kept apart"),
]
SECRET = "open-sesame-9421"
SERVER = """
import os, socket, subprocess, sys
heard = socket.create_server(("127.0.0.1", 40000))
open(os.environ["HOME"] + "/private.txt", "w").write("private")
print("serving", flush=True)
while True:  # who looks connects first, and then lists processes
    heard.accept()[0].close()
"""
LOG = "/api/v1/jobs/{}/log/"
PAGES = (
    "/jobs/{}/", "/api/v1/jobs/{}/", "/api/v1/environments/{}/", "/api/v1/jobs/{}/ports/", "/api/v1/jobs/{}/events/",
    "/api/v1/audit/", LOG,
)  # fmt: skip
SAY = "import os\nprint('said', os.environ['HUB'], os.environ['JUPYTER_TOKEN'], flush=True)\nimport json\n"
LOOK = """
import json, os, socket, sys
home, box = sys.argv[1:3]
seen = {"others": sorted(os.listdir(os.path.dirname(home))) if os.path.isdir(os.path.dirname(home)) else []}
for name, path in (("home", home), ("file", home + "/private.txt"), ("run", box)):
    try:
        os.listdir(path) if name != "file" else open(path).read()
        seen[name] = "read"
    except OSError as exc:
        seen[name] = type(exc).__name__
try:
    socket.create_connection(("127.0.0.1", 40000), 2).close()
    seen["port"] = "open"
except OSError as exc:
    seen["port"] = type(exc).__name__
lines = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        lines.append(open(f"/proc/{pid}/cmdline", "rb").read().decode(errors="replace"))
    except OSError:
        pass
seen["processes"] = [line for line in lines if "neighbour-of-bob" in line]
print(json.dumps(seen))
"""


@pytest.fixture
def root(settings):
    """A data folder beneath folders that everybody may enter, and a short one for sockets."""
    job_users.can_chown.cache_clear()
    with tempfile.TemporaryDirectory(prefix="aip-n-") as data, tempfile.TemporaryDirectory(prefix="aip-r-") as run:
        Path(data).chmod(0o755)
        settings.DATA_ROOT, settings.RUN_DIR, settings.NODE = Path(data), Path(run), "node1"
        yield Path(data)
    job_users.can_chown.cache_clear()


@pytest.fixture
def up(root, machine, stub):
    """`up(alice)`: an environment of hers that runs and can be entered."""
    jobs: list[Job] = []

    def one(user, **fields) -> Job:
        request = EnvironmentRequest(**{"cpus": 1.0} | fields)
        job = services.submit(user=user, request=request).job
        cpu = Device.objects.get(kind="cpu")
        attempt = placing.place(job.pk, [(cpu.node_id, [(cpu.pk, 1)])])
        jobs.append(job)
        launch.start(attempt.pk)
        attempt.refresh_from_db()
        assert not attempt.message, str(attempt.message)
        run = RunDir.for_attempt(job.pk, 1)
        wait_for((run.path / records.SUPERVISOR).exists)
        Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
        Attempt.objects.filter(pk=attempt.pk).update(state=JobState.RUNNING)
        job.refresh_from_db()
        wait_for(lambda: channels.way_to(job) and _is_in(job))
        return job

    yield one
    for job in jobs:
        run = RunDir.for_attempt(job.pk, 1)
        records.write_request(run.path, "kill")
        wait_for(lambda run=run: records.read(run.path / records.EXIT))


def _is_in(job: Job) -> bool:
    try:
        return programs.run(channels.way_to(job), "true", patience_s=20).code == 0
    except channels.ChannelRefused:
        return False


def test_f06_neighbours_see_neither_home_nor_ports_nor_processes_of_each_other(up, alice, bob, cluster):
    hers, his = up(alice), up(bob)
    begin = f"exec 3>$HOME/log; python3 -c '{SERVER}' neighbour-of-bob >&3 2>&1 & sleep 0.1"
    programs.run(channels.way_to(hers), begin, patience_s=20)
    home = homes.path_of(alice)
    wait_for((home / "private.txt").exists)

    words = f"python3 - {home} {RunDir.for_attempt(hers.pk, 1).path}"
    seen = json.loads(programs.run(channels.way_to(his), words, stdin=LOOK.encode(), patience_s=30).output)
    own = json.loads(programs.run(channels.way_to(hers), words, stdin=LOOK.encode(), patience_s=30).output)

    assert (own["home"], own["file"], own["port"], len(own["processes"])) == ("read", "read", "open", 1)
    assert seen["port"] == "ConnectionRefusedError"
    assert seen["processes"] == []
    assert {seen[name] for name in ("home", "file", "run")} <= {"FileNotFoundError", "PermissionError"}
    assert "alice" not in seen["others"]


def test_k05_secrets_of_an_environment_are_said_to_nobody(up, stub, alice, as_alice, api, as_olga, caplog):
    """Token of JupyterLab, secret, ticket and one-time password: not in logs, rows, answers, pages or process lists."""
    caplog.set_level(logging.DEBUG)
    stub.write_text(stub.read_text().replace("import json\n", SAY, 1))
    job = up(alice, secrets={"HUB": SECRET}, variables={"PLAIN": "shown"})
    environment = Environment.objects.get(pk=job.pk)
    port = published_ports.publish(job, port=40_000, by=alice, name="web")
    ticket = admissions.issue(port, user=alice, host="127.0.0.1", secure=False, session_key="k").url
    ticket = ticket.partition("ticket=")[2].partition("&")[0]
    _row, password = passwords.make(job, by=alice)
    secret = {"token": services.token_of(environment), "secret": SECRET, "ticket": ticket, "password": password}
    assert all(len(value) > 10 for value in secret.values()), secret
    told = programs.run(channels.way_to(job), "echo said $HUB $JUPYTER_TOKEN", patience_s=20)
    run = RunDir.for_attempt(job.pk, 1)
    wait_for(lambda: "said" in printed(run.log), 20)

    said = {
        "log of the platform": caplog.text,
        "rows": json.dumps([list(model.objects.values()) for model in _told()], cls=DjangoJSONEncoder, default=str),
        "processes": "\n".join(_command_lines()),
        "files that others may read": "\n".join(_readable_by_others(run.path)),
    }
    for client in (as_alice, as_olga, api):
        for path in (page.format(job.pk) for page in PAGES):
            answer = client.get(path)
            said[f"{path} ({answer.status_code})"] = said.get(path, "") + answer.content.decode(errors="replace")

    assert told.output.split() == ["said", SECRET, secret["token"]]  # its owner has them inside
    assert "said " + "*" * len(SECRET) in said[f"{LOG.format(job.pk)} (200)"]
    assert "HUB" in said[f"/api/v1/environments/{job.pk}/ (200)"]
    found = [(name, where) for name, value in secret.items() for where, text in said.items() if value in text]
    assert found == []


def _told():
    """All tables but those that keep secrets, sealed or as digests, and sessions."""
    return [model for model in apps.get_models() if model._meta.label != "sessions.Session"]


def _command_lines():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def _readable_by_others(folder: Path):
    """Texts of files that somebody else on the machine could read, were it not for the folder above."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o004:
            yield path.read_text(errors="replace")
