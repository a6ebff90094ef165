"""Environment variables as submitting commands take them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from aiplatform.client.errors import USAGE, ClientError


def given(words: Sequence[str] | None, option: str) -> dict[str, str]:
    """The variables of an option: `NAME=value`, or `NAME` for the value that it has here."""
    found = {}
    for item in words or ():
        name, equals, value = item.partition("=")
        if not equals and name not in os.environ:
            raise ClientError(f"{option} {name}: it is not set here. Write {name}=value.", USAGE)
        found[name] = value if equals else os.environ[name]
    return found


def secrets(args: argparse.Namespace) -> dict[str, str]:
    """The secrets of a submission; those that the platform keeps have no value here."""
    return dict.fromkeys(args.stored or (), "") | given(args.secret, "--secret")
