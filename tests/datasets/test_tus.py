"""The upload protocol: its own rules in process, then a foreign client against a real server that dies."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from tusclient.client import TusClient

from accounts.services import tokens
from aiplatform import env
from aiplatform.lib import pace
from datasets.models import Upload
from datasets.transfer import tus
from tests.running import free_port

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[2]


def bearer(user) -> str:
    made = tokens.issue(user=user, name="test")
    return made[1] if isinstance(made, tuple) else made


class Site:
    """Calls the application as a server would."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def __call__(
        self,
        method: str,
        path: str = "/uploads/tus/",
        body: bytes | list[bytes] = b"",
        cut: bool = False,
        pause_s: float = 0,
        **headers: str,
    ) -> tuple[int, dict[str, str], bytes]:
        given = {"tus-resumable": "1.0.0", "authorization": f"Bearer {self.token}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        pieces = body if isinstance(body, list) else [body]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(k.encode(), v.encode()) for k, v in given.items() if v],
        }
        messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": piece, "more_body": cut or n + 1 < len(pieces)}
            for n, piece in enumerate(pieces)
        ]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(pause_s)  # pause: how slowly a caller sends
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await tus.application(scope, receive, send)
        if not sent:
            return 0, {}, b""
        return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, sent[1]["body"]

    async def begin(self, length: int, **headers: str) -> str:
        status, told, body = await self("POST", upload_length=str(length), **headers)
        assert status == 201, body
        return told["location"]

    async def append(
        self, where: str, data: bytes | list[bytes], offset: int = 0, **more: Any
    ) -> tuple[int, dict[str, str], bytes]:
        kind = "application/offset+octet-stream"
        return await self("PATCH", where, data, content_type=kind, upload_offset=str(offset), **more)


@pytest.fixture
def site(alice):
    return Site(bearer(alice))


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_tus_options_say_what_the_server_can(site):
    status, told, _ = await Site("")("OPTIONS")

    assert (status, told["tus-version"]) == (204, "1.0.0")
    assert set(told["tus-extension"].split(",")) == {"creation", "checksum", "expiration", "termination"}
    assert told["tus-checksum-algorithm"] == "sha256,sha1"


async def test_tus_upload_arrives_in_pieces(site):
    data = os.urandom(100_000)
    where = await site.begin(len(data), upload_metadata=f"filename {b64('细胞.zip'.encode())}")

    first = await site.append(where, [data[:30_000], data[30_000:40_000]])
    second = await site.append(where, data[40_000:], 40_000)
    status, told, _ = await site("HEAD", where)

    upload = await Upload.objects.aget()
    assert (first[0], first[1]["upload-offset"], second[0]) == (204, "40000", 204)
    assert (status, told["upload-offset"], told["upload-length"]) == (200, "100000", "100000")
    assert (upload.state, upload.filename, upload.file.read_bytes() == data) == ("done", "细胞.zip", True)
    assert told["upload-expires"].endswith("GMT")


async def test_tus_sender_that_trickles_is_let_go_and_what_came_stays(site, monkeypatch):
    monkeypatch.setattr(pace, "IDLE_S", 0.3)
    where = await site.begin(200)

    status, _told, _body = await site.append(where, [b"x"] * 200, pause_s=0.02)

    upload = await Upload.objects.aget()
    assert status == 408
    assert 0 < upload.offset < 100


async def test_tus_upload_keeps_what_came_before_a_cut(site):
    where = await site.begin(100)

    status, _, _ = await site.append(where, b"x" * 40, cut=True)

    assert status == 408
    assert (await site("HEAD", where))[1]["upload-offset"] == "40"
    assert (await site.append(where, b"y" * 60, 40))[0] == 204


@pytest.mark.parametrize(("asked", "chosen"), [("zh-CN,zh;q=0.9", ""), ("en", "zh-hans")])
async def test_tus_refuses_in_the_language_of_the_browser_or_the_one_that_was_chosen(site, alice, asked, chosen):
    alice.language = chosen
    await sync_to_async(alice.save)()
    where = await site.begin(6)

    bodies = [(await site("POST", upload_length=length, accept_language=asked))[2] for length in ("many", str(10**18))]
    bodies.append((await site.append(where, b"abc", offset=2, accept_language=asked))[2])
    _status, _headers, after = await site("PATCH", "/uploads/tus/nonesuch", accept_language="en", authorization="")

    assert all(re.search(r"[\u4e00-\u9fff]", json.loads(body)["detail"]) for body in bodies)
    assert json.loads(after)["detail"] == "Sign in, or send a token."


async def test_D13_tus_wrong_offset_is_409_and_more_than_announced_is_413(site):
    where = await site.begin(10)

    assert (await site.append(where, b"x" * 4, 3))[0] == 409
    assert (await site.append(where, b"x" * 11, content_length="11"))[0] == 413
    assert (await site.append(where, [b"x" * 6, b"x" * 6]))[0] == 413
    assert int((await site("HEAD", where))[1]["upload-offset"]) <= 10


@pytest.mark.parametrize("name", ["sha256", "sha1"])
async def test_D13_tus_bytes_that_do_not_fit_their_checksum_are_460_and_not_kept(site, name):
    data = b"some bytes"
    where = await site.begin(len(data))
    right = f"{name} {b64(hashlib.new(name, data).digest())}"

    assert (await site.append(where, b"other byte", upload_checksum=right))[0] == 460
    assert (await site("HEAD", where))[1]["upload-offset"] == "0"
    assert (await site.append(where, data, upload_checksum=right))[0] == 204
    assert (await site.append(where, b"", upload_checksum="md5 eA=="))[0] == 400


async def test_tus_upload_is_complete_though_the_server_died_before_it_said_so(site):
    data = os.urandom(100)
    where = await site.begin(len(data))
    await site.append(where, data)
    uploads = Upload.objects.filter(pk=where.rsplit("/", 1)[-1])
    await sync_to_async(uploads.update)(state=Upload.State.OPEN)  # the bytes were written, the row was not

    status, told, _ = await site("HEAD", where)

    assert (status, told["upload-offset"]) == (200, "100")  # nothing is left to send: nobody would say it again
    assert (await sync_to_async(uploads.get)()).state == Upload.State.DONE


async def test_D13_tus_cut_under_a_checksum_keeps_nothing_unchecked(site):
    where = await site.begin(10)

    await site.append(where, b"x" * 5, cut=True, upload_checksum=f"sha256 {b64(bytes(32))}")

    assert (await site("HEAD", where))[1]["upload-offset"] == "0"


async def test_D13_tus_upload_of_a_stranger_does_not_exist(site, bob):
    where = await site.begin(10)
    other = Site(await sync_to_async(bearer)(bob))

    answers = [await other("HEAD", where), await other.append(where, b"x"), await other("DELETE", where)]
    missing = await other("HEAD", "/uploads/tus/" + "0" * 32)

    assert [answer[0] for answer in answers] == [404, 404, 404]
    assert answers[0] == missing


async def test_D13_tus_absurd_length_is_413_and_allocates_nothing(site):
    status, _, _ = await site("POST", upload_length=str(10**18))

    assert (status, await Upload.objects.acount()) == (413, 0)
    for wrong in ("-1", "abc", "1e5", "9" * 30, ""):
        assert (await site("POST", upload_length=wrong))[0] == 400


async def test_D14_tus_without_room_is_507_before_bytes_flow(site, monkeypatch):
    monkeypatch.setattr(env, "MIN_FREE_BYTES", 1 << 60)

    assert (await site("POST", upload_length="10"))[0] == 507


async def test_tus_upload_is_for_people_who_may_bring_data(site, anna):
    assert (await Site("wrong")("POST", upload_length="1"))[0] == 401
    annas = Site(await sync_to_async(bearer)(anna))
    assert (await annas("POST", upload_length="1"))[0] == 403
    await anna.roles.acreate(name="Runs jobs", actions=["jobs.submit"])
    assert (await annas("POST", upload_length="1"))[0] == 201
    assert (await site("POST", upload_length="1", tus_resumable=""))[0] == 412
    assert (await site("PUT", "/uploads/tus/" + "0" * 32))[0] == 404
    assert (await site("HEAD", "/uploads/tus/../../etc/passwd"))[0] == 404


async def test_tus_termination_removes_the_bytes(site):
    where = await site.begin(10)
    upload = await Upload.objects.aget()
    await site.append(where, b"x" * 5)

    assert (await site("DELETE", where))[0] == 204
    assert (await site("HEAD", where))[0] == 404
    assert not upload.folder.exists()


# --- a real server, killed; a foreign client; a line that is cut


class CutLine:
    """A TCP relay that breaks a connection after so many bytes from the client."""

    def __init__(self, target: int) -> None:
        self.target, self.cuts, self.passed, self.broken = target, [], 0, 0
        self.lock = threading.Lock()
        self.at_cut: Callable[[int], None] = lambda number: None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _cuts_after(self, count: int) -> bool:
        with self.lock:
            if not self.cuts or count < self.cuts[0]:
                return False
            self.cuts.pop(0)
            self.broken += 1
            return True

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        threading.Thread(target=self._back, args=(server, client), daemon=True).start()
        count = 0
        try:
            while data := client.recv(16384):
                count += len(data)
                self.passed += len(data)
                if self._cuts_after(count):
                    self.at_cut(self.broken)
                    break
                server.sendall(data)
        except OSError:
            pass
        self._end(server, client)

    @classmethod
    def _back(cls, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(65536):
                client.sendall(data)
        except OSError:
            pass
        cls._end(server, client)

    @staticmethod
    def _end(*ends: socket.socket) -> None:
        """Shut down first: a close while the other thread still reads tells the far side nothing."""
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Server:
    """The whole site in a process of its own, on the test's database and data root."""

    def __init__(self, port: int, data_root: Path) -> None:
        self.port = port
        name = connection.settings_dict["NAME"]
        self.environ = os.environ | {
            "AIP_BOOTSTRAP": "0",
            "AIP_DATA_ROOT": str(data_root),
            "AIP_DATABASE_URL": f"sqlite:///{name}",
            "DJANGO_SETTINGS_MODULE": "aiplatform.settings",
            "AIP_MIN_FREE_BYTES": "1",
        }
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "uvicorn", "aiplatform.asgi:application", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--lifespan", "off", "--log-level", "error"], cwd=ROOT, env=self.environ
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                threading.Event().wait(0.1)
        raise AssertionError("the site did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def peak_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024


@pytest.mark.proof
def test_29_tus_upload_by_tuspy_survives_cuts_and_killed_servers(alice, data_root, tmp_path, settings):
    """20 cuts at random bytes, the server killed 3 times: the same SHA-256, at most a piece resent per cut."""
    if connection.vendor != "sqlite":
        pytest.skip("shares the test's database file with a second process")
    luck = random.Random(29)
    file, size, piece = tmp_path / "data.bin", 24 << 20, 1 << 20
    file.write_bytes(luck.randbytes(size))
    token = bearer(alice)
    port = free_port()
    server = Server(port, data_root)
    line = CutLine(port)
    line.cuts = [luck.randrange(2000, piece) for _ in range(20)]
    deaths = {4, 9, 14}  # at these cuts the server dies in the middle of the transfer
    line.at_cut = lambda number: server.kill() if number in deaths else None
    before, where = server.peak_mib(), None
    client = TusClient(f"http://127.0.0.1:{line.port}/uploads/tus/", headers={"Authorization": f"Bearer {token}"})
    try:
        for _attempt in range(200):
            try:
                with file.open("rb") as stream:
                    checked = luck.random() < 0.5
                    uploader = client.uploader(file_stream=stream, chunk_size=piece, url=where, upload_checksum=checked)
                    where = uploader.url = where or uploader.create_url()
                    uploader.upload()
                break
            except Exception as exc:  # tuspy wraps some failures of the line and lets others through
                last = exc
            if server.process.poll() is not None:
                server.start()
        else:
            raise AssertionError(f"never arrived: {last}")
        peak = server.peak_mib()
    finally:
        server.kill()
        line.listener.close()

    upload = Upload.objects.get()
    assert (upload.state, upload.length, line.broken) == ("done", size, 20)
    assert hashlib.sha256(upload.file.read_bytes()).digest() == hashlib.sha256(file.read_bytes()).digest()
    assert line.passed <= size + 24 * (piece + 4096)
    assert peak - before < 80
