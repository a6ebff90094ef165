"""Modules of the package that runs on this device."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def module(name: str) -> Any:
    """Import a module of the package by the name that it has in packages of every release: "alone", "decode", ….

    Raises:
        ImportError: the package is older than the module.
    """
    return import_module(f"inference.server.{name}")
