"""Responses are sent compressed where the client can read that and no secret can be guessed by their length."""

from __future__ import annotations

import gzip

import brotli
import pytest
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from aiplatform.lib import encodings
from aiplatform.lib.compression import CompressionMiddleware

TEXT = "Objects of the class car are often small. " * 100


def response_to(response: HttpResponse | StreamingHttpResponse, method: str = "GET", **headers: str):
    request = RequestFactory().generic(method, "/", headers={"Accept-Encoding": "gzip, br", **headers})
    return CompressionMiddleware(lambda _request: response)(request)


def decoded(response: HttpResponse) -> bytes:
    content = response.content
    return {"br": brotli.decompress, "gzip": gzip.decompress}[response["Content-Encoding"]](content)


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("gzip;q=1, br;q=0.2", "gzip"),
        ("*", "br"),
        ("", None),
        ("identity", None),
        ("br;q=none", None),
    ],
)
def test_encoding_is_chosen_by_what_the_client_accepts(accepted, encoding):
    assert encodings.choose(accepted) == encoding


@pytest.mark.parametrize("encoding", ["br", "gzip"])
def test_compressed_response_is_padded_to_a_random_length_that_decoders_skip(encoding):
    content = TEXT.encode()
    bodies = [encodings.compress_response(content, encoding) for _ in range(50)]

    assert {{"br": brotli.decompress, "gzip": gzip.decompress}[encoding](body) for body in bodies} == {content}
    assert len({len(body) for body in bodies}) > 10


def test_brotli_padding_of_every_length_is_skipped():
    for size in range(1, 257):
        compressor = brotli.Compressor()
        start = compressor.process(b"text") + compressor.flush()
        body = start + encodings._metadata_block(b"x" * size) + compressor.finish()
        assert brotli.decompress(body) == b"text"


@pytest.mark.parametrize(
    "content_type",
    [
        "text/html; charset=utf-8",
        "application/json",
        "application/vnd.oai.openapi",
        "text/csv",
        "application/problem+json",
    ],
)
def test_text_is_compressed(content_type):
    response = response_to(HttpResponse(TEXT, content_type=content_type))

    assert (response["Content-Encoding"], response["Vary"]) == ("br", "Accept-Encoding")
    assert int(response["Content-Length"]) == len(response.content) < len(TEXT) / 4
    assert decoded(response).decode() == TEXT


@pytest.mark.parametrize(
    ("response", "method", "headers"),
    [
        (HttpResponse(TEXT[:900]), "GET", {}),
        (HttpResponse(TEXT, content_type="image/webp"), "GET", {}),
        (HttpResponse(TEXT, content_type="text/event-stream"), "GET", {}),
        (HttpResponse(TEXT, status=206, headers={"Content-Range": "bytes 0-9/100"}), "GET", {}),
        (HttpResponse(TEXT, headers={"Content-Encoding": "zstd"}), "GET", {}),
        (HttpResponse(TEXT, headers={"ETag": '"7"'}), "GET", {}),  # If-Match compares it byte by byte
        (HttpResponse(TEXT, headers={"Cache-Control": "no-store"}), "GET", {}),
        (HttpResponse(TEXT), "POST", {}),
        (StreamingHttpResponse(iter([TEXT.encode()])), "GET", {}),
    ],
)
def test_other_responses_stay_as_they_are(response, method, headers):
    changed = response_to(response, method, **headers)

    assert (changed.get("Content-Encoding"), changed.has_header("Vary")) in {(None, False), ("zstd", False)}
    assert b"".join(changed) in {TEXT.encode(), TEXT[:900].encode()}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_response_that_another_site_requested_is_not_compressed(site):
    response = response_to(HttpResponse(TEXT), **{"Sec-Fetch-Site": site})

    assert not response.has_header("Content-Encoding")
    assert response["Vary"] == "Accept-Encoding"
    assert response_to(HttpResponse(TEXT), **{"Sec-Fetch-Site": "same-origin"}).has_header("Content-Encoding")


def test_pages_are_compressed_but_those_with_secrets_are_not(alice):
    client = Client(headers={"Accept-Encoding": "br"})
    client.force_login(alice)

    page, schema = client.get("/datasets/"), client.get("/api/v1/jobs/")

    assert page["Content-Encoding"] == "br"
    assert b"</html>" in decoded(page)
    assert "Accept-Encoding" in page["Vary"]
    assert not schema.has_header("Content-Encoding")  # an empty list is shorter than the limit
    for path in ("/account/tokens/", "/account/secrets/", "/account/second-factor/"):
        assert not client.get(path).has_header("Content-Encoding"), path


def test_json_of_the_api_is_compressed(rf):
    response = response_to(JsonResponse({"results": [{"name": f"job{n}"} for n in range(200)]}))

    assert response["Content-Encoding"] == "br"
