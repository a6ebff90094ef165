"""An engine that took all of an image and unpacks it until whoever gave it has shown a sign of life."""

from __future__ import annotations

import threading

from aiplatform.lib.claims import Claim
from workers.images.containers import pulse
from workers.supervisor.engine import Engine, Refused

PATIENCE_S = 30.0


def begin(monkeypatch) -> None:
    """Let engines unpack so; without a sign of life they refuse."""
    load, write = Engine.load, Claim.write
    unpacking, renewed = threading.Event(), threading.Event()

    def slow(self, length, pieces):
        said = load(self, length, pieces)
        unpacking.set()
        if not renewed.wait(PATIENCE_S):
            raise Refused(500, "no sign of life")
        return said

    def noting(self, **columns):
        write(self, **columns)
        if unpacking.is_set():
            renewed.set()

    monkeypatch.setattr(Engine, "load", slow)
    monkeypatch.setattr(Claim, "write", noting)
    monkeypatch.setattr(pulse, "RENEW_S", 0.05)
