"""Compressed forms of HTTP content: choice by `Accept-Encoding`, Brotli and gzip."""

from __future__ import annotations

import gzip
import secrets
from typing import Literal

import brotli
from django.utils.text import compress_string

Encoding = Literal["br", "gzip"]

MIN_BYTES = 1000
"""Smaller content is sent as it is: it fits one packet either way."""

MAX_PADDING_BYTES = 100
_TEXT_TYPES = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/manifest+json",
        "application/problem+json",
        "application/vnd.oai.openapi",
        "application/vnd.oai.openapi+json",
        "application/x-ndjson",
        "application/xml",
        "application/yaml",
        "font/otf",
        "font/ttf",
        "image/svg+xml",
        "image/x-icon",
        "image/vnd.microsoft.icon",
    }
)


def is_compressible(content_type: str) -> bool:
    """Whether content of this type becomes smaller: text, JSON, scripts, SVG, fonts that are not compressed."""
    kind = content_type.split(";", 1)[0].strip().lower()
    return kind in _TEXT_TYPES or (kind.startswith("text/") and kind != "text/event-stream")


def choose(accept_encoding: str) -> Encoding | None:
    """Return the best encoding that the header `Accept-Encoding` allows; None: send the content as it is."""
    weights: dict[str, float] = {}
    for item in accept_encoding.lower().split(","):
        name, *params = (part.strip() for part in item.split(";"))
        try:
            weights[name] = next((float(param[2:]) for param in params if param.startswith("q=")), 1.0)
        except ValueError:
            weights[name] = 0.0
    offers: tuple[Encoding, ...] = ("br", "gzip")  # Brotli first: smaller at the same weight
    best = max(offers, key=lambda name: weights.get(name, weights.get("*", 0.0)))
    return best if weights.get(best, weights.get("*", 0.0)) > 0 else None


def compress_file(content: bytes, encoding: Encoding, *, fast: bool = False) -> bytes:
    """Compress content that is stored and sent many times; `fast` where it is sent once.

    The strongest Brotli level takes 1 s per MB, so content above 256 kB gets the next weaker group of levels.
    """
    if encoding == "gzip":
        return gzip.compress(content, 5 if fast else 9, mtime=0)
    return brotli.compress(content, quality=5 if fast else 11 if len(content) <= 1 << 18 else 9)


def compress_response(content: bytes, encoding: Encoding) -> bytes:
    """Compress content that is sent once, with padding of random length that decoders skip.

    The padding hides by how many bytes a guess that repeats a secret shortens the response (BREACH).
    """
    if encoding == "gzip":
        return compress_string(content, max_random_bytes=MAX_PADDING_BYTES)  # pads the file name of the gzip header
    compressor = brotli.Compressor(quality=4)
    body = compressor.process(content) + compressor.flush()  # ends at a byte boundary
    return body + _metadata_block(secrets.token_bytes(1 + secrets.randbelow(MAX_PADDING_BYTES))) + compressor.finish()


def _metadata_block(data: bytes) -> bytes:
    """Return a Brotli metadata block of 1 to 256 bytes (RFC 7932, section 9.2), which every decoder skips.

    Bits from the lowest: ISLAST 0, MNIBBLES 11, reserved 0, MSKIPBYTES 01, eight bits of MSKIPLEN - 1, filling.
    """
    return (0b01_0_11_0 | (len(data) - 1) << 6).to_bytes(2, "little") + data
