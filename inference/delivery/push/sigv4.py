"""Signatures of Amazon S3, version 4: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html

Pure, and checked against the examples of that page.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY = hashlib.sha256(b"").hexdigest()


def signed(
    method: str, url: str, headers: Mapping[str, str], *, payload_sha256: str, access_key: str, secret_key: str,
    region: str, moment: datetime, token: str = "", service: str = "s3",
) -> dict[str, str]:  # fmt: skip
    """Return the headers of a request, all of them signed, with `Authorization`.

    Args:
        url: the whole address; its path and query are encoded already, each sign once.
        headers: what is sent besides `Host`, the date and the sum of the body.
        payload_sha256: of the body, in hex; the store refuses another body.
        moment: aware; the store refuses one that is a quarter of an hour off.
        token: of a session with credentials that end.
    """
    parts = urlsplit(url)
    stamp = moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    sent = {**headers, "Host": parts.netloc, "x-amz-content-sha256": payload_sha256, "x-amz-date": stamp}
    if token:
        sent["x-amz-security-token"] = token
    canonical_headers = {name.lower(): " ".join(value.split()) for name, value in sent.items()}
    names = ";".join(sorted(canonical_headers))
    canonical_request = "\n".join(
        [method, parts.path or "/", _query(parts.query),
         *(f"{name}:{canonical_headers[name]}" for name in sorted(canonical_headers)), "", names, payload_sha256]
    )  # fmt: skip
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = "\n".join([ALGORITHM, stamp, scope, hashlib.sha256(canonical_request.encode()).hexdigest()])
    key = f"AWS4{secret_key}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    proof = f"{ALGORITHM} Credential={access_key}/{scope},SignedHeaders={names},Signature={signature}"
    return {**sent, "Authorization": proof}


def _query(query: str) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query, True))
    return "&".join(f"{name}={value}" for name, value in pairs)
