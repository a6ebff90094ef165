"""Several models in one process: each folder below DIR is a service that answers at `/m/FOLDER/…`.

Whoever fills DIR moves whole folders into place and takes them away; this process looks every half second. A model is
loaded beside the event loop while the others answer. One that is taken away answers for some seconds more, because
callers' ways are remembered that long.

A folder holds service.json, {"env": {…}} with the variables that a server of its own would have, and `model/`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from inference.kit.model_io.refusals import NotReady, WrongKey
from inference.kit.models import composed, model_json
from inference.kit.models.statistics import Hours
from inference.serving.server import at_work
from inference.serving.server import settings as settings_of
from inference.serving.server.app import KEY_HEADER, Server, refused
from inference.serving.server.service import Service

log = logging.getLogger("inference.serving.server")
NAME = re.compile(r"[0-9]{1,18}-[0-9]{1,18}\Z")  # service and version
ABOUT, MODEL, FAILED = "service.json", "model", "failed.json"
PREFIX = "/m/"
LOOK_S = 0.5
DRAINING_S = 10.0
MAX_DESCRIPTION_BYTES = 64 << 10  # bytes of a service.json
MAX_SENTENCE = 500
MAX_COUNTED = 1000  # services whose counts are remembered after they left
TAKEN = ("AIP_SERVE_", "AIP_MODEL_NAME", "AIP_MODEL_ALSO", "AIP_MODEL_VERSION")  # what service.json may say


@dataclass(frozen=True)
class HostedModel:
    """A model that answers: which state of its folder it was loaded from, its service and its routes."""

    made: int
    service: Service
    app: ASGIApp
    slot: at_work.Slot


class Host:
    """The services of one process; everything but loading happens in the event loop.

    Args:
        folder: DIR.
        env: variables that hold for all; AIP_OUTPUT_DIR is where counts and marks are left.
    """

    def __init__(self, folder: Path, env: Mapping[str, str] = os.environ) -> None:
        self.folder, self.env = folder, env
        self.key = env.get("AIP_SERVICE_KEY", "")
        self.outputs = Path(env["AIP_OUTPUT_DIR"]) if env.get("AIP_OUTPUT_DIR") else None
        self.here: dict[str, HostedModel] = {}
        self.failed: dict[str, tuple[int, str]] = {}  # which state of the folder, and why
        self._hours: dict[str, Hours] = {}
        self._slots = at_work.Slots(self.outputs / at_work.FILE if self.outputs else None)
        self._gone: dict[str, float] = {}  # since when the folders of models that still answer are missing
        self._draining: set[asyncio.Task[None]] = set()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="loader")
        # of all services: more threads of one interpreter only hinder each other
        self._decoders = ThreadPoolExecutor(settings_of.Settings.decode_threads, thread_name_prefix="decode")
        self._own = Starlette(
            routes=[Route("/v2/health/live", self._alive), Route("/v2/health/ready", self._alive)], lifespan=self._life
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to its service."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._own(scope, receive, send)
            return
        name, _slash, rest = scope["path"].removeprefix(PREFIX).partition("/")
        model = self.here.get(name)
        if model is None:
            await self._missing(name, Request(scope))(scope, receive, send)
            return
        path = f"/{rest}"
        await model.app({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    def _missing(self, name: str, request: Request) -> ASGIApp:
        sent = request.headers.get(KEY_HEADER, "").encode()
        if self.key and not hmac.compare_digest(sent, self.key.encode()):
            return refused("", WrongKey("Call this service through the platform."))
        why = self.failed.get(name, (0, "The model is not loaded yet."))[1]
        return refused("", NotReady(why, retry_after=1))

    async def _alive(self, request: Request) -> JSONResponse:
        return JSONResponse({"ready": True, "models": sorted(self.here)})

    @asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        sync_task = asyncio.create_task(self._keep_synced(), name="look")
        try:
            yield
        finally:
            sync_task.cancel()
            await asyncio.gather(sync_task, return_exceptions=True)
            for task in self._draining:
                task.cancel()
            await asyncio.gather(*self._draining, return_exceptions=True)
            await asyncio.gather(*(model.service.stop() for model in self.here.values()))
            for pool in (self._loader, self._decoders):
                pool.shutdown(wait=False, cancel_futures=True)

    async def _keep_synced(self) -> None:
        while True:
            try:
                await self.sync_models()
            except Exception:
                log.exception("the folder of models could not be read")
            await asyncio.sleep(LOOK_S)

    async def sync_models(self) -> None:
        """Load new models, unload removed ones."""
        loop = asyncio.get_running_loop()
        listed = await loop.run_in_executor(self._loader, self._list_folders)
        await self._end_removed(listed)
        forgotten = [name for name in self.failed if name not in listed]
        for name in forgotten:
            del self.failed[name]
        for name, made in listed.items():
            if name in self.here and self.here[name].made == made:
                continue
            if name in self.failed and self.failed[name][0] == made:
                continue
            await self._load_model(name, made)
            forgotten.append(name)
        if forgotten:
            await loop.run_in_executor(self._loader, self._tell_failed)

    def _list_folders(self) -> dict[str, int]:
        """Return folder → its modification time in nanoseconds."""
        folders = {}
        for entry in os.scandir(self.folder):
            if NAME.match(entry.name):
                with contextlib.suppress(OSError):  # it goes at this moment
                    folders[entry.name] = (Path(entry.path) / ABOUT).stat(follow_symlinks=False).st_mtime_ns
        return dict(sorted(folders.items()))

    async def _load_model(self, name: str, made: int) -> None:
        """Load a model outside of the event loop, then serve it; a broken model affects no other."""
        began = time.perf_counter()
        try:
            slot = self._slots.acquire(name)
        except at_work.NoSlot as exc:
            self.failed[name] = (made, str(exc))
            return
        try:
            settings, spec, engine = await asyncio.get_running_loop().run_in_executor(
                self._loader, self._read_and_load, name, slot
            )
        except Exception as exc:  # noqa: BLE001  ONNX Runtime's own exception types are not public
            slot.free()
            self.failed[name] = (made, f"The model cannot be loaded: {exc}"[:MAX_SENTENCE])
            log.error("service=%s %s", name, self.failed[name][1])
            return
        service = Service(settings, spec, at_work.Marked(engine, slot), self._decoders)
        service.hours = self._counts(name, service.hours)
        service.start()
        before = self.here.pop(name, None)
        self.here[name] = HostedModel(made, service, Server(service).app(), slot)
        self.failed.pop(name, None)
        if before is not None:
            self._drain(before)
        log.info(
            "service=%s model=%s version=%s task=%s provider=%s loaded in %.2f s, %d in this process", name,
            settings.model_name, settings.model_version, spec.task, engine.provider, time.perf_counter() - began,
            len(self.here),
        )  # fmt: skip

    def _counts(self, name: str, new: Hours) -> Hours:
        """Return the counts of a service in this process from before it was reloaded."""
        if len(self._hours) > MAX_COUNTED:
            self._hours = {key: hours for key, hours in self._hours.items() if key in self.here}
        return self._hours.setdefault(name, new)

    def _read_and_load(self, name: str, slot: at_work.Slot) -> tuple[settings_of.Settings, Any, Any]:
        """Read a folder and load its model; in a thread.

        Raises:
            Exception: a file is missing or wrong.
        """
        home = self.folder / name
        with (home / ABOUT).open("rb") as file:
            variables = json.loads(file.read(MAX_DESCRIPTION_BYTES))["env"]
        env = {key: str(value) for key, value in variables.items() if key.startswith(TAKEN)}
        env |= {
            "AIP_MODEL_DIR": str(home / MODEL),
            "AIP_SERVICE_KEY": self.key,
            "OMP_NUM_THREADS": self.env.get("OMP_NUM_THREADS", ""),
        }
        if self.outputs is not None:
            left_in = self.outputs / name
            left_in.mkdir(exist_ok=True)
            env["AIP_OUTPUT_DIR"] = str(left_in)
        settings = settings_of.from_env(env)
        with slot.mark(at_work.LOADS):
            spec = model_json.load(settings.model_dir)
            engine = composed.load(settings.model_dir, spec, threads=settings.threads)
            engine.warm_up()
        return settings, spec, engine

    def _tell_failed(self) -> None:
        """Leave word of those that cannot be loaded, for the platform."""
        if self.outputs is None:
            return
        target = self.outputs / FAILED
        new = target.with_suffix(".new")
        new.write_text(json.dumps({name: why for name, (_made, why) in self.failed.items()}))
        new.replace(target)

    async def _end_removed(self, listed: Mapping[str, int]) -> None:
        """Unload models some seconds after their folders were removed."""
        moment = time.monotonic()
        for name in [name for name in self._gone if name in listed]:
            del self._gone[name]
        for name in [name for name in self.here if name not in listed]:
            if moment - self._gone.setdefault(name, moment) > DRAINING_S:
                del self._gone[name]
                await _end(self.here.pop(name))
                log.info("service=%s left, %d in this process", name, len(self.here))

    def _drain(self, model: HostedModel) -> None:
        """End a replaced model after its pending requests had their time."""

        async def later() -> None:
            try:
                await asyncio.sleep(DRAINING_S)
            finally:
                await _end(model)

        task = asyncio.create_task(later())
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    def stuck(self) -> str:
        """Return the name of a model with a run that takes too long; "" if there is none. For any thread."""
        for name, model in list(self.here.items()):
            since = model.service.batcher.running_since
            if since is not None and time.monotonic() - since > model.service.settings.stall_s:
                return name
        return ""


async def _end(model: HostedModel) -> None:
    await model.service.stop()
    model.slot.free()
