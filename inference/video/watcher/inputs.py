"""What a run is to watch, as its environment says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from inference.kit.models import model_json
from inference.kit.samples.run import Run
from inference.video.watcher.detect import Unfit
from inference.video.watcher.live import Live
from inference.video.watcher.source import SourceEnded
from inference.video.watcher.stream import StreamWatch
from inference.video.watcher.watch import Suspended, Watch

Unwatched = (Unfit, SourceEnded, model_json.BadModel)

__all__ = ["Suspended", "Unwatched", "create_watch"]


def create_watch(run: Run, env: Mapping[str, str] = os.environ) -> Watch:
    """Create the watch of the file AIP_VIDEO, or of the stream AIP_STREAM, which is served at AIP_PORT."""
    if "AIP_STREAM" not in env:
        return Watch(run, env["AIP_VIDEO"])
    live = None
    if port := env.get("AIP_PORT"):
        live = Live(env.get("AIP_HOST") or "127.0.0.1", int(port), env.get("AIP_SERVICE_KEY", ""))
    return StreamWatch(run, env["AIP_STREAM"], allowed=json.loads(env.get("AIP_STREAM_ALLOWED") or "[]"), live=live)
