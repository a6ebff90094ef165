"""Environment variables and secrets as submitting commands take them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.options import Option, repeated


def options(prefix: str = "") -> tuple[Option, ...]:
    """The options; `prefix` begins their help."""
    kinds = ("a variable", "a hidden variable", "your secret of this name") if prefix else (
        "a variable; without value your own", "a variable that is hidden everywhere",
        "your secret of this name, see aip secret",
    )  # fmt: skip
    return (
        repeated("-e", "--env", metavar="NAME[=VALUE]", field="", help=f"{prefix}{kinds[0]}"),
        repeated("--secret", metavar="NAME[=VALUE]", field="", help=f"{prefix}{kinds[1]}"),
        repeated("--stored", metavar="NAME", field="", help=f"{prefix}{kinds[2]}"),
    )


def variable_fields(args: argparse.Namespace, option: str = "-e") -> dict[str, Any]:
    """Fields of a request; secrets that the platform stores have no value here."""
    secrets = dict.fromkeys(args.stored or (), "") | _parse(args.secret, "--secret")
    fields = {"variables": _parse(args.env, option), "secrets": secrets}
    return {name: value for name, value in fields.items() if value}


def _parse(items: Sequence[str] | None, option: str) -> dict[str, str]:
    """The variables of an option: `NAME=value`, or `NAME` for its value in this environment."""
    variables = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals and name not in os.environ:
            raise ClientError(f"{option} {name}: it is not set here. Write {name}=value.", USAGE)
        variables[name] = value if equals else os.environ[name]
    return variables
