"""The routes: health, Open Inference Protocol v2, images, metrics."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from inference.kit.model_io.refusals import BadRequest, NotReady, Refusal, UnknownModel, WrongKey, error
from inference.kit.model_io.requested import Requested
from inference.kit.models import oip, tensors
from inference.serving.server import bodies, openapi
from inference.serving.server.service import Call, Service

log = logging.getLogger("inference.serving.server")

Endpoint = Callable[[Request], Awaitable[Response]]
KEY_HEADER = "x-aip-service-key"
VERSION = "1"
AT_ONCE = 256 * 1024  # bytes of a body that are read between two other requests


class Server:
    """One service's endpoints."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def app(self) -> Starlette:
        """The ASGI application."""
        model = "/v2/models/{model}"
        routes = [  # the busy ones first: they are tried in this order
            ("/predict", self.predict, "POST"),
            (f"{model}/infer", self.infer, "POST"),
            ("/v2/health/live", self.live, "GET"),
            ("/v2/health/ready", self.is_ready, "GET"),
            ("/v2", self.about_server, "GET"),
            ("/openapi.json", self.described, "GET"),
            ("/metrics", self.numbers, "GET"),
            ("/statistics", self.statistics, "GET"),
            ("/kept", self.pop_sample, "POST"),
            ("/v2/repository/index", self.index, "POST"),
            (f"{model}/versions/{{version}}/infer", self.infer, "POST"),
            (f"{model}/ready", self.is_ready, "GET"),
            (f"{model}/versions/{{version}}/ready", self.is_ready, "GET"),
            (model, self.about_model, "GET"),
            (f"{model}/versions/{{version}}", self.about_model, "GET"),
        ]
        return Starlette(
            routes=[Route(path, self._guarded(path, endpoint), methods=[verb]) for path, endpoint, verb in routes],
            lifespan=self._life,
        )

    @asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        self.service.start()
        yield
        await self.service.stop()

    def _guarded(self, path: str, endpoint: Endpoint) -> Endpoint:
        """Check key and model name, count, and turn refusals into answers."""
        metrics, settings = self.service.metrics, self.service.settings
        key = settings.key.encode()

        async def guarded(request: Request) -> Response:
            started = time.perf_counter()
            try:
                if key and not hmac.compare_digest(request.headers.get(KEY_HEADER, "").encode(), key):
                    raise WrongKey("Call this service through the platform.")
                if request.path_params:
                    self._check_model(request.path_params)
                response = await endpoint(request)
            except Refusal as refusal:
                response = refused(path, refusal)
            except Exception:
                log.exception("path=%s failed", path)
                response = _problem(path, 500, "internal", "The server failed on this request; its log says why.")
            metrics.count_response(path, response.status_code, time.perf_counter() - started)
            return response

        return guarded

    def _check_model(self, names: dict[str, Any]) -> None:
        settings = self.service.settings
        if names["model"] not in (settings.model_name, settings.model_also):
            raise UnknownModel(f"This service has the model {settings.model_name!r}, not {names['model']!r}.")
        if names.get("version", settings.model_version) != settings.model_version:
            raise UnknownModel(f"This service has version {settings.model_version} of the model.")

    async def live(self, request: Request) -> Response:
        return _json({"live": True})

    async def is_ready(self, request: Request) -> Response:
        if not self.service.ready:
            raise NotReady("The model is not loaded yet.", retry_after=1)
        return _json({"ready": True})

    async def about_server(self, request: Request) -> Response:
        return _json({"name": "aiplatform", "version": VERSION, "extensions": ["binary_tensor_data"]})

    async def about_model(self, request: Request) -> Response:
        service, settings = self.service, self.service.settings
        max_batch = service.batcher.max_batch
        name, version = settings.model_name, settings.model_version
        return _json(tensors.described(name, version, service.spec, service.engine, max_batch=max_batch))

    async def index(self, request: Request) -> Response:
        settings = self.service.settings
        entry = {"name": settings.model_name, "version": settings.model_version, "state": "READY", "reason": ""}
        return _json([entry])

    async def described(self, request: Request) -> Response:
        return _json(openapi.document(self.service))

    async def numbers(self, request: Request) -> Response:
        text = self.service.metrics.text(waiting=self.service.batcher.samples, ready=self.service.ready)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def statistics(self, request: Request) -> Response:
        return _json(self.service.hours.to_json())

    async def pop_sample(self, request: Request) -> Response:
        """Return and remove the oldest image that a rule selected: a JSON line with predictions, then its bytes."""
        sample = self.service.keeper.pop()
        if sample is None:
            return Response(status_code=204)
        head = json.dumps({"why": sample.why, "answers": sample.answers}).encode()
        return Response(head + b"\n" + sample.picture, media_type="application/octet-stream")

    async def predict(self, request: Request) -> Response:
        wanted = Requested.from_query(request.query_params)
        with self.service.on_its_way() as arrived:
            body = await bodies.read(request, limit=self.service.settings.max_body_bytes)
            image = await bodies.picture(request.headers, body)
            return _json(await self.service.predict(image, wanted, self._call(request), arrived))

    async def infer(self, request: Request) -> Response:
        with self.service.on_its_way() as arrived:
            body = await bodies.read(request, limit=self.service.settings.max_body_bytes)
            sent = await _parse(body, request.headers.get(oip.HEADER))
            payload, json_length = await self.service.infer(sent, self._call(request), arrived)
        if json_length is None:
            return Response(payload, media_type="application/json")
        headers = {"Inference-Header-Content-Length": str(json_length)}
        return Response(payload, media_type="application/octet-stream", headers=headers)

    def _call(self, request: Request) -> Call:
        allowed_s = self.service.settings.deadline_s
        deadline_ms = request.headers.get("x-deadline-ms", "")
        if deadline_ms:
            if not deadline_ms.isascii() or not deadline_ms.isdigit() or len(deadline_ms) > 9:
                raise BadRequest("X-Deadline-Ms must be a whole number of milliseconds.")
            allowed_s = min(allowed_s, int(deadline_ms) / 1000)
        return Call(time.monotonic() + allowed_s, request.is_disconnected)


async def _parse(body: bytes, json_length: str | None) -> oip.InferRequest:
    """Parse a request; a large one outside of the event loop, which serves others meanwhile."""
    if len(body) <= AT_ONCE:
        return oip.parse(body, json_length)
    return await asyncio.get_running_loop().run_in_executor(None, oip.parse, body, json_length)


def _json(value: object) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), media_type="application/json")


def refused(path: str, refusal: Refusal) -> Response:
    """The answer that says what a request was refused for."""
    response = _problem(path, refusal.status, refusal.code, refusal.message)
    if refusal.retry_after is not None:
        response.headers["Retry-After"] = str(refusal.retry_after)
    return response


def _problem(path: str, status: int, code: str, message: str) -> Response:
    """Return a problem of RFC 9457, extended by the field `error` that clients expect."""
    details = error(path.removeprefix("/"), status, code, message)
    body = {"type": "about:blank", "status": status, "code": code, "detail": message, "error": details}
    return Response(json.dumps(body), status_code=status, media_type="application/problem+json")
