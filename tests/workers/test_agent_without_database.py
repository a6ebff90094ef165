"""A database that is away costs the agent looks, never its life."""

import pytest
from django.db import OperationalError

from workers.core.models import Node
from workers.execution.agent.loop import Agent


@pytest.mark.django_db
def test_agent_started_while_the_database_is_locked_registers_later(monkeypatch):
    agent = Agent("n1")
    monkeypatch.setattr("workers.execution.agent.loop.time.sleep", lambda _s: None)
    monkeypatch.setattr("workers.execution.agent.loop.close_old_connections", lambda: None)
    tries = []
    register = agent.register

    def away_twice():
        tries.append(1)
        if len(tries) < 3:
            raise OperationalError("database is locked")
        return register()

    monkeypatch.setattr(agent, "register", away_twice)

    agent.run(lambda: Node.objects.filter(name="n1").exists())

    assert len(tries) == 3
