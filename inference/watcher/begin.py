"""What a run is to watch, as its environment says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from inference.evaluator.run import Run
from inference.server import model_json
from inference.watcher.detect import Unfit
from inference.watcher.live import Live
from inference.watcher.source import SourceEnded
from inference.watcher.stream import StreamWatch
from inference.watcher.watch import Suspended, Watch

Unwatched = (Unfit, SourceEnded, model_json.BadModel)

__all__ = ["Suspended", "Unwatched", "of"]


def of(run: Run, env: Mapping[str, str] = os.environ) -> Watch:
    """The watch of the file AIP_VIDEO, or of the stream AIP_STREAM, which is shown at AIP_PORT."""
    if "AIP_STREAM" not in env:
        return Watch(run, env["AIP_VIDEO"])
    live = None
    if port := env.get("AIP_PORT"):
        live = Live(env.get("AIP_HOST") or "127.0.0.1", int(port), env.get("AIP_SERVICE_KEY", ""))
    return StreamWatch(run, env["AIP_STREAM"], allowed=json.loads(env.get("AIP_STREAM_ALLOWED") or "[]"), live=live)
