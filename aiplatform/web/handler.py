"""Django's side of the web server: each request in one of a few threads, whose database connections stay open.

Django's own handler makes a thread, and with it a database connection, for every request, and changes threads at each
middleware. All of ours are synchronous, so one change of threads is enough. Streams are sent by the event loop: a long
download holds none of the threads.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http.response import HttpResponseBase, JsonResponse
from django.urls import set_script_prefix
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.sign_in.asgi import in_callers_language
from aiplatform.lib.problems import problem
from aiplatform.web import bodies
from aiplatform.web.fairness import RETRY_AFTER_S, TooBusy, Turns

THREADS = 8
"""Requests that one process works on at once; more wait their turn. A thread holds one database connection."""

SWITCH_INTERVAL_S = 0.0005
"""How long a thread that computes keeps the interpreter while the event loop waits for it; Python's own 5 ms add up
to seconds for a body of many pieces."""


class Handler(ASGIHandler):
    """The ASGI application of pages and API."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = Turns()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the chain of middleware as plain calls."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await bodies.read(scope, receive, self._in_thread)
        except RequestAborted:
            return
        except bodies.BodyRefused as refused:
            with in_callers_language(scope):
                answer = refused.answer()
            await self.send_response(answer, send)
            return
        try:
            async with self._turns.turn(scope):
                response = await self._in_thread(self._answer, bodies.with_length(scope, body), body)
        except TooBusy:
            with in_callers_language(scope):
                response = _too_busy()
        finally:
            body.close()
        if not response.streaming:
            await self.send_response(response, send)
            return
        try:
            await self._stream(response, receive, send)
        finally:
            await self._in_thread(response.close)

    async def _in_thread(self, act: Any, *args: Any) -> Any:
        return await sync_to_async(act, thread_sensitive=False, executor=self._threads)(*args)

    def _answer(self, scope: Any, body: Any) -> HttpResponseBase:
        """Work on a request from its first to its last middleware; what is no stream is closed already."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=type(self), scope=scope)  # drops a connection that broke meanwhile
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = type(self)  # names the sender of the signal at its end
        for name in ("user", "_cached_user"):  # of a token, and of a session; neither looked up here
            user: Any = None if request is None else vars(request).get(name)
            if issubclass(type(user), User):  # isinstance would load a lazy user
                self._turns.remember(scope, user.pk)
        if not response.streaming:
            response.close()
        ended: HttpResponseBase = response
        return ended

    async def _stream(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Send a stream to its end, or until the caller hangs up."""
        sending = asyncio.create_task(self.send_response(response, send))
        gone = asyncio.create_task(_hung_up(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)


def _too_busy() -> JsonResponse:
    sentence = _("Too many of your requests are in progress. Send fewer at a time, or try again in a moment.")
    answer = JsonResponse(problem(429, "too_busy", sentence), status=429, content_type="application/problem+json")
    answer["Retry-After"] = str(RETRY_AFTER_S)
    return answer


async def _hung_up(receive: Any) -> None:
    """Wait until the caller disconnects. With granian the result of `receive` is awaitable, but no coroutine."""
    await receive()
