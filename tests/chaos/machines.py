"""Faults of whole machines, one after another on one cluster of three: power, cables, clocks, database, agents.

Each function is one chapter: it gets the cluster as the one before left it (both nodes live) and leaves it so.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from tests.chaos.acts import just_join, nodes_may_less, restart, status
from tests.chaos.cast import Cast
from tests.chaos.gang import gang_goes_on_with_fewer, gang_loses_a_part
from tests.nodes import Cluster
from tests.running import HERE, MANAGE, wait_for

ENDED_S = 30.0
LINE = {"delay_s": 0.5, "seconds": 40.0}  # how late every byte comes in `slow_line`, and for how long that is watched


def journey(cluster: Cluster, cast: Cast) -> str:
    """Join two, work on both, read a remote log, drain, refuse to remove what works, remove, join again."""
    from workers.core.models import Node
    from workers.resources.nodes import lifecycle

    shared = cluster.root / "shared"
    stray = cluster.machine("stray")
    assert stray.run("mount", "-t", "tmpfs", "none", str(shared)).returncode == 0
    command = [sys.executable, MANAGE, "join", "--server", cluster.address, "--token", cluster.token()]
    refused = stray.run(*command)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "must be the same shared folder" in refused.stdout
    stray.cut_power()
    nodes_may_less(cluster)

    for name in ("node2", "node3"):
        cluster.join(name)
    lifecycle.drain(Node.objects.get(name="server"))
    two, three = cast.start("node2"), cast.start("node3")
    wait_for(lambda: "step 3" in cluster.call(f"jobs/{two.pk}/log/", cast.token)["text"], 10, "no live log")

    drain = cluster.server.run(sys.executable, MANAGE, "node", "drain", "node2", **cluster.urls)
    assert drain.returncode == 0, drain.stderr
    cast.steps(two, 2)  # what runs goes on
    remove = [sys.executable, MANAGE, "node", "remove", "node2"]
    refused = cluster.server.run(*remove, **cluster.urls)
    assert refused.returncode != 0
    assert f"on node2 (#{two.pk})" in refused.stderr
    cast.finish(two)
    removed = cluster.server.run(*remove, **cluster.urls)
    assert removed.returncode == 0, removed.stderr
    node2 = cluster.machines["node2"]
    assert node2.parts["join"].wait(60) == os.EX_CONFIG  # the machine's own processes end with a sentence
    assert "removed from the cluster" in node2.said("join")
    cast.finish(three)
    cluster.join("node2")
    return "joined, worked, drained, removed, joined again; a foreign folder was found out"


def power_cut(cluster: Cluster, cast: Cast) -> str:
    """31, 32: a node without power is lost, its job goes on elsewhere; what comes back adopts nothing."""
    job = cast.start("node2")
    cast.steps(job, 3)
    begun = time.monotonic()
    cluster.machines["node2"].cut_power()
    cluster.wait_state("node2", "lost", seconds=60)
    wait_for(lambda: cast.begun(job, 2), 40, "it did not start elsewhere")
    seconds = time.monotonic() - begun
    assert cast.begun(job, 2)[0] > 0, "it did not go on from its checkpoint"
    assert cast.places(job) == {"node3"}
    back = cluster.machines["node2"]
    back.boot()
    back.start("join", sys.executable, MANAGE, "join")  # what it was told is kept: no token
    cluster.wait_state("node2", "live")
    assert not cast.running(back, job)
    cast.finish(job, 2)
    assert job.attempts.get(number=1).reason == "node_lost"
    return f"ran elsewhere from its checkpoint {seconds:.0f} s after the cut"


def cable_out_and_in(cluster: Cluster, cast: Cast) -> str:
    """33: a partition that heals before the lease ends disturbs nothing; the log catches up."""
    job, node = cast.start("node3"), cluster.machines["node3"]
    node.unplug()
    cluster.wait_state("node3", "unreachable")
    assert cast.state(job) == "running"
    node.plug()
    begun = time.monotonic()
    cluster.wait_state("node3", "live")
    heard_s = time.monotonic() - begun
    cast.steps(job, 1)
    cast.finish(job)
    return f"undisturbed, heard again after {heard_s:.1f} s"


def cable_out_too_long(cluster: Cluster, cast: Cast) -> str:
    """34: healed after the job was run elsewhere: the old attempt writes nothing and ends within 30 s."""
    job, node = cast.start("node3"), cluster.machines["node3"]
    node.unplug()
    cluster.wait_state("node3", "lost", seconds=60)
    wait_for(lambda: cast.begun(job, 2), 40, "it did not start elsewhere")
    old = cast.running(node, job)
    assert old, "the old attempt runs on behind the cut, and nobody can know"
    node.plug()
    begun = time.monotonic()
    wait_for(lambda: not cast.running(node, job), ENDED_S, "the old attempt lives")
    seconds = time.monotonic() - begun
    cluster.wait_state("node3", "live")
    assert cast.state(job) == "running"
    assert cast.places(job) == {"node2"}
    cast.finish(job, 2)
    assert job.attempts.get(number=1).state == "lost"
    return f"old attempt ended {seconds:.1f} s after the cable was back"


def half_cut(cluster: Cluster, cast: Cast) -> str:
    """35: broker reachable, database not; then the other way round."""
    job, node = cast.start("node3"), cluster.machines["node3"]
    node.lose("database")
    cluster.wait_state("node3", "unreachable")
    assert cast.state(job) == "running"
    node.find("database")
    cluster.wait_state("node3", "live")
    node.lose("broker")
    deaf = cast.start("node3")  # nobody's message arrives; the agent finds the row
    node.find("broker")
    assert cluster.machines["node3"].parts["join"].poll() is None
    cast.finish(job)
    cast.finish(deaf)
    return "without database: kept; without broker: started all the same"


def slow_line(cluster: Cluster, cast: Cast) -> str:
    """36: half a second each way and 64 kbit/s from a node to database and broker: nobody is called dead for it."""
    from workers.core.models import Node

    node, slow, switch = cluster.machines["node3"], {}, cluster.root / "slow"
    job, line = cast.start("node3"), str(HERE / "tests" / "slow_line.py")
    for name in ("AIP_DATABASE_URL", "AIP_REDIS_URL"):
        url = cluster.told[name.replace("AIP_", "AIP_NODE_")]
        port, host = str(urlsplit(url).port), urlsplit(url).hostname or ""
        node.start(f"slow{port}", sys.executable, line, port, host, port, str(LINE["delay_s"]), "8000", str(switch))
        slow[name] = url.replace(f"@{host}:", "@127.0.0.1:")
    restart(cluster, node, **slow)
    switch.touch()
    over, seen = time.monotonic() + LINE["seconds"], set()
    while time.monotonic() < over:
        seen.add(Node.objects.get(name="node3").state)
        time.sleep(0.5)
    assert seen <= {"live", "suspect"}, seen
    (cast.folder(job) / "outputs" / "end").touch()
    begun = time.monotonic()
    wait_for(lambda: cast.state(job) == "succeeded", 90, "its end did not arrive")
    seconds = time.monotonic() - begun
    switch.unlink()
    restart(cluster, node)
    node.signal(signal.SIGKILL, "slow_line.py")
    for part in [part for part in node.parts if part.startswith("slow")]:
        node.parts.pop(part).wait()
    return f"node stayed {' and '.join(sorted(seen))}; a job's end was known after {seconds:.0f} s"


def agent_stopped(cluster: Cluster, cast: Cast) -> str:
    """9: an agent that stands still for longer than a node may be silent; its jobs stay, once."""
    job, node = cast.start("node2"), cluster.machines["node2"]
    assert node.signal(signal.SIGSTOP, MANAGE, "agent")
    cluster.wait_state("node2", "unreachable")
    cast.steps(job, 1)
    assert cast.state(job) == "running"
    node.signal(signal.SIGCONT, MANAGE, "agent")
    cluster.wait_state("node2", "live")
    cast.finish(job)
    return "shown as unreachable, its job kept and run once"


def database_killed(cluster: Cluster, cast: Cast) -> str:
    """19: kill -9 of PostgreSQL: pages say 503 and when to come back; everything heals alone."""
    from django.db import connection

    job = cast.start("node3")
    cluster.database.kill()
    begun = time.monotonic()
    answer, after = status(f"{cluster.address}/api/v1/jobs/", cast.token)
    answered_s = time.monotonic() - begun
    health, _after = status(f"{cluster.address}/healthz", "")
    assert (answer, after) == (503, "5"), (answer, after)
    assert health == 503
    cast.steps(job, 2)
    connection.close()
    cluster.database.start()
    begun = time.monotonic()
    wait_for(lambda: status(f"{cluster.address}/api/v1/jobs/", cast.token)[0] == 200, 20, "the web does not heal")
    healed_s = time.monotonic() - begun
    for name in ("node2", "node3"):
        cluster.wait_state(name, "live")
    cast.finish(job)
    assert answered_s < 8
    return f"503 after {answered_s:.1f} s, healed {healed_s:.1f} s after its start"


def tables_locked(cluster: Cluster, cast: Cast) -> str:
    """21: a lock on the jobs' table for longer than a silent node is borne: no node is called dead for it."""
    import psycopg

    from workers.core.models import Node

    job, url = cast.start("node2"), cluster.told["AIP_DATABASE_URL"]
    with psycopg.connect(url) as link, link.cursor() as held:
        held.execute("LOCK TABLE workers_job IN ACCESS EXCLUSIVE MODE")
        over, seen = time.monotonic() + 30, set()
        while time.monotonic() < over:
            seen |= set(Node.objects.filter(name__in=["node2", "node3"]).values_list("state", flat=True))
            time.sleep(0.5)
        link.rollback()
    assert seen <= {"live", "suspect"}, seen
    cast.finish(job)
    cast.finish(cast.start("node3"))
    return f"locked for 30 s; nodes stayed {' and '.join(sorted(seen))}"


def broker_full(cluster: Cluster, cast: Cast) -> str:
    """15: a broker without room refuses every message: jobs are taken, started and ended all the same."""
    import redis

    with redis.Redis.from_url(cluster.told["AIP_REDIS_URL"]) as broker:
        broker.config_set("maxmemory", "1")
        try:
            begun = time.monotonic()
            job = cast.start("node3")
            seconds = time.monotonic() - begun
            cast.finish(job)
        finally:
            broker.config_set("maxmemory", "0")
    cast.finish(cast.start("node2"))
    return f"a job ran {seconds:.0f} s after it was asked for"


def connections_gone(cluster: Cluster, cast: Cast) -> str:
    """20: every connection taken: the web says 503, agents keep theirs and their heartbeats."""
    import psycopg

    from workers.core.models import Node

    url = f"postgresql://aip:{cluster.password}@{cluster.server.address}:5432/aip"
    job, hoard = cast.start("node2"), []
    try:
        while len(hoard) < 300:
            hoard.append(psycopg.connect(url, autocommit=True, connect_timeout=5))
    except psycopg.OperationalError:
        pass
    try:
        seen = dict(Node.objects.values_list("name", "heartbeat_at"))
        wait_for(
            lambda: all(Node.objects.get(name=n).heartbeat_at > seen[n] for n in ("node2", "node3")), 15,
            "a node fell silent",
        )  # fmt: skip
        answers = {status(f"{cluster.address}/healthz", "")[0] for _ in range(5)}
        assert answers <= {200, 503}, answers
    finally:
        for link in hoard:
            link.close()
    wait_for(lambda: status(f"{cluster.address}/healthz", "")[0] == 200, 20, "the web does not heal")
    cast.finish(job)
    return f"{len(hoard)} connections hoarded; heartbeats went on, the web said {sorted(answers)}"


def clock_wrong(cluster: Cluster, cast: Cast) -> str:
    """37: a node an hour ahead, then ten minutes behind: no time limit fires, no node looks silent."""
    from datetime import timedelta

    from workers.core.models import Job, Node

    library = cluster.clock_shift()
    if library is None:
        return "skipped: no C compiler for the wrong clock"
    node, told = cluster.machines["node2"], []
    for shift_s in (3600, -600):
        restart(cluster, node, LD_PRELOAD=str(library), CLOCK_SHIFT_S=str(shift_s))
        job = cast.start("node2")
        Job.objects.filter(pk=job.pk).update(max_runtime=timedelta(minutes=5))
        beat = Node.objects.get(name="node2").heartbeat_at
        wait_for(lambda beat=beat: Node.objects.get(name="node2").heartbeat_at > beat, 20, "no heartbeat")
        lag = abs(Node.objects.get(name="node2").heartbeat_at.timestamp() - time.time())
        assert lag < 20, f"the heartbeat carries the node's own clock: {lag:.0f} s off"
        job.refresh_from_db()
        assert abs(job.attempts.get().started_at.timestamp() - time.time()) < 120
        assert (job.state, job.desired) == ("running", "run")
        cast.finish(job)
        told.append(f"{shift_s:+} s")
    restart(cluster, node)
    return f"clock {' and '.join(told)}: limits and states by the server's clock"


def two_schedulers(cluster: Cluster, cast: Cast) -> str:
    """47: a second scheduler stands by; when the first stands still it acts, and the first changes nothing later."""
    from workers.core.models import Lease

    words = (MANAGE, "scheduler")
    first, holder = set(cluster.server.pids(*words)), Lease.objects.get(name="scheduler").holder
    second = cluster.server.start("second", sys.executable, *words, **cluster.urls)
    wait_for(lambda: set(cluster.server.pids(*words)) - first, 20, "no second scheduler")
    cast.finish(cast.start("node2"))
    assert Lease.objects.get(name="scheduler").holder == holder
    for pid in first:
        os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    wait_for(lambda: Lease.objects.get(name="scheduler").holder != holder, 25, "nobody took over")
    seconds = time.monotonic() - begun
    cast.finish(cast.start("node3"))
    for pid in first:
        os.kill(pid, signal.SIGCONT)  # it is back, believes in its lease, and must stand by
    cast.finish(cast.start("node2"))
    assert Lease.objects.get(name="scheduler").holder != holder
    for pid in set(cluster.server.pids(*words)) - first:
        os.kill(pid, signal.SIGKILL)
    cluster.server.parts.pop("second")
    second.wait()
    cast.finish(cast.start("node3"))
    return f"one acted at a time; taken over after {seconds:.0f} s"


def everything_killed(cluster: Cluster, cast: Cast) -> str:
    """49: kill -9 of every process of the platform, database and broker too; jobs run on and are found again."""
    from django.db import connection

    jobs = [cast.start("node2"), cast.start("node3")]
    connection.close()
    for machine in cluster.machines.values():
        for words in (("manage.py",), ("celery",), ("aiplatform.cli.web",)):
            machine.signal(signal.SIGKILL, *words)
    cluster.database.kill()
    cluster.server.signal(signal.SIGKILL, "valkey-server")
    for machine in cluster.machines.values():
        for process in machine.parts.values():
            process.wait()
    begun = time.monotonic()
    cluster.database.start()
    cluster.start_broker()
    cluster.up()
    for name in ("node2", "node3"):
        cluster.machines[name].start("join", sys.executable, MANAGE, "join")
    for name in ("node2", "node3"):
        cluster.wait_state(name, "live")
    for job in jobs:
        assert cast.state(job) == "running"
        cast.finish(job)
    cast.finish(cast.start("node2"))
    seconds = time.monotonic() - begun
    return f"all as usual {seconds:.0f} s after the start"


CHAPTERS: tuple[Callable[[Cluster, Cast], str], ...] = (
    journey, gang_loses_a_part, gang_goes_on_with_fewer, power_cut, cable_out_and_in, cable_out_too_long, half_cut,
    slow_line, agent_stopped, database_killed, connections_gone, tables_locked, broker_full, clock_wrong,
    two_schedulers, everything_killed,
)  # fmt: skip
SHORT = (
    "journey", "gang_loses_a_part", "gang_goes_on_with_fewer", "power_cut", "cable_out_too_long", "database_killed",
)  # fmt: skip


def tell(root: Path, names: tuple[str, ...] = ()) -> list[tuple[str, str, float]]:
    """Run the named chapters (all of them without names) and return (name, what came out, seconds) of each."""
    from tests import nodes

    told = []
    with nodes.cluster(root) as cluster:
        cast = Cast(cluster)
        if names and "journey" not in names:
            just_join(cluster)
        for chapter in CHAPTERS:
            if names and chapter.__name__ not in names:
                continue
            begun = time.monotonic()
            came = chapter(cluster, cast)
            told.append((chapter.__name__, came, time.monotonic() - begun))
            print(f"  {chapter.__name__:<20} {came} ({told[-1][2]:.0f} s)", flush=True)
    return told
