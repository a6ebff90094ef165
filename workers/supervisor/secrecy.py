"""Secrets that a job printed: starred out with as many stars, so that no offset moves."""

import functools
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_LENGTH = 6  # shorter words would star out half of the language
#: API tokens of the platform give themselves away, whoever printed them.
TOKEN = re.compile(rb"aip_[A-Za-z0-9_-]{43}")
_MAX_TOKEN_LENGTH = 47
_BLOCK = 1 << 20


def reach(secrets: "Sequence[str]") -> int:
    """Return how many bytes before and after a piece must be seen to star out what crosses its ends."""
    return max([_MAX_TOKEN_LENGTH, *(len(word.encode()) for word in secrets)]) - 1


def masked(data: bytes, secrets: "Sequence[str]") -> bytes:
    """Return `data` with every secret and API token starred out, of the same length."""
    needles = _words(tuple(secrets))
    if any(word in data for word in needles):  # most texts hold none, and a pattern takes a while to compile
        data = _pattern(needles).sub(_stars, data)
    return TOKEN.sub(_stars, data) if b"aip_" in data else data


def _stars(match: re.Match[bytes]) -> bytes:
    return b"*" * len(match[0])


@functools.lru_cache(maxsize=256)
def _words(secrets: tuple[str, ...]) -> tuple[bytes, ...]:
    """What is starred out, longest first."""
    # a key of several lines is printed line by line, or with other ends of lines; a shell prints none with its margins
    parts = {part for word in secrets for part in (word, word.strip(), *map(str.strip, word.splitlines()))}
    return tuple(sorted((word.encode() for word in parts if len(word) >= MIN_LENGTH), key=len, reverse=True))


@functools.lru_cache(maxsize=256)
def _pattern(needles: tuple[bytes, ...]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, needles)))


def mask_file(path: "str | os.PathLike[str]", secrets: "Sequence[str]") -> int:
    """Star out secrets in a file, in place; a program may still append. Returns bytes changed."""
    changed, more = 0, reach(secrets)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        begin = 0
        while data := os.pread(descriptor, _BLOCK + more, begin):
            clean = masked(data, secrets)
            if clean != data:
                changed += sum(old != new for old, new in zip(data, clean, strict=True))
                os.pwrite(descriptor, clean, begin)
            begin += _BLOCK
    finally:
        os.close(descriptor)
    return changed
