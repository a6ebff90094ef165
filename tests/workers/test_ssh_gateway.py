"""Debian's own ssh, scp, sftp and rsync through the gateway into a real sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.running import wait_for
from tests.workers import ssh_clients as clients
from tests.workers.launched import node, placed
from tests.workers.ssh_clients import KEY, connect, gateway, in_thread
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.execution import launch
from workers.execution.exec import channels
from workers.supervisor import records

__all__ = ["node", "placed"]  # fixtures
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("the gateway, its clients and the job's own ports"),
    pytest.mark.skipif(not shutil.which("ssh"), reason="OpenSSH's client is not installed"),
]
SERVES = """
import http.server, socketserver, threading, socket, os
http.server.SimpleHTTPRequestHandler.log_message = lambda *_: None
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
open(os.environ["AIP_OUTPUT_DIR"] + "/port", "w").write(str(server.server_port))
server.serve_forever()
"""


@pytest.fixture
def home(settings):
    """Sockets have short paths."""
    with tempfile.TemporaryDirectory(prefix="aip-g-") as made:
        settings.RUN_DIR = Path(made)
        yield Path(made)


@pytest.fixture
def running(home, alice, kind, placed):
    """Alice's job in the strongest sandbox of this machine, with her key known."""
    clients.add_key(alice)
    kind.exec_server = True
    job, attempt = placed(["python3", "-c", SERVES])
    launch.start(attempt.pk)
    run = RunDir.for_attempt(job.pk, 1)
    wait_for(lambda: (run.outputs / "port").exists() and (run.outputs / "port").read_text())
    Job.objects.filter(pk=job.pk).update(state="running")
    yield Job.objects.get(pk=job.pk)
    records.write_request(run.path, "kill")
    wait_for(lambda: records.read(run.path / records.EXIT))


class Tools:
    """OpenSSH's programs, with Alice's key and none of this machine's settings."""

    def __init__(self, folder: Path, port: int, job: int) -> None:
        self.key, self.folder, self.port = folder / "id", folder, port
        self.key.write_bytes(KEY.export_private_key())
        self.key.chmod(0o600)
        self.at = f"job-{job}@127.0.0.1"
        self.options = [
            "-F", "none", "-i", str(self.key), "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
            "-o", f"UserKnownHostsFile={folder}/known", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes",
        ]  # fmt: skip

    async def __call__(self, *argv: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a program: exit code, output, errors."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
        try:
            async with asyncio.timeout(120):
                out, err = await process.communicate(given)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, out, err

    def ssh(self, *words: str, given: bytes = b""):
        return self("ssh", *self.options, "-p", str(self.port), *words, given=given)


@pytest.fixture
async def tools(running, tmp_path):
    folder = tmp_path / "client"
    folder.mkdir()
    async with gateway() as (_hub, port):
        yield Tools(folder, port, running.pk)


async def test_commands_have_their_codes_streams_and_input(tools):
    at = tools.at
    big = os.urandom(3_000_000)

    assert (await tools.ssh(at, "exit 7"))[0] == 7
    assert (await tools.ssh(at, "kill -9 $$"))[0] == 255
    assert await tools.ssh(at, "echo out; echo err >&2") == (0, b"out\n", b"err\n")
    code, out, _err = await tools.ssh(at, "sha256sum", given=big)
    assert (code, out.split()[0].decode()) == (0, hashlib.sha256(big).hexdigest())
    code, out, _err = await tools.ssh(at, "head -c 3000000 /dev/zero | wc -c; env")
    assert out.startswith(b"3000000\n")
    assert b"AIP_OUTPUT_DIR=" in out
    assert b"LANG=C.UTF-8" not in out or b"SSH_CONNECTION=127.0.0.1 " in out
    assert b"SSH_AUTH_SOCK" not in out


async def test_terminal_knows_its_size_and_interrupts(running):
    async with gateway() as (_hub, port), connect(port, running.pk, key=KEY) as client:
        shell = await client.create_process(
            term_type="xterm", term_size=(100, 30), encoding=None, stderr=asyncio.subprocess.STDOUT
        )
        shell.stdin.write(b"stty size; tty\n")
        await asyncio.wait_for(shell.stdout.readuntil(b"30 100"), 60)
        shell.change_terminal_size(132, 50)
        shell.stdin.write(b"stty size; sh -c 'printf be%s gun; exec sleep 600'\n")
        await asyncio.wait_for(shell.stdout.readuntil(b"50 132"), 60)
        await asyncio.wait_for(
            shell.stdout.readuntil(b"begun"), 60
        )  # before, a shell may not have handed it the terminal
        shell.stdin.write(b"\x03")
        shell.stdin.write(b"echo code $?; exit 3\n")
        said = await asyncio.wait_for(shell.stdout.read(), 60)

    assert b"code 130" in said
    assert shell.exit_status == 3


async def test_hung_up_terminal_ends_what_runs_in_it(running):
    async with gateway() as (_hub, port), connect(port, running.pk, key=KEY) as client:
        shell = await client.create_process("echo $$; exec sleep 600", term_type="xterm", encoding=None)
        pid = int((await asyncio.wait_for(shell.stdout.readline(), 60)).split()[0])
        shell.close()
        for _try in range(200):
            if (await client.run(f"kill -0 {pid}", encoding=None)).exit_status:
                return
            await asyncio.sleep(0.05)
    raise AssertionError("it runs on")


async def test_several_shells_at_once_over_one_connection(running):
    async with gateway() as (_hub, port), connect(port, running.pk, key=KEY) as client:
        runs = [client.run(f"sleep 0.2; echo {number}", encoding=None) for number in range(20)]
        done = await asyncio.gather(*runs)

    assert [one.stdout for one in done] == [b"%d\n" % number for number in range(20)]


async def test_copies_by_scp_sftp_and_rsync_arrive_and_end_well(tools, running):
    data = os.urandom(2_000_000)
    local = tools.folder / "data.bin"
    local.write_bytes(data)
    there = str(RunDir.for_attempt(running.pk, 1).outputs)
    port, at = str(tools.port), tools.at
    code = {}
    for way, flags in (("new", []), ("old", ["-O"])):
        scp = ["scp", *flags, *tools.options, "-P", port]
        code[f"{way} up"] = await tools(*scp, str(local), f"{at}:{there}/{way}.bin")
        code[f"{way} down"] = await tools(*scp, f"{at}:{there}/{way}.bin", str(tools.folder / f"{way}.back"))
        code[f"{way} missing"] = await tools(*scp, f"{at}:{there}/nothing", str(tools.folder))
        assert (tools.folder / f"{way}.back").read_bytes() == data
    code["sftp"] = await tools("sftp", "-b", "-", *tools.options, "-P", port, at, given=f"ls {there}\n".encode())
    if shutil.which("rsync"):
        shell = " ".join(["ssh", *tools.options, "-p", port])
        code["rsync"] = await tools("rsync", "-a", "-e", shell, str(local), f"{at}:{there}/r.bin")

    ends = {name: one[0] for name, one in code.items()}
    assert {name: end for name, end in ends.items() if end} == {"new missing": ends["new missing"], "old missing": 1}, (
        code
    )
    assert ends["new missing"] in {1, 255}
    assert b"new.bin" in code["sftp"][1]


async def test_ports_of_the_job_come_out_at_the_client(running):
    inner = int((RunDir.for_attempt(running.pk, 1).outputs / "port").read_text())
    async with gateway() as (_hub, port), connect(port, running.pk, key=KEY) as client:
        reader, writer = await client.open_connection("localhost", inner)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 60)

    assert answer.startswith(b"HTTP/1.0 200")


async def test_ports_of_the_client_are_listened_on_in_the_job(running):
    async def answer(reader, writer):
        writer.write(b"from " + await reader.readline())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    own = server.sockets[0].getsockname()[1]
    talk = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
    talk += "; s.sendall(b'inside\\n'); print(s.recv(99))"
    async with server, gateway() as (_hub, port), connect(port, running.pk, key=KEY) as client:
        listener = await client.forward_remote_port("", 0, "127.0.0.1", own)
        runs = [client.run(f'python3 -c "{talk}" {listener.get_port()}', encoding=None) for _i in range(5)]
        done = await asyncio.gather(*runs)
        listener.close()
        await listener.wait_closed()
        after = await client.run(f'python3 -c "{talk}" {listener.get_port()}', encoding=None)

    assert [one.stdout for one in done] == [b"b'from inside\\n'\n"] * 5
    assert after.exit_status == 1


async def test_stopped_processes_of_a_paused_job_are_said_to_be_paused(running, monkeypatch):
    monkeypatch.setattr(channels, "TIMEOUT_S", 0.5)
    await in_thread(Job.objects.filter(pk=running.pk).update)(state="paused")
    async with gateway() as (_hub, port), connect(port, running.pk, key=KEY) as client:
        done = await client.run("true", encoding=None)

    assert done.exit_status == 255
    assert b"The job is paused" in done.stderr
