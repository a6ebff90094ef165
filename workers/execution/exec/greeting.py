"""Greeting between machines of one platform: both sides show that they know a key of its data folder.

The key never travels. Machines share that folder, and no job of a sandbox sees it; each has a secret key of its own.

    relay → asker   {"challenge": …}
    asker → relay   {"job": …, "attempt": …, "rank": …, "challenge": …, "proof": …}
    relay → asker   {"proof": …}

Requests and their answers follow as on the job's own socket.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac

from aiplatform.lib import installation_secrets as kept

KEY = "exec_relay_key"  # in the data folder
LONGEST = 4096  # bytes of a line


class NotOne(ValueError):
    """What was said is no greeting of this platform."""


def challenge() -> str:
    """Return a number that nobody has seen before."""
    return secrets.token_hex(16)


def line(**words: Any) -> bytes:
    """Return one line of a greeting."""
    return json.dumps(words).encode() + b"\n"


def read(said: bytes) -> Mapping[str, Any]:
    """Return the words of a line.

    Raises:
        NotOne: it is none.
    """
    try:
        words = json.loads(said)
    except (ValueError, RecursionError) as exc:
        raise NotOne("no line of a greeting") from exc
    if not said.endswith(b"\n") or not isinstance(words, dict):
        raise NotOne("no line of a greeting")
    return words


def ask(heard: Mapping[str, Any], target: tuple[int, int, int], mine: str) -> bytes:
    """Return what the asker says to the relay's challenge.

    Raises:
        NotOne: there was no challenge.
    """
    job, attempt, rank = target
    proof = _proof("asker", _text(heard, "challenge"), mine, target)
    return line(job=job, attempt=attempt, rank=rank, challenge=mine, proof=proof)


def admit(said: Mapping[str, Any], mine: str) -> tuple[tuple[int, int, int], bytes]:
    """Check who asks; returns the rank that is wanted, and what to say back.

    Raises:
        NotOne: the asker does not know the key.
    """
    job, attempt, rank = (said.get(name) for name in ("job", "attempt", "rank"))
    if not (isinstance(job, int) and isinstance(attempt, int) and isinstance(rank, int)):
        raise NotOne("no job is named")
    target = (job, attempt, rank)
    theirs = _text(said, "challenge")
    if not hmac.compare_digest(_proof("asker", mine, theirs, target), _text(said, "proof")):
        raise NotOne("another key")
    return target, line(proof=_proof("relay", mine, theirs, target))


def check(said: Mapping[str, Any], challenged: Mapping[str, Any], mine: str, target: tuple[int, int, int]) -> None:
    """Check the relay's own proof.

    Args:
        challenged: what it said first.

    Raises:
        NotOne: it does not know the key.
    """
    if not hmac.compare_digest(_proof("relay", _text(challenged, "challenge"), mine, target), _text(said, "proof")):
        raise NotOne("another key")


def _text(words: Mapping[str, Any], name: str) -> str:
    text = words.get(name)
    if not isinstance(text, str) or not text.isascii():
        raise NotOne(f"no {name}")
    return text


def _proof(who: str, of_relay: str, of_asker: str, target: tuple[int, int, int]) -> str:
    words = json.dumps([who, of_relay, of_asker, *target])
    key = kept.load_or_create(settings.DATA_ROOT / KEY)
    return salted_hmac("workers.execution.exec.greeting", words, secret=key, algorithm="sha256").hexdigest()
