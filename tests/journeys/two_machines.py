"""A development environment on two machines: network namespaces, real OpenSSH, a stand-in for JupyterLab.

Each function is one chapter of `play`; it gets the `Stage` as the one before left it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import nodes
from tests.images.wheels import wheel
from tests.journeys.up import call
from tests.running import HERE, MANAGE, free_port, wait_for

SERVER, FAR = "server", "far"
STUB = HERE / "tests/fakes/jupyter.py"
STARTS = "from pathlib import Path\nimport runpy\n\n\ndef main():\n    " + (
    'runpy.run_path(str(Path(__file__).with_name("stub.py")), run_name="__main__")\n'
)
PIP = "python -m pip -q --disable-pip-version-check install --no-index --find-links"
SECRET = "open-sesame"


@dataclass
class Stage:
    """The cluster, a person with token and key, and what was measured."""

    cluster: nodes.Cluster
    folder: Path  # everybody may read
    token: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    def api(self, method: str, route: str, body: object = None) -> Any:
        status, answer = call(self.cluster.address, self.token, method, route, body)
        assert status < 300, (route, status, answer)
        return answer

    def job(self, number: int) -> dict[str, Any]:
        return self.api("GET", f"jobs/{number}/")

    @contextlib.contextmanager
    def timed(self, what: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.seconds[what] = time.monotonic() - begun

    def tool(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """One of OpenSSH's programs, or rsync, with this person's key and nothing else."""
        options = [
            "-F", "none", "-i", str(self.folder / "id"), "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
            "-o", f"UserKnownHostsFile={self.folder}/known", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes",
        ]  # fmt: skip
        port = "-P" if program == "scp" else "-p"
        argv = [program, *options, port, "8022", *words]
        if program == "rsync":
            argv = [program, "-e", " ".join(["ssh", *options, "-p", "8022"]), *words]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)

    def at(self, job: int) -> str:
        return f"job-{job}@{self.cluster.server.address}"

    def ssh(self, job: int, line: str) -> str:
        """What a command in the job prints."""
        done = self.tool("ssh", self.at(job), line)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    def only(self, name: str) -> None:
        """Let new work start on this machine alone."""
        for machine in (SERVER, FAR):
            verb = "undrain" if machine == name else "drain"
            done = self.cluster.server.run(sys.executable, MANAGE, "node", verb, machine, **self.cluster.urls)
            assert done.returncode == 0, done.stderr

    def place(self, job: int) -> str:
        """The machine on which a job runs now."""
        from workers.core.models import Allocation

        return Allocation.objects.get(attempt__job=job, released_at=None).node.name

    def ready(self, job: int, seconds: float = 60) -> None:
        def stands() -> bool:
            row = self.api("GET", f"environments/{job}/")
            assert row["state"] not in ("failed", "stopped", "lost"), (row, self.api("GET", f"jobs/{job}/log/"))
            return bool(row["condition"] == "ready")

        wait_for(stands, seconds, lambda: f"not ready: {self.job(job)}", 0.2)

    def image_ready(self, image: int) -> None:
        def is_ready() -> bool:
            row = self.api("GET", f"images/{image}/")
            assert row["state"] != "failed", row
            return bool(row["state"] == "ready")

        wait_for(is_ready, 60, lambda: str(self.api("GET", f"images/{image}/")), 0.2)

    def stop(self, job: int) -> None:
        self.api("POST", f"jobs/{job}/stop/")
        wait_for(lambda: self.job(job)["state"] == "stopped", 40, f"job {job} did not stop")


def play(root: Path, more_mib: int = 0) -> None:
    """All chapters, each printed with its time.

    Args:
        more_mib: what lies in the box beside the package, to measure a larger one.
    """
    root.chmod(0o755)  # jobs have users of their own, who must get through
    wheels = root / "cluster/shared/wheels"
    with nodes.cluster(root / "cluster", AIP_ENGINE_INDEX=str(wheels)) as cluster:
        stage = Stage(cluster, root / "person")
        told(stage, prepare)
        first = told(stage, environment_on_the_other_machine)
        told(stage, ways_in, first)
        told(stage, own_packages, first, more_mib)
        saved = told(stage, save, first)
        told(stage, second_on_this_machine, saved)
        told(stage, back_on_its_machine, first)
        told(stage, power_cut, first)
        print(json.dumps({name: round(took, 2) for name, took in stage.seconds.items()}))


def told(stage: Stage, chapter: Callable[..., Any], *about: Any) -> Any:
    begun = time.monotonic()
    found = chapter(stage, *about)
    print(f"{chapter.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
    return found


def prepare(stage: Stage) -> None:
    """A second machine, a person with a key, and an engine whose JupyterLab is a stand-in."""
    from accounts.services import ssh_keys, tokens
    from tests.factories import people
    from workers.core.models import VirtualCluster

    stage.folder.mkdir()
    wheels = stage.cluster.root / "shared" / "wheels"
    wheel(wheels, "ring", "1.0")
    scripts = "[console_scripts]\njupyter-lab = labs:main\n"
    stub = {"labs/__init__.py": STARTS, "labs/stub.py": STUB.read_text(), "ABOUT/entry_points.txt": scripts}
    wheel(wheels, "labs", "1.0", more=stub)
    stage.cluster.join(FAR)
    person = people.user("nora", cluster=VirtualCluster.objects.get(name="default"))
    stage.token = tokens.issue(user=person, name="test")[1]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stage.folder / "id"], check=True)
    ssh_keys.add(user=person, name="laptop", line=(stage.folder / "id.pub").read_text().strip())
    body = {"name": "labs", "requirements": "labs==1.0"}
    with stage.timed("engine built"):
        image = stage.api("POST", "images/", body)["id"]
        stage.image_ready(image)


def environment_on_the_other_machine(stage: Stage) -> int:
    """It starts where the server is not, with a secret that only the server can open."""
    stage.only(FAR)
    image = next(row["id"] for row in stage.api("GET", "images/?search=labs")["results"])
    body = {"name": "lab", "image": image, "cpus": 0.5, "secrets": {"HUB": SECRET}, "folder": "notes"}
    with stage.timed("first ready"):
        job = int(stage.api("POST", "environments/", body)["id"])
        stage.ready(job)
    assert stage.place(job) == FAR
    assert stage.ssh(job, "echo $HUB") == f"{SECRET}\n"
    assert not list(stage.cluster.root.glob("shared/jobs/*/*/handed.json"))
    return job


def ways_in(stage: Stage, job: int) -> None:
    """SSH with codes, scp, rsync, a forwarded port; the origin by token."""
    assert stage.tool("ssh", stage.at(job), "exit 7").returncode == 7
    assert stage.ssh(job, "hostname").strip() == FAR
    near = stage.folder / "near.bin"
    near.write_bytes(os.urandom(1 << 20))
    for program, words in {"scp": ["-q"], "rsync": ["-a"]}.items():
        there, back = f"{stage.at(job)}:notes/{program}.bin", stage.folder / program
        for source, target in ((str(near), there), (there, str(back))):
            done = stage.tool(program, *words, source, target)
            assert done.returncode == 0, (program, done.stderr)
        assert back.read_bytes() == near.read_bytes()
    forwarded(stage, job)
    origin = f"http://{stage.cluster.server.address}:8001/jobs/{job}/jupyter/api"
    request = urllib.request.Request(origin, headers={"Authorization": f"Bearer {stage.token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert json.load(answer) == {}


def forwarded(stage: Stage, job: int) -> None:
    """A port of the job, by `-L` and curl's like in one ssh."""
    serve = "cd ~/notes && echo inside > page.txt && exec python -m http.server 41000 --bind 127.0.0.1 >/dev/null 2>&1"
    local = free_port()
    options = ["-L", f"127.0.0.1:{local}:127.0.0.1:41000", "-o", "ExitOnForwardFailure=yes"]
    done = None

    def fetched() -> bool:
        with contextlib.suppress(OSError):
            return bool(urllib.request.urlopen(f"http://127.0.0.1:{local}/page.txt", timeout=5).read() == b"inside\n")
        return False

    argv = ["ssh", "-F", "none", "-i", str(stage.folder / "id"), "-o", "StrictHostKeyChecking=no", "-o"]
    argv += [f"UserKnownHostsFile={stage.folder}/known", "-p", "8022", *options, stage.at(job), serve]
    done = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(fetched, 20, "nothing came through -L")
    finally:
        done.kill()
        done.wait()


def own_packages(stage: Stage, job: int, more_mib: int) -> None:
    """A package of its own, in its box on the other machine."""
    if more_mib:  # a quarter of it packs badly, as libraries do
        stage.ssh(job, f"cd $VIRTUAL_ENV && head -c {more_mib >> 2}M /dev/urandom > a && cat a a a > b")
    with stage.timed("pip install"):
        stage.ssh(job, f"{PIP} {stage.cluster.root}/shared/wheels ring")
    assert stage.ssh(job, "ring") == "ring 1.0\n"


def save(stage: Stage, job: int) -> int:
    """As an image, while it runs on the other machine."""
    with stage.timed("saved"):
        image = int(stage.api("POST", "images/save/", {"job": job, "name": "with-ring"})["id"])
        stage.image_ready(image)
    stage.stop(job)
    return image


def second_on_this_machine(stage: Stage, image: int) -> None:
    """Another environment from the saved image, where that was never unpacked."""
    stage.only(SERVER)
    body = {"name": "second", "image": image, "cpus": 0.5}
    with stage.timed("second ready, layer unpacked"):
        job = int(stage.api("POST", "environments/", body)["id"])
        stage.ready(job)
    assert stage.place(job) == SERVER
    assert stage.ssh(job, "ring; hostname").split() == ["ring", "1.0", SERVER]
    stage.stop(job)
    stage.api("POST", f"jobs/{job}/restore/")
    with stage.timed("second again, layer there"):
        stage.ready(job)


def back_on_its_machine(stage: Stage, job: int) -> None:
    """Restored, the first waits for its own machine and says so, though another has room."""
    stage.api("POST", f"jobs/{job}/restore/")
    wait_for(lambda: stage.job(job)["wait_code"] == "machine_drained", 20, lambda: str(stage.job(job)))
    assert FAR in stage.job(job)["wait_sentence"]
    stage.only(FAR)
    stage.ready(job)
    assert stage.place(job) == FAR
    assert stage.ssh(job, "ring; ls ~/notes").split()[:2] == ["ring", "1.0"]


def power_cut(stage: Stage, job: int) -> None:
    """The other machine loses its power: the environment waits for it, and has packages and files after the boot."""
    machine = stage.cluster.machines[FAR]
    stage.only(FAR)
    machine.cut_power()
    stage.cluster.wait_state(FAR, "lost", seconds=60)
    wait_for(lambda: stage.job(job)["wait_code"] == "machine_silent", 20, lambda: str(stage.job(job)))
    machine.boot()
    machine.start("join", sys.executable, MANAGE, "join")
    with stage.timed("ready after boot"):
        stage.cluster.wait_state(FAR, "live")
        stage.ready(job)
    assert stage.place(job) == FAR
    assert stage.ssh(job, "ring; cat ~/notes/page.txt").split() == ["ring", "1.0", "inside"]
    stage.stop(job)
