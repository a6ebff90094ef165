"""The charset of a request names an encoding of text, or the request is refused."""

from __future__ import annotations

import json
import zlib

import pytest

pytestmark = pytest.mark.django_db

URL = "/api/v1/datasets/"
FORM = b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nabc\r\n--b--\r\n'


@pytest.mark.parametrize(
    "body", [zlib.compress(json.dumps({"name": "x" * 60}).encode()), b'{"name": "x"}'], ids=["packed", "plain"]
)
def test_d04_json_is_not_unpacked_by_the_charset_it_names(as_alice, body):
    answer = as_alice.generic("POST", URL, body, content_type="application/json; charset=zlib_codec")

    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")


def test_j05_form_in_a_charset_that_reads_no_form_is_refused(as_alice):
    answer = as_alice.generic("POST", URL, FORM, content_type="multipart/form-data; boundary=b; charset=idna")

    assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")
