from __future__ import annotations

import os

import pytest

from aiplatform import env
from tests.fakes import registry as fake
from tests.images.conftest import kind, node, placed, root
from tests.workers.engines import FakeEngine
from workers.core.kinds import Launch
from workers.core.models import Node
from workers.execution import launch, tickets
from workers.images.containers import adding, logins
from workers.images.models import Image
from workers.images.services import uses
from workers.images.services.launch import with_image
from workers.supervisor import engines
from workers.supervisor.sandbox import CONTAINER

__all__ = ["kind", "node", "placed", "root"]


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A registry of the house: on this machine, allowed by its whole name."""
    monkeypatch.setattr(env, "REGISTRIES", ["localhost"])
    with fake.served(tmp_path) as one:
        yield one


@pytest.fixture
def contained(tmp_path, monkeypatch):
    """This machine offers containers, and nothing else is asked for."""
    engine = FakeEngine(tmp_path / "engine")
    offer = engines.Offer(container=engine.about | {"user": f"{os.geteuid()}:{os.getegid()}"}, engine="docker 1.0")
    monkeypatch.setattr(tickets, "tier", lambda: (CONTAINER, ""))
    monkeypatch.setattr(tickets, "containers", lambda: offer)
    yield engine
    engine.kill()


@pytest.fixture
def login(registry, alice):
    """Alice's credentials of the registry, which wants them."""
    registry.users["alice"] = "opensesame"
    return logins.add(user=alice, host=registry.host, username="alice", password="opensesame", ca=registry.ca)


@pytest.fixture
def added(registry, login, alice):
    """`added("lab/torch:2")`: an image of Alice's that was looked up."""

    def one(name="lab/torch:2", **more) -> Image:
        given = {"user": alice, "name": "torch", "source": "registry", "login": login} | more
        image = adding.add(reference=f"{registry.host}/{name}", **given)
        adding.run(image.pk)
        image.refresh_from_db()
        return image

    return one


@pytest.fixture
def tier4(node):
    """The machine as the rows have it, with containers."""
    Node.objects.filter(pk=node.pk).update(sandbox_tier=CONTAINER)
    return Node.objects.get(pk=node.pk)


@pytest.fixture
def machines(settings, monkeypatch):
    """`machines("node1")` lets the rest happen on that machine, which joined; `machines("server")` on the server."""
    key = settings.SECRET_KEY

    def go(name):
        settings.NODE, settings.SECRET_KEY = name, key if name == "server" else "another"
        monkeypatch.setattr(env, "NODE_JOINED", name != "server")

    yield go
    go("server")


@pytest.fixture
def waiting(registry, added, placed, kind, contained, root, tier4, machines):
    """`waiting()`: a job on a machine that joined, in Alice's image, which needs credentials; it was begun."""

    def one(**more):
        image = added(**more)
        job, attempt = placed(["unused"])
        uses.attach(job, image)
        kind.prepare = lambda job, attempt, run: with_image(Launch(argv=["/bin/sh", "-c", "echo inside"]), job)
        machines("node1")
        launch.start(attempt.pk)
        return job, attempt

    return one
