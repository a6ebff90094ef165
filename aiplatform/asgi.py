"""The ASGI application: raw ASGI for uploads and served models, Channels for sockets, Django for the rest."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any, cast

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "aiplatform.settings")
django.setup(set_prefix=False)

# These import models, so Django must be set up first.
from channels.routing import URLRouter  # noqa: E402 - after Django is set up
from channels.sessions import CookieMiddleware, SessionMiddleware  # noqa: E402 - after Django is set up
from django.urls import re_path  # noqa: E402 - after Django is set up

from aiplatform.web.handler import Handler  # noqa: E402 - after Django is set up
from aiplatform.web.sockets import Closing  # noqa: E402 - after Django is set up
from datasets.transfer import tus  # noqa: E402 - after Django is set up
from inference.serving import proxy  # noqa: E402 - after Django is set up
from inference.video import proxy as video_proxy  # noqa: E402 - after Django is set up
from workers.jobs.output.sockets import websocket_urlpatterns  # noqa: E402 - after Django is set up

django_app = Handler()

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

App = Callable[[Scope, Receive, Send], Awaitable[None]]
#: Beginnings of paths that never reach Django, and who serves them. tests/matrix asks each as every kind of person.
RAW: dict[str, App] = {
    "/uploads/tus": tus.application,
    "/serve/": proxy.application,
    "/watch/": video_proxy.application,
}


async def _no_such_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a handshake at an address where nothing listens."""
    await receive()
    await send({"type": "websocket.close"})


sockets = CookieMiddleware(
    SessionMiddleware(URLRouter([*websocket_urlpatterns, re_path(r"", cast("Any", _no_such_socket))]))
)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass a connection to the application that serves it."""
    if scope["type"] == "websocket":
        connection = Closing(receive, send)
        await sockets(scope, connection.receive, connection.send)
    elif scope["type"] == "lifespan":
        await _lifespan(receive, send)
    else:
        serve = next((app for beginning, app in RAW.items() if scope["path"].startswith(beginning)), django_app)
        await serve(scope, receive, send)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
