"""Downloads that can be resumed, and zips that any tool opens."""

from __future__ import annotations

import io
import os
import zipfile

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.test import RequestFactory

from aiplatform.lib import zips
from aiplatform.lib.downloads import attachment, send_file
from aiplatform.lib.files import OutsideRoot

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

    found = zipfile.ZipFile(io.BytesIO(b"".join(zips.blocks(files))))

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
    stream = zips.blocks([("first", outputs, "first"), ("late/secret_key", outputs, "late/secret_key")])

    sent = [next(stream)]
    (outputs / "late").rename(outputs / "gone")
    (outputs / "late").symlink_to(secrets)
    with pytest.raises(OutsideRoot):
        sent.extend(stream)

    assert b"canary" not in b"".join(sent)


def test_zip_can_be_resumed_at_any_byte(rf, tmp_path, weights):
    (tmp_path / "empty").touch()
    entries = [("model.onnx", tmp_path, weights.name), ("note", b"made while it is sent"), ("empty", tmp_path, "empty")]

    def sent(**headers):
        answer = zips.send_zip(rf.get("/", headers=headers), entries, "all.zip")
        return answer, b"".join(answer.streaming_content) if answer.streaming else b""

    answer, whole = sent()
    tag = answer["ETag"]

    assert (answer.status_code, answer["Content-Length"], answer["Accept-Ranges"]) == (200, str(len(whole)), "bytes")
    assert zipfile.ZipFile(io.BytesIO(whole)).read("note") == b"made while it is sent"
    for at in (0, 1, 29, 60, len(whole) // 2, len(whole) - 120, len(whole) - 1):
        part, rest = sent(**{"Range": f"bytes={at}-", "If-Range": tag})
        assert (part.status_code, rest) == (206, whole[at:])
        assert part["Content-Range"] == f"bytes {at}-{len(whole) - 1}/{len(whole)}"
    assert sent(Range="bytes=5-9")[1] == whole[5:10]
    assert sent(Range=f"bytes={len(whole)}-")[0].status_code == 416
    assert sent(**{"Range": "bytes=5-", "If-Range": '"other"'})[0].status_code == 200
    (tmp_path / "empty").write_bytes(b"changed")
    changed, again = sent(**{"Range": "bytes=5-", "If-Range": tag})
    assert (changed.status_code, len(again)) == (200, len(whole) + 7)


def test_zip_of_a_file_that_shrank_breaks_off(tmp_path, weights):
    stream = zips.blocks([("model.onnx", tmp_path, weights.name)])
    next(stream)
    weights.write_bytes(b"short")

    with pytest.raises(OSError, match="shorter"):
        list(stream)


async def test_send_file_under_asgi_gathers_nothing_in_memory(weights):
    request = ASGIRequest({"type": "http", "method": "GET", "path": "/", "headers": []}, io.BytesIO())

    response = send_file(request, os.open(weights, os.O_RDONLY), "model.onnx")

    assert response.is_async
    assert b"".join([block async for block in response]) == weights.read_bytes()
