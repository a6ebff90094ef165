"""WebSocket of a job page: state, log and metrics as they come."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path

from accounts.access.permissions import Action
from accounts.models import User
from accounts.sign_in.asgi import find_user, same_origin
from workers.core.models import Job
from workers.jobs.output import job_stream

SOCKETS_PER_PERSON = 100
"""Open sockets of one person in one web process."""
MAX_MESSAGE_BYTES = 64 * 1024

NOT_SIGNED_IN, NOT_FOUND, TOO_MANY, TOO_LARGE = 4401, 4404, 4429, 1009

_open: Counter[int] = Counter()


class JobSocket(AsyncWebsocketConsumer):
    """`/ws/jobs/<id>/`: frames of `job_stream.JobStream` as JSON text. The browser sends nothing of meaning.

    A foreign page is refused with 403. Close codes: 4401 not signed in, 4404 no such job for this person
    (also when the right to see it goes away), 4429 too many sockets, 1009 message too large.
    """

    channel_layer_alias = "none"  # a socket of its own in the broker would cut viewers off when the broker is away

    async def connect(self) -> None:
        self.person = 0
        self.viewer: job_stream.Viewer | None = None
        self.sender: asyncio.Task[None] | None = None
        self.job_id: int = self.scope["url_route"]["kwargs"]["pk"]
        if not _own_page(self.scope):
            await self.close()
            return
        await self.accept()
        user = await database_sync_to_async(find_user)(self.scope)
        if user is None:
            await self.close(NOT_SIGNED_IN)
        elif not await self._may_watch(user):
            await self.close(NOT_FOUND)
        elif _open[user.pk] >= SOCKETS_PER_PERSON:
            await self.close(TOO_MANY)
        else:
            self.person = user.pk
            _open[user.pk] += 1
            self.viewer = job_stream.Viewer(_credential(self.scope), self._still_allowed)
            await job_stream.join(self.job_id, self.viewer)
            self.sender = asyncio.create_task(self._send_frames(self.viewer))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing to say: only the size is minded."""
        if len(text_data or bytes_data or b"") > MAX_MESSAGE_BYTES:
            await self.close(TOO_LARGE)

    async def disconnect(self, code: int) -> None:
        if self.sender:
            self.sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.sender
        if self.viewer:
            await job_stream.leave(self.job_id, self.viewer)
            _open[self.person] -= 1
            if not _open[self.person]:
                del _open[self.person]

    async def _send_frames(self, viewer: job_stream.Viewer) -> None:
        refused = asyncio.create_task(viewer.refused.wait())
        frame: asyncio.Task[str] | None = None
        try:
            while not refused.done():
                frame = asyncio.create_task(viewer.frames.get())
                await asyncio.wait({frame, refused}, return_when=asyncio.FIRST_COMPLETED)
                if frame.done():
                    await self.send(text_data=frame.result())
            await self.close(NOT_FOUND)
        finally:
            refused.cancel()
            if frame:
                frame.cancel()

    async def _still_allowed(self) -> bool:
        user = await database_sync_to_async(find_user)(self.scope)
        return user is not None and await self._may_watch(user)

    @database_sync_to_async
    def _may_watch(self, user: User) -> bool:
        return user.can(Action.JOBS_VIEW) and Job.objects.visible_to(user).filter(pk=self.job_id).exists()


def _own_page(scope: dict[str, Any]) -> bool:
    """Whether a browser's own page asks, or a script with a token; a cookie needs an Origin of ours."""
    headers = dict(scope["headers"])
    if headers.get(b"authorization", b"").lower().startswith(b"bearer "):
        return True
    return b"origin" in headers and same_origin(scope)


def _credential(scope: dict[str, Any]) -> str:
    """Digest of what signs the caller in: sockets that share it are checked together."""
    headers = dict(scope["headers"])
    secret = headers.get(b"authorization", b"") + b"\n" + headers.get(b"cookie", b"")
    return hashlib.sha256(secret).hexdigest()


websocket_urlpatterns = [path("ws/jobs/<int:pk>/", JobSocket.as_asgi())]
