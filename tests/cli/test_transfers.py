"""Uploads and downloads that are cut go on where they stopped."""

from __future__ import annotations

import json

import pytest

from aiplatform.client import config, tus
from aiplatform.client.download import fetch
from aiplatform.client.errors import ClientError
from aiplatform.client.http import Client
from tests.cli.platform_double import Uploads

pytestmark = pytest.mark.sockets("a platform's double")


@pytest.fixture
def client(platform) -> Client:
    return Client(config.Config(platform.url, "aip_alice"))


@pytest.fixture
def uploads(platform, monkeypatch) -> Uploads:
    monkeypatch.setattr(tus, "CHUNK", 1000)
    return Uploads(platform)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "图片.zip"
    path.write_bytes(bytes(range(256)) * 20)  # 5,120 bytes: six chunks of 1,000
    return path


def test_tus_upload_arrives_whole_and_its_state_is_forgotten(client, uploads, archive, home):
    number = tus.upload(client, archive, quiet=True)

    assert uploads.data[number] == archive.read_bytes()
    assert json.loads((home / "uploads.json").read_text()) == {}


def test_tus_upload_that_was_killed_goes_on_where_it_stopped(client, uploads, archive, platform):
    uploads.cut_after = 3000
    with pytest.raises(ClientError):
        tus.upload(client, archive, quiet=True, pause=lambda _: None)
    uploads.cut_after = None
    platform.seen.clear()

    number = tus.upload(client, archive, quiet=True)

    assert uploads.data[number] == archive.read_bytes()
    assert len(uploads.data) == 1
    offsets = [int(r.headers["upload-offset"]) for r in platform.seen if r.method == "PATCH"]
    assert offsets == [3000, 4000, 5000]


def test_tus_upload_uses_a_line_again_that_comes_back(client, uploads, archive):
    uploads.cut_after = 2000
    waits = []

    def mended(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            uploads.cut_after = None

    number = tus.upload(client, archive, quiet=True, pause=mended)

    assert uploads.data[number] == archive.read_bytes()
    assert waits == [1.0, 2.0]


def test_tus_upload_that_expired_begins_anew(client, uploads, archive):
    uploads.cut_after = 1000
    with pytest.raises(ClientError):
        tus.upload(client, archive, quiet=True, pause=lambda _: None)
    uploads.data.clear()
    uploads.cut_after = None

    number = tus.upload(client, archive, quiet=True)

    assert uploads.data[number] == archive.read_bytes()


def test_tus_upload_of_a_changed_file_begins_anew(client, uploads, archive):
    uploads.cut_after = 1000
    with pytest.raises(ClientError):
        tus.upload(client, archive, quiet=True, pause=lambda _: None)
    uploads.cut_after = None
    archive.write_bytes(b"other bytes")

    number = tus.upload(client, archive, quiet=True)

    assert bytes(uploads.data[number]) == b"other bytes"


def test_tus_upload_takes_an_empty_file(client, uploads, tmp_path):
    empty = tmp_path / "empty.zip"
    empty.touch()

    number = tus.upload(client, empty, quiet=True)

    assert uploads.data[number] == b""


def test_download_goes_on_after_a_cut(client, platform, tmp_path):
    content = bytes(range(256)) * 10

    def serve(request):
        begin = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        return (206 if begin else 200), content[begin:], {"ETag": '"one"'}

    platform.routes["GET /api/v1/file/"] = serve
    target = tmp_path / "model.onnx"
    (tmp_path / "model.onnx.part").write_bytes(content[:1000])
    (tmp_path / "model.onnx.part.etag").write_text('"one"')

    fetch(client, "file/", target, quiet=True)

    asked = platform.asked("GET /api/v1/file/")[0].headers
    assert target.read_bytes() == content
    assert (asked["range"], asked["if-range"]) == ("bytes=1000-", '"one"')
    assert sorted(path.name for path in tmp_path.glob("model*")) == ["model.onnx"]


def test_download_never_mixes_two_versions_of_a_file(client, platform, tmp_path):
    platform.routes["GET /api/v1/file/"] = lambda _: (200, b"the new bytes", {"ETag": '"two"'})
    target = tmp_path / "metrics.json"
    (tmp_path / "metrics.json.part").write_bytes(b"the old")
    (tmp_path / "metrics.json.part.etag").write_text('"one"')

    fetch(client, "file/", target, quiet=True)

    assert target.read_bytes() == b"the new bytes"
