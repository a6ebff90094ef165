"""Downloads that can be resumed, and zips that any tool opens."""

from __future__ import annotations

import io
import os
import zipfile

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.test import RequestFactory

from aiplatform.lib.downloads import attachment, send_file, zip_stream

pytestmark = pytest.mark.django_db  # the end of a response closes old connections


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(bytes(range(256)))
    return path


def get(path, **headers):
    request = RequestFactory().get("/", headers=headers)
    response = send_file(request, os.open(path, os.O_RDONLY), path.name)
    body = b"".join(response) if response.streaming else response.content
    response.close()
    return response, body


@pytest.mark.parametrize(
    ("asked", "part"),
    [("bytes=0-9", (0, 10)), ("bytes=250-", (250, 256)), ("bytes=-6", (250, 256)), ("bytes=100-9999", (100, 256))],
)
def test_send_file_sends_a_range_as_requested(weights, asked, part):
    response, body = get(weights, range=asked)

    assert response.status_code == 206
    assert body == bytes(range(*part))
    assert response["Content-Range"] == f"bytes {part[0]}-{part[1] - 1}/256"
    assert response["Content-Length"] == str(len(body))


def test_send_file_answers_a_range_beyond_the_end_with_416(weights):
    response, _ = get(weights, range="bytes=256-")

    assert (response.status_code, response["Content-Range"]) == (416, "bytes */256")


def test_send_file_sends_a_changed_file_whole(weights):
    first, _ = get(weights)
    weights.write_bytes(b"other")

    response, body = get(weights, range="bytes=2-", **{"if-range": first["ETag"]})

    assert (response.status_code, body) == (200, b"other")


def test_send_file_makes_a_page_among_the_outputs_a_download(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("<script>alert(1)</script>")

    response, _ = get(page)

    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"


def test_attachment_keeps_odd_names_inside_their_header():
    assert attachment('图"片\r\n.zip') == (
        "attachment; filename=\"_____.zip\"; filename*=UTF-8''%E5%9B%BE%22%E7%89%87%0D%0A.zip"
    )


def test_zip_stream_opens_and_holds_the_same_bytes(tmp_path, weights):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("/etc/passwd")
    names = {"模型/model.onnx": weights.name, "empty": "empty", "link": "link", "gone": "gone"}
    files = [(inside, tmp_path, name) for inside, name in names.items()]

    found = zipfile.ZipFile(io.BytesIO(b"".join(zip_stream(files))))

    assert found.namelist() == ["模型/model.onnx", "empty"]
    assert found.testzip() is None
    assert found.read("模型/model.onnx") == weights.read_bytes()


def test_e02_zip_stream_leads_nowhere_by_a_folder_swapped_for_a_link(tmp_path):
    outputs, secrets = tmp_path / "outputs", tmp_path / "run"
    for folder in (outputs / "late", secrets):
        folder.mkdir(parents=True)
    (outputs / "first").write_bytes(b"1")
    (outputs / "late" / "secret_key").write_bytes(b"mine")
    (secrets / "secret_key").write_bytes(b"canary")
    stream = zip_stream([("first", outputs, "first"), ("late/secret_key", outputs, "late/secret_key")])

    begun = next(stream)
    (outputs / "late").rename(outputs / "gone")
    (outputs / "late").symlink_to(secrets)

    assert b"canary" not in begun + b"".join(stream)


async def test_send_file_under_asgi_gathers_nothing_in_memory(weights):
    request = ASGIRequest({"type": "http", "method": "GET", "path": "/", "headers": []}, io.BytesIO())

    response = send_file(request, os.open(weights, os.O_RDONLY), "model.onnx")

    assert response.is_async
    assert b"".join([block async for block in response]) == weights.read_bytes()
