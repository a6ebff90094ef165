"""`python -m inference.serving.server`: load the model and serve until a signal.

`--host DIR` serves several models.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn

from inference.kit.model_io.memory import keep_freed
from inference.kit.models import composed, model_json
from inference.serving.server import settings as settings_of
from inference.serving.server.app import Server
from inference.serving.server.host import Host
from inference.serving.server.service import Service

log = logging.getLogger("inference.serving.server")
UNUSABLE = os.EX_DATAERR  # exit code: the model cannot be loaded; the platform does not start the service again
_PASSING = ("memory", "alloc", "cuda", "cudnn", "device", "driver", "timed out")  # in ONNX Runtime's messages
STALLED = 70  # exit code: the model hangs; the platform starts the service again


def main(argv: Sequence[str] | None = None) -> int:
    """Serve; returns the exit code. What keeps a service from starting is printed as one line."""
    parser = argparse.ArgumentParser(prog="python -m inference.serving.server", description="Answer with a model.")
    parser.add_argument("--host", type=Path, metavar="DIR", help="answer with every model that is put into DIR")
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    keep_freed()
    return _several(options.host) if options.host else _one()


def _several(folder: Path) -> int:
    """Serve the models in a folder, also those added later."""
    try:
        settings = settings_of.from_env({**os.environ, "AIP_MODEL_DIR": str(folder)})
        host = Host(folder)
    except (ValueError, OSError) as exc:
        log.error("%s", exc)
        return 1
    threading.Thread(target=_watch_several, args=(host,), daemon=True, name="watchdog").start()
    log.info("folder=%s listening on %s:%d", folder, settings.host, settings.port)
    _listen(host, settings)
    return 0


def _one() -> int:
    """Serve one model."""
    started = time.perf_counter()
    try:
        settings = settings_of.from_env()
        spec = model_json.load(settings.model_dir)
        engine = composed.load(settings.model_dir, spec, threads=settings.threads)
    except (ValueError, model_json.BadModel) as exc:
        log.error("The model cannot be loaded: %s", exc)
        return UNUSABLE
    except Exception as exc:  # noqa: BLE001  ONNX Runtime's own exception types are not public
        log.error("The model cannot be loaded: %s", exc)
        return 1 if _is_transient(exc) else UNUSABLE
    engine.warm_up()
    service = Service(settings, spec, engine)
    threading.Thread(target=_watch, args=(service,), daemon=True, name="watchdog").start()
    log.info(
        "model=%s version=%s task=%s provider=%s loaded in %.2f s, listening on %s:%d",
        settings.model_name, settings.model_version, spec.task, engine.provider,
        time.perf_counter() - started, settings.host, settings.port,
    )  # fmt: skip
    _listen(Server(service).app(), settings)
    return 0


def _is_transient(exc: Exception) -> bool:
    """Return whether another start may succeed: memory or a device was missing, rather than a wrong model."""
    text = str(exc).lower()
    return isinstance(exc, OSError | MemoryError) or any(mark in text for mark in _PASSING)


def _listen(app: Any, settings: settings_of.Settings) -> None:
    """Answer until a signal ends it."""
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here asks who calls; the key does
        ws="none",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=64 * 1024,
    )


def _watch(service: Service) -> None:
    """End the process when one run of the model never returns, so that it is started again."""
    while True:
        time.sleep(1)
        since = service.batcher.running_since
        if since is not None and time.monotonic() - since > service.settings.stall_s:
            log.error("one inference takes longer than %.0f s; ending", service.settings.stall_s)
            _end_stalled()


def _watch_several(host: Host) -> None:
    """The same for a host, whose mark then says which model it was."""
    while True:
        time.sleep(1)
        if name := host.stuck():
            log.error("service=%s one inference takes too long; ending", name)
            _end_stalled()


def _end_stalled() -> None:
    logging.shutdown()
    os._exit(STALLED)


if __name__ == "__main__":
    sys.exit(main())
