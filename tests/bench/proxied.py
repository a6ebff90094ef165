# ruff: noqa: E402 - Django is set up before models are imported
"""The platform's proxy before the port in `AIP_BENCH_PORT`, for `tests.bench.server`: without rows, so that who calls
and where the service listens (looked up once a second for each caller) is not part of what is measured."""

from __future__ import annotations

import os

import django

django.setup()  # the proxy's modules import models

from workers.access.proxy.application import PortProxy, Refused
from workers.access.proxy.forwarding import Scope, Upstream


def _split(path: str) -> tuple[str, str]:
    called, _slash, rest = path.removeprefix("/serve/").partition("/")
    return called, rest


def _find(scope: Scope, called: str) -> Upstream:
    return Upstream("127.0.0.1", int(os.environ["AIP_BENCH_PORT"]), headers=(("X-Aip-Service-Key", "key"),))


def _unreachable() -> Refused:
    return Refused(503, "unreachable", "The server does not respond.")


application = PortProxy(split=_split, find=_find, not_listening=_unreachable, broken_off=_unreachable)
