"""Debian's ssh, scp, sftp and rsync against a real `up`: in a running job, many at once, by a jump, around a kill."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.journeys.up import PASSWORD, ROOT, Browser, Up, call, first_admin, running, until
from tests.running import free_port, printed_in

pytestmark = pytest.mark.journey

JOB = """\
import http.server, os, pathlib, socketserver, threading
class Plain(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
class Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): pass
class Echo(socketserver.StreamRequestHandler):
    def handle(self): self.wfile.write(b"unix " + self.rfile.readline())
os.chdir(os.environ["AIP_OUTPUT_DIR"])
web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Plain)
pathlib.Path("hello.txt").write_text("from inside")
threading.Thread(target=Unix("/tmp/echo.sock", Echo).serve_forever, daemon=True).start()
print("port", web.server_port, "in", os.getcwd(), flush=True)
web.serve_forever()
"""


class Tools:
    """OpenSSH's programs with one key and none of this machine's settings."""

    def __init__(self, home: Path, port: int, job: int) -> None:
        self.home, self.port, self.at = home, port, f"job-{job}@127.0.0.1"
        self.options = [
            "-F", "none", "-i", str(home / "id"), "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
            "-o", f"UserKnownHostsFile={home}/known", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes",
            "-o", "ExitOnForwardFailure=yes",
        ]  # fmt: skip
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home)}

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, env=self.env, stdin=pipe, stdout=pipe, stderr=pipe)

    def run(self, *argv: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(argv, env=self.env, input=given, capture_output=True, timeout=240, check=False)

    def ssh(self, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return self.run("ssh", *self.options, "-p", str(self.port), *words, given=given)

    @contextlib.contextmanager
    def forwarding(self, *words: str):
        """An ssh that only forwards, until the end of the block; it says when it does."""
        process = self.start("ssh", *self.options, "-p", str(self.port), *words, self.at, "echo ready; sleep 600")
        try:
            assert process.stdout.readline() == b"ready\n", process.stderr.read()
            yield
        finally:
            process.kill()
            process.communicate()


def enter(up: Up, home: Path, token: str) -> tuple[int, int, str]:
    """Give Olga a key, start the job: its number, its port, its folder."""
    home.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / "id"], check=True)
    browser = Browser(up.url)
    browser.post("/login/", username="olga", password=PASSWORD)
    browser.post("/account/ssh-keys/", name="laptop", line=(home / "id.pub").read_text().strip())
    body = {"command": f"#!/usr/bin/env python3\n{JOB}", "cpus": 0.5}
    status, made = call(up.url, token, "POST", "commands/", body)
    assert status == 201, made

    def said() -> list[str]:
        text = printed_in((call(up.url, token, "GET", f"jobs/{made['id']}/log/")[1] or {}).get("text", ""))
        return text.split() if "port" in text else []

    words = until(said, 90, "the job did not start")
    return made["id"], int(words[1]), words[3]


def fetch(port: int, path: str = "hello.txt") -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
        return answer.read()


def through_socks(proxy: int, port: int) -> bytes:
    """One GET through a SOCKS 5 proxy, by hand."""
    with socket.create_connection(("127.0.0.1", proxy), timeout=60) as way:
        way.sendall(b"\5\1\0")
        assert way.recv(2) == b"\5\0"
        name = b"localhost"
        way.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
        assert way.recv(10)[1] == 0
        way.sendall(b"GET /hello.txt HTTP/1.0\r\n\r\n")
        said = b""
        while data := way.recv(65536):
            said += data
        return said


def test_openssh_in_a_running_job(tmp_path):
    port = free_port()
    with running(tmp_path / "p", AIP_SSH_PORT=str(port)) as up:
        token = first_admin(up)
        job, inner, folder = enter(up, tmp_path / "home", token)
        tools = Tools(tmp_path / "home", port, job)
        codes(tools)
        copies(tools, folder)
        forwards(tools, inner, folder)
        jumps(tools)
        many(tools)
        by_password(up, tools, token, job)
        by_port_forward(up, tools, token, job, inner)
        around_a_kill(up, tools, token, job)
        assert call(up.url, token, "POST", f"jobs/{job}/stop/")[0] == 202
        until(lambda: call(up.url, token, "GET", f"jobs/{job}/")[1]["ended_at"], 90, "the end of the job")
        assert tools.ssh(tools.at, "true").returncode == 255


def codes(tools: Tools) -> None:
    assert tools.ssh(tools.at, "exit 7").returncode == 7
    assert tools.ssh(tools.at, "kill -9 $$").returncode == 255
    done = tools.ssh("-tt", tools.at, "tty; stty size; exit 4")
    assert (done.returncode, done.stdout.startswith(b"/dev/pts/")) == (4, True)
    big = os.urandom(3_000_000)
    assert tools.ssh(tools.at, "sha256sum", given=big).stdout.split()[0].decode() == hashlib.sha256(big).hexdigest()
    assert tools.ssh("-p", str(tools.port), "job-999@127.0.0.1", "true").returncode == 255
    assert tools.ssh("-W", "example.org:80", tools.at).returncode == 255


def copies(tools: Tools, folder: str) -> None:
    local = tools.home / "data.bin"
    local.write_bytes(os.urandom(20_000_000))
    (tools.home / "tree" / "deep").mkdir(parents=True)
    (tools.home / "tree" / "deep" / "a b.txt").write_text("deep")
    port = str(tools.port)
    for flags in ([], ["-O"]):
        scp = ["scp", *flags, *tools.options, "-P", port]
        assert tools.run(*scp, str(local), f"{tools.at}:{folder}/up.bin").returncode == 0
        assert tools.run(*scp, f"{tools.at}:{folder}/up.bin", str(tools.home / "down.bin")).returncode == 0
        assert (tools.home / "down.bin").read_bytes() == local.read_bytes()
        assert tools.run(*scp, "-rp", str(tools.home / "tree"), f"{tools.at}:{folder}/").returncode == 0
        assert tools.run(*scp, f"{tools.at}:{folder}/nothing", str(tools.home)).returncode != 0
    batch = f"cd {folder}\nput {local} by-sftp.bin\nls -l\nrename by-sftp.bin other.bin\nrm other.bin\n"
    done = tools.run("sftp", "-b", "-", *tools.options, "-P", port, tools.at, given=batch.encode())
    assert (done.returncode, b"by-sftp.bin" in done.stdout) == (0, True), done
    assert tools.run("sftp", "-b", "-", *tools.options, "-P", port, tools.at, given=b"cd /nowhere\n").returncode == 1
    shell = " ".join(["ssh", *tools.options, "-p", port])
    rsync = ["rsync", "-a", "--checksum", "-e", shell]
    assert tools.run(*rsync, str(tools.home / "tree"), f"{tools.at}:{folder}/synced/").returncode == 0
    assert tools.run(*rsync, f"{tools.at}:{folder}/synced/", str(tools.home / "back")).returncode == 0
    assert (tools.home / "back" / "tree" / "deep" / "a b.txt").read_text() == "deep"


def forwards(tools: Tools, inner: int, folder: str) -> None:
    local, socks, unix = free_port(), free_port(), tools.home / "echo"
    with tools.forwarding("-L", f"{local}:localhost:{inner}", "-D", str(socks), "-L", f"{unix}:/tmp/echo.sock"):
        assert fetch(local) == b"from inside"
        with ThreadPoolExecutor(20) as pool:
            said = list(pool.map(lambda _: through_socks(socks, inner), range(20)))
        assert all(one.endswith(b"from inside") for one in said)
        with socket.socket(socket.AF_UNIX) as way:
            way.settimeout(60)
            way.connect(str(unix))
            way.sendall(b"hello\n")
            assert way.recv(100) == b"unix hello\n"
    with socket.create_server(("127.0.0.1", 0)) as here:
        here.settimeout(60)
        there = free_port()

        def answer() -> None:
            guest, _ = here.accept()
            with guest:
                guest.sendall(b"from the laptop")

        thread = threading.Thread(target=answer)
        thread.start()
        with tools.forwarding("-R", f"{there}:127.0.0.1:{here.getsockname()[1]}"):
            ask = f"import socket; print(socket.create_connection(('127.0.0.1', {there})).recv(99).decode())"
            assert tools.ssh(tools.at, f'python3 -c "{ask}"').stdout == b"from the laptop\n"
        thread.join(60)
    assert tools.ssh("-R", f"10.9.9.9:{free_port()}:127.0.0.1:1", tools.at, "true").returncode == 255


def jumps(tools: Tools) -> None:
    proxy = " ".join(["ssh", *tools.options, "-p", str(tools.port), "-W", "%h:%p", "olga@127.0.0.1"])
    done = tools.run("ssh", *tools.options, "-o", f"ProxyCommand={proxy}", tools.at, "echo jumped")
    assert (done.returncode, done.stdout) == (0, b"jumped\n"), done.stderr
    config = tools.home / "config"
    config.write_text(
        f"Host *\n  IdentityFile {tools.home}/id\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
        f"  UserKnownHostsFile {tools.home}/known2\n  BatchMode yes\n"
        f"Host gate\n  HostName 127.0.0.1\n  Port {tools.port}\n  User jump\n"
        f"Host inside\n  HostName 127.0.0.1\n  User {tools.at.partition('@')[0]}\n  ProxyJump gate\n"
    )
    done = tools.run("ssh", "-F", str(config), "inside", "echo jumped twice")
    assert (done.returncode, done.stdout) == (0, b"jumped twice\n"), done.stderr


def many(tools: Tools) -> None:
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda number: tools.ssh(tools.at, f"sleep 1; exit {number}"), range(20)))
    assert [one.returncode for one in done] == list(range(20))


def by_password(up: Up, tools: Tools, token: str, job: int) -> None:
    """`aip ssh` on a machine without the key."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tools.home / "other"), "PYTHONPATH": str(ROOT)}
    env |= {"AIP_URL": up.url, "AIP_TOKEN": token}
    argv = [sys.executable, "-m", "aiplatform.client", "ssh", str(job), "--", "echo entered; exit 6"]
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (6, b"entered\n"), done.stderr


def by_port_forward(up: Up, tools: Tools, token: str, job: int, inner: int) -> None:
    """`aip port-forward` until Ctrl+C; a taken port is refused before anything is opened."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tools.home / "other"), "PYTHONPATH": str(ROOT)}
    env |= {"AIP_URL": up.url, "AIP_TOKEN": token}
    local = free_port()
    argv = [sys.executable, "-m", "aiplatform.client", "port-forward", str(job), f"{local}:{inner}"]
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as forwarding:
        until(lambda: _reads(local), 60, "the port of the job")
        again = subprocess.run(argv, env=env, capture_output=True, timeout=120, check=False)
        assert (again.returncode, b"is in use" in again.stderr) == (2, True), again.stderr
        os.killpg(forwarding.pid, signal.SIGINT)  # as a terminal does
        said = forwarding.communicate(timeout=60)[1]
    assert f"http://localhost:{local} leads to port {inner} of job {job}".encode() in said
    assert not _reads(local)


def _reads(port: int) -> bool:
    try:
        return fetch(port) == b"from inside"
    except OSError:
        return False


def around_a_kill(up: Up, tools: Tools, token: str, job: int) -> None:
    """A killed gateway takes its connections along; job and background work live, and the next sign-in works."""
    tools.ssh(tools.at, "nohup sh -c 'while :; do date +%s%N > /tmp/alive; sleep 0.1; done' > /dev/null 2>&1 &")
    sleeper = tools.start("ssh", *tools.options, "-p", str(tools.port), tools.at, "echo in; sleep 600")
    assert sleeper.stdout.readline() == b"in\n"
    assert up.kill("ssh_gateway") == 1
    assert sleeper.wait(120) == 255
    sleeper.communicate()
    until(lambda: tools.ssh(tools.at, "true").returncode == 0, 60, "signing in again")
    first = tools.ssh(tools.at, "cat /tmp/alive").stdout
    until(lambda: tools.ssh(tools.at, "cat /tmp/alive").stdout not in (first, b""), 60, "work in the background")
    assert call(up.url, token, "GET", f"jobs/{job}/")[1]["state"] == "running"

    def ends() -> list[str]:
        return [row["end"] for row in call(up.url, token, "GET", f"jobs/{job}/ssh/sessions/")[1]]

    assert "gateway_lost" in ends()
