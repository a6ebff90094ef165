"""Secret parameters of jobs, recognised by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "••••••"
MIN_LENGTH = 6  # a shorter value is no secret, and starring it out would hide other words
_NAME = re.compile(
    r"(?:^|[_\-.])(?:secret|password|passwd|passphrase|token|credentials?|api[_\-]?key|access[_\-]?key|private[_\-]?key)s?(?:$|[_\-.])",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?:^|[_\-.])(?:tokens|max|num|n|min|pad|id|count|length|size)(?:$|[_\-.])", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a value of this name is hidden: `WANDB_API_KEY`, `hub.token`; not `max_tokens`."""
    spread = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return bool(_NAME.search(spread)) and not _NOT.search(spread)


def find_secrets(params: Mapping[str, Any]) -> list[str]:
    """Return the texts to hide among named values."""
    texts = [str(value) for name, value in params.items() if is_secret(name) and isinstance(value, str | int)]
    return [text for text in texts if len(text) >= MIN_LENGTH]


def find_secrets_in_args(args: Iterable[str]) -> list[str]:
    """Return the texts to hide in a command line: `--api-key VALUE`, `--token=VALUE`, `password=VALUE`."""
    named: dict[str, str] = {}
    before = ""
    for arg in args:
        name, equals, value = arg.lstrip("-").partition("=")
        if equals:
            named[name] = value
        elif before:
            named[before] = arg
        before = name if arg.startswith("-") and not equals else ""
    return find_secrets(named)


def mask_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return named values with secrets masked."""
    return {
        name: MASK if is_secret(name) and len(str(value)) >= MIN_LENGTH else value for name, value in params.items()
    }


def mask_text(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every one of `secrets` masked."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
