"""All kinds of places, by the code that rows hold."""

from __future__ import annotations

from inference.push.put import Put
from inference.push.way import Way

WAYS: dict[str, Way] = {way.code: way for way in (Put(),)}
