"""Container engines to run jobs in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aiplatform import env
from tests.fakes import engine as fake
from tests.running import wait_for as until
from tests.workers.supervised import Run
from workers.supervisor import container, engines, processes, records
from workers.supervisor.engine import Engine, Refused, Unanswered

UID = 299_999


class FakeEngine:
    """The small engine as a process of its own."""

    python, uid = sys.executable, 0

    def __init__(self, folder: Path, *, image_path: str = "") -> None:
        """`image_path`: PATH of its images; containers then see what is mounted where it is inside."""
        self.image_path = image_path
        self.folder, self.socket = folder / "boxes", folder / "engine.sock"
        self.folder.mkdir(parents=True)
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-I", "-S", fake.__file__, str(self.socket), str(self.folder), "image"]
        self.process = subprocess.Popen(command, env=os.environ | {"AIP_IMAGE_PATH": self.image_path})
        until(self.answers)

    def answers(self) -> bool:
        try:
            return bool(Engine(str(self.socket)).send("GET", "/version"))
        except Unanswered:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def about(self) -> dict[str, str]:
        return {"engine": str(self.socket), "image": "image", "user": "0:0", "network": "none", "root": "/test"}


class RealEngine:
    """Docker or podman of this machine, with the image the operator named."""

    python, uid = "python3", UID if os.geteuid() == 0 else 0

    def __init__(self) -> None:
        offer = engines.offer(env.CONTAINER_IMAGE, chosen=env.CONTAINER_SOCKET, root="/test")
        if not offer:
            pytest.skip(f"no container engine to try: {offer.why}")
        self.socket = offer.container["engine"]
        self.about = engines.user_of(offer.container, UID)


@pytest.fixture(scope="module")
def real():
    return RealEngine()


@pytest.fixture(params=["fake", "real"])
def engine(request, tmp_path):
    if request.param == "real":
        yield request.getfixturevalue("real")
        return
    made = FakeEngine(tmp_path / "engine")
    yield made
    for box in made.folder.iterdir():
        Engine(str(made.socket)).remove(box.name)
    made.kill()


@pytest.fixture
def run(engine, tmp_path):
    made = []

    def one(argv, *, start=True, image="", about=None, **more):
        about = engine.about | ({"image": image} if image else {}) | (about or {})
        new = Run(tmp_path / str(len(made)), 4, argv, container=about, uid=engine.uid, **more)
        made.append(new)
        if start:
            assert new.start() == 0
        return new

    yield one
    for old in made:
        if records.is_alive(old.supervisor):
            os.kill(old.supervisor["pid"], signal.SIGKILL)
        until(lambda old=old: removed(engine, old))
        processes.send(old.programs(), signal.SIGKILL)


def removed(engine, job) -> bool:
    """Remove the job's container; False while somebody else's removal is under way."""
    try:
        Engine(str(engine.socket)).remove(container.name(str(job.path)))
    except Refused:
        return False
    return True
