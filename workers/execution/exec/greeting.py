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
MAX_BYTES = 4096  # bytes of a line


class NotOne(ValueError):
    """The message is no greeting of this platform."""


def challenge() -> str:
    """Return a new random number."""
    return secrets.token_hex(16)


def line(**fields: Any) -> bytes:
    """Return one line of a greeting."""
    return json.dumps(fields).encode() + b"\n"


def read(data: bytes) -> Mapping[str, Any]:
    """Return the fields of a line.

    Raises:
        NotOne: it is none.
    """
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise NotOne("no line of a greeting") from exc
    if not data.endswith(b"\n") or not isinstance(fields, dict):
        raise NotOne("no line of a greeting")
    return fields


def request_line(fields: Mapping[str, Any], target: tuple[int, int, int], own_challenge: str) -> bytes:
    """Return the client's reply to the relay's challenge.

    Raises:
        NotOne: there was no challenge.
    """
    job, attempt, rank = target
    proof = _proof("asker", _text(fields, "challenge"), own_challenge, target)
    return line(job=job, attempt=attempt, rank=rank, challenge=own_challenge, proof=proof)


def admit(fields: Mapping[str, Any], own_challenge: str) -> tuple[tuple[int, int, int], bytes]:
    """Verify the client; return the requested rank and the reply.

    Raises:
        NotOne: the asker does not know the key.
    """
    job, attempt, rank = (fields.get(name) for name in ("job", "attempt", "rank"))
    if not (isinstance(job, int) and isinstance(attempt, int) and isinstance(rank, int)):
        raise NotOne("no job is named")
    target = (job, attempt, rank)
    client_challenge = _text(fields, "challenge")
    if not hmac.compare_digest(_proof("asker", own_challenge, client_challenge, target), _text(fields, "proof")):
        raise NotOne("another key")
    return target, line(proof=_proof("relay", own_challenge, client_challenge, target))


def check(
    fields: Mapping[str, Any], challenged: Mapping[str, Any], own_challenge: str, target: tuple[int, int, int]
) -> None:
    """Check the relay's own proof.

    Args:
        challenged: what it said first.

    Raises:
        NotOne: it does not know the key.
    """
    if not hmac.compare_digest(
        _proof("relay", _text(challenged, "challenge"), own_challenge, target), _text(fields, "proof")
    ):
        raise NotOne("another key")


def _text(fields: Mapping[str, Any], name: str) -> str:
    text = fields.get(name)
    if not isinstance(text, str) or not text.isascii():
        raise NotOne(f"no {name}")
    return text


def _proof(side: str, of_relay: str, of_asker: str, target: tuple[int, int, int]) -> str:
    text = json.dumps([side, of_relay, of_asker, *target])
    key = kept.load_or_create(settings.DATA_ROOT / KEY)
    return salted_hmac("workers.execution.exec.greeting", text, secret=key, algorithm="sha256").hexdigest()
