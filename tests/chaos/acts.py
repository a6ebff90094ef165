"""What is done to machines of a trial cluster more than once."""

from __future__ import annotations

import contextlib
import signal
import sys
import urllib.error
import urllib.request

from tests.nodes import Cluster
from tests.running import MANAGE, wait_for


def just_join(cluster: Cluster) -> None:
    """Two nodes, and a server that takes no work: where the journey ends."""
    from workers.core.models import Node
    from workers.resources.nodes import lifecycle

    for name in ("node2", "node3"):
        cluster.join(name)
    lifecycle.drain(Node.objects.get(name="server"))


def power_off_and_on(cluster: Cluster, name: str) -> None:
    """Cut a machine's power, wait until it is given up, and let it come back."""
    machine = cluster.machines[name]
    machine.cut_power()
    cluster.wait_state(name, "lost", seconds=60)
    machine.boot()
    machine.start("join", sys.executable, MANAGE, "join")
    cluster.wait_state(name, "live")


def restart(cluster: Cluster, machine, **more: str) -> None:
    """Stop the machine's platform processes cleanly and start them again, its jobs going on."""
    machine.signal(signal.SIGTERM, MANAGE, "join")
    machine.parts.pop("join").wait(60)
    machine.start("join", sys.executable, MANAGE, "join", **more)
    from workers.core.models import Node

    beat = Node.objects.get(name=machine.name).heartbeat_at
    wait_for(lambda: Node.objects.get(name=machine.name).heartbeat_at != beat, 30, "it did not come back")
    cluster.wait_state(machine.name, "live")


def status(url: str, token: str) -> tuple[int, str | None]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.headers.get("Retry-After")
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers.get("Retry-After")
    except OSError:
        return 0, None


def nodes_may_less(cluster: Cluster) -> None:
    """What a node is given opens neither sessions nor tokens, and commands no broker."""
    import psycopg
    import redis

    with psycopg.connect(cluster.told["AIP_NODE_DATABASE_URL"], autocommit=True) as link:
        link.execute("SELECT count(*) FROM workers_job")
        for closed in (
            "SELECT * FROM django_session", "SELECT digest FROM accounts_apitoken", "DELETE FROM accounts_user",
            "UPDATE accounts_user SET password = 'x'", "DELETE FROM accounts_auditentry", "DROP TABLE workers_job",
            "CREATE TABLE mine (x int)",
        ):  # fmt: skip
            with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                link.execute(closed)
                raise AssertionError(f"a node may {closed}")
    with redis.Redis.from_url(cluster.told["AIP_NODE_REDIS_URL"]) as broker:
        broker.ping()
        for words in (("FLUSHALL",), ("CONFIG", "GET", "*"), ("ACL", "LIST"), ("SET", "other", "1"), ("KEYS", "*")):
            with contextlib.suppress(redis.exceptions.NoPermissionError):
                broker.execute_command(*words)
                raise AssertionError(f"a node may {words}")
