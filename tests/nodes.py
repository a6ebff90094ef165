"""Several machines on one: network, process, host and mount namespaces, with PostgreSQL and valkey over TCP.

Each machine has its own network (a bridge joins them), its own process ids (so that a power cut kills exactly
what ran there), its own host name and boot id. They share the data root as an NFS mount would be shared.
Needs root and iproute2; `why_not()` says what is missing, and tests skip with that word.

Import nothing of Django before `os.environ` was updated with `Cluster.environment()`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from aiplatform.cli import deploy
from tests import leftovers, postgresql
from tests.running import HERE, MANAGE, wait_for

INIT = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); print(1, flush=True)\nwhile True: signal.pause()"
TIMES = {"AIP_NODE_SUSPECT_S": "12", "AIP_NODE_UNREACHABLE_S": "16", "AIP_NODE_LOST_S": "24"}
WITH_US = ("setpriv", "--pdeathsig=KILL")  # even kill -9 of the test leaves nothing that runs
PORTS = {"database": 5432, "broker": 6379, "web": 8000}


def why_not() -> str:
    """What this machine lacks for a cluster; empty where everything is there."""
    if os.geteuid() != 0:
        return "several nodes need root for network namespaces"
    for program in ("ip", "unshare", "nsenter", "setpriv"):
        if shutil.which(program) is None:
            return f"several nodes need the program {program}"
    probe = f"aipprobe{os.getpid()}"  # several may ask at once
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode:
        return "this kernel or container allows no network namespaces"
    subprocess.run(["ip", "netns", "del", probe], check=False)
    programs = postgresql._programs()
    if programs is None:
        postgresql.apt("postgresql")
    return "" if postgresql._programs() else "PostgreSQL cannot be had here"


def _ip(*words: str, quiet: bool = False) -> None:
    subprocess.run(["ip", *words], check=not quiet, capture_output=quiet)


class Machine:
    """One machine: boot it, run commands there, cut its power or its cable."""

    def __init__(self, cluster: Cluster, number: int, name: str) -> None:
        self.cluster, self.number, self.name = cluster, number, name
        self.space, self.cable = f"{cluster.tag}n{number}", f"{cluster.tag}v{number}"
        self.address = f"{cluster.subnet}.{number}"
        self.folder = cluster.root / "machines" / name
        self.folder.mkdir(parents=True)
        self.init: subprocess.Popen[bytes] | None = None
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        _ip("netns", "add", self.space)
        _ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        _ip("link", "set", self.cable, "master", cluster.bridge, "up")
        _ip("-n", self.space, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _ip("-n", self.space, "link", "set", "eth0", "up")
        _ip("-n", self.space, "link", "set", "lo", "up")

    def boot(self) -> None:
        """Power on: process 1 with a new boot id."""
        boot = self.folder / "boot_id"
        boot.write_text(f"{uuid.uuid4()}\n")
        script = (
            f"hostname {self.name} && mount --bind {boot} /proc/sys/kernel/random/boot_id && "
            f"exec {sys.executable} -c '{INIT}'"
        )
        namespaces = ["unshare", "--pid", "--fork", "--mount-proc", "--uts", "--kill-child=SIGKILL"]
        self.init = subprocess.Popen(
            [*WITH_US, "ip", "netns", "exec", self.space, *namespaces, "sh", "-c", script],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert self.init.stdout is not None
        assert self.init.stdout.readline() == b"1\n"

    def _inside(self) -> list[str]:
        assert self.init is not None
        children = Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text().split()
        return ["nsenter", "--target", children[0], "--pid", "--net", "--mount", "--uts", f"--wdns={HERE}"]

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "AIP_DATA_ROOT": str(self.cluster.root / "shared"),
            "AIP_RUN_DIR": str(self.folder / "run"),
            "AIP_NODE": self.name,
            "AIP_BOOTSTRAP": "0",
            "AIP_CPU_OVERCOMMIT": "4",
            "AIP_LOG_LEVEL": "WARNING",
            "NO_COLOR": "1",
            **TIMES,
            **self.cluster.settings,
            **more,
        }

    def start(self, part: str, *command: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a program there; its words go to `machines/NAME/PART.txt`."""
        with (self.folder / f"{part}.txt").open("ab") as out:
            process = subprocess.Popen(
                [*self._inside(), *command], env=self.environment(**more), stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True,
            )  # fmt: skip
        self.parts[part] = process
        return process

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program there to its end."""
        return subprocess.run(
            [*self._inside(), *command], env=self.environment(**more), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=240, check=False,
        )  # fmt: skip

    def said(self, part: str) -> str:
        path = self.folder / f"{part}.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    def pids(self, *words: str) -> list[int]:
        """Processes there whose command line has all these words, by their number here."""
        ours = Path(f"/run/netns/{self.space}").stat().st_ino
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if not entry.name.isdigit() or (entry / "ns/net").stat().st_ino != ours:
                    continue
                line = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
                if all(word in line for word in words) and not line.startswith("nsenter"):
                    found.append(int(entry.name))
        return found

    def signal(self, number: signal.Signals, *words: str) -> int:
        """Send a signal to processes there; how many there were."""
        hit = self.pids(*words)
        for pid in hit:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(hit)

    def cut_power(self) -> None:
        """Everything there ends at once; files that were written stay."""
        if self.init is not None:
            self.init.kill()
            self.init.wait()
            assert self.init.stdout is not None
            self.init.stdout.close()
        for process in self.parts.values():
            process.kill()
            process.wait()
        self.init, self.parts = None, {}

    def unplug(self) -> None:
        _ip("link", "set", self.cable, "down")

    def plug(self) -> None:
        _ip("link", "set", self.cable, "up")

    def lose(self, what: str) -> None:
        """Half a partition: this machine's packets to one service vanish."""
        _ip("-n", self.space, "rule", "add", "pref", "10", "ipproto", "tcp", "dport", str(PORTS[what]), "blackhole")

    def find(self, what: str) -> None:
        _ip("-n", self.space, "rule", "del", "pref", "10", "ipproto", "tcp", "dport", str(PORTS[what]), "blackhole")


class Cluster:
    """A server with database and broker, and further machines that join it.

    Args:
        settings: variables of all machines, beside what makes them a cluster.
    """

    def __init__(self, root: Path, **settings: str) -> None:
        self.root, self.settings = root, settings
        (root / "shared").mkdir(parents=True)
        self.tag = f"aip{random.SystemRandom().randrange(16**4):04x}"
        self.bridge = f"{self.tag}br"
        self.subnet = f"10.{random.SystemRandom().randint(64, 250)}.{random.SystemRandom().randint(1, 250)}"
        # as an operator would begin: users of database and broker, and what a node may do, are the product's own
        deploy.write(root / "deploy", address=f"{self.subnet}.1", data_root=root / "shared")
        lines = (root / "deploy" / "aiplatform.env").read_text().splitlines()
        self.told = {key: value for key, _equals, value in (line.partition("=") for line in lines)}
        self.password = urlsplit(self.told["AIP_DATABASE_URL"]).password or ""
        self.machines: dict[str, Machine] = {}
        _ip("link", "add", self.bridge, "type", "bridge")
        _ip("addr", "add", f"{self.subnet}.254/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")
        self.server = self.machine("server")
        self.database = Database(self)
        self._broker: subprocess.Popen[bytes] | None = None

    def machine(self, name: str) -> Machine:
        made = self.machines[name] = Machine(self, len(self.machines) + 1, name)
        made.boot()
        return made

    @property
    def urls(self) -> dict[str, str]:
        names = ("AIP_DATABASE_URL", "AIP_REDIS_URL", "AIP_NODE_DATABASE_URL", "AIP_NODE_REDIS_URL")
        return {name: self.told[name] for name in names}

    def environment(self) -> dict[str, str]:
        """For the process that watches: it sees rows and files as the server does."""
        return {
            **self.server.environment(AIP_RUN_DIR=str(self.root / "watcher")),
            **self.urls,
            "DJANGO_SETTINGS_MODULE": "aiplatform.settings",
        }

    def start_broker(self) -> None:
        from aiplatform.cli import broker

        folder = self.root / "broker"
        folder.mkdir(exist_ok=True)
        command = [
            broker.binary(), "--port", "6379", "--bind", "0.0.0.0",
            "--aclfile", str(self.root / "deploy" / "users.acl"),
            "--appendonly", "yes", "--save", "", "--dir", str(folder),
        ]  # fmt: skip
        inside = [*WITH_US, "ip", "netns", "exec", self.server.space]
        with (self.root / "broker.txt").open("ab") as out:
            self._broker = subprocess.Popen([*inside, *command], stdout=out, stderr=out, start_new_session=True)

    def start_server(self) -> None:
        """Database, broker and `manage.py up` on the first machine, until it answers."""
        self.database.start()
        self.start_broker()
        self.up()
        grants = self.server.run(sys.executable, MANAGE, "deploy", "--grants", **self.urls)
        assert self.database.asks("aip", grants.stdout), grants.stdout + grants.stderr

    def up(self) -> None:
        self.server.start(
            "up", sys.executable, MANAGE, "up", "--host", "0.0.0.0", "--port", "8000",
            **self.urls, AIP_NODE_ADDRESS=self.server.address,
        )  # fmt: skip
        wait_for(self.answers, 60, lambda: f"the server did not answer: {self.server.said('up')[-3000:]}", 0.2)

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"{self.address}/healthz", timeout=5).status == 200
        return False

    @property
    def address(self) -> str:
        return f"http://{self.server.address}:8000"

    def token(self) -> str:
        done = self.server.run(sys.executable, MANAGE, "node-token", "--quiet", **self.urls)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def join(self, name: str, **more: str) -> Machine:
        """A further machine that joins as an operator would make it, until its heartbeat is there."""
        machine = self.machines.get(name) or self.machine(name)
        machine.start("join", sys.executable, MANAGE, "join", "--server", self.address, "--token", self.token(), **more)
        self.wait_state(name, "live")
        assert "Traceback" not in machine.said("join"), machine.said("join")
        return machine

    def wait_state(self, name: str, *states: str, seconds: float = 120) -> None:
        from workers.core.models import Node

        machine = self.machines[name]
        wait_for(
            lambda: Node.objects.filter(name=name, state__in=states).exists(), seconds,
            lambda: f"{name} is not {states}; it says {machine.said('join')[-3000:]}",
        )  # fmt: skip

    def call(self, route: str, token: str) -> dict:
        request = urllib.request.Request(f"{self.address}/api/v1/{route}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def clock_shift(self) -> Path | None:
        """A library that gives the programs that load it a wrong time of day; None without a C compiler."""
        built, compiler = self.root / "clock_shift.so", shutil.which("gcc")
        if compiler is None:
            return None
        source = Path(__file__).with_name("clock_shift.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", built, source], check=True)
        return built

    def stop(self) -> None:
        for machine in self.machines.values():
            machine.cut_power()
        if self._broker is not None:
            self._broker.kill()
            self._broker.wait()
        self.database.stop()
        for machine in self.machines.values():
            _ip("link", "del", machine.cable, quiet=True)
            _ip("netns", "del", machine.space, quiet=True)
        _ip("link", "del", self.bridge, quiet=True)


class Database:
    """PostgreSQL on the server's network, with a password."""

    def __init__(self, cluster: Cluster) -> None:
        programs = postgresql._programs()
        assert programs is not None
        self.cluster, self.programs, self.folder = cluster, programs, Path(tempfile.mkdtemp(prefix="aip-pg-"))
        shutil.chown(self.folder, self._user)  # beneath its own roof: the service user gets in
        self.process: subprocess.Popen[bytes] | None = None
        self.admin = uuid.uuid4().hex

    @property
    def _user(self) -> str:
        return "postgres" if postgresql._exists("postgres") else "nobody"

    def _as_service(self) -> list[str]:
        return ["setpriv", f"--reuid={self._user}", f"--regid={pwd.getpwnam(self._user).pw_gid}", "--clear-groups"]

    def start(self, **settings: str) -> None:
        """Start it, made on the first call; `settings` as in postgresql.conf."""
        data = self.folder / "data"
        if not data.exists():
            secret = self.folder / "password"
            secret.write_text(self.admin)
            shutil.chown(secret, self._user)
            make = ["initdb", "-D", str(data), "-A", "scram-sha-256", "-U", "postgres", "-E", "UTF8", "--no-sync"]
            make = [str(self.programs / make[0]), *make[1:], f"--pwfile={secret}"]
            subprocess.run([*self._as_service(), *make], check=True, stdout=subprocess.DEVNULL, cwd="/")
            with (data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all 10.0.0.0/8 scram-sha-256\n")
        given = {"listen_addresses": "*", "unix_socket_directories": str(self.folder), **settings}
        options = [word for key, value in given.items() for word in ("-c", f"{key}={value}")]
        command = [str(self.programs / "postgres"), "-D", str(data), *options]
        with (self.cluster.root / "postgresql.txt").open("ab") as out:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.cluster.server.space, *self._as_service(), "--pdeathsig=KILL", *command],
                stdout=out, stderr=out, start_new_session=True, cwd="/",
            )  # fmt: skip
        wait_for(lambda: self.asks("postgres", "SELECT 1"), 30, "PostgreSQL did not start", 0.1)
        if not self.asks("aip", "SELECT 1"):
            script = (self.cluster.root / "deploy" / "1-roles.sql").read_text()
            for command in script.split(";"):
                assert not command.strip() or self.asks("postgres", command), command

    def asks(self, database: str, question: str) -> bool:
        import psycopg

        """Whether the administrator's command worked."""
        address = f"postgresql://postgres:{self.admin}@{self.cluster.server.address}:5432/{database}"
        with contextlib.suppress(psycopg.Error), psycopg.connect(address, autocommit=True, connect_timeout=5) as link:
            link.execute(question)
            return True
        return False

    def kill(self) -> None:
        """kill -9 of the postmaster and all its children."""
        for pid in self.cluster.server.pids("postgres"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def cluster(root: Path, **settings: str) -> Iterator[Cluster]:
    """A running server alone; machines are added with `join`. Everything is gone afterwards."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # namespaces outlive who made them
    leftovers.sweep()
    made = Cluster(root, **settings)
    os.environ.update(made.environment())
    try:
        made.start_server()
        import django

        django.setup()
        yield made
    finally:
        made.stop()


def after(seconds: float) -> float:
    """A moment so many seconds from now, for loops that watch."""
    return time.monotonic() + seconds
