"""The smallest application a web server runs, for tests of the server itself. It closes its sockets at once: 4404."""

import asyncio

from aiplatform.web.sockets import Closing


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        return
    if scope["type"] == "websocket":
        await _close_while_waiting(Closing(receive, send))
        return
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _close_while_waiting(connection):
    await connection.receive()
    await connection.send({"type": "websocket.accept"})
    waiting = asyncio.create_task(connection.receive())
    await asyncio.sleep(0.1)  # pause: the other end waits by then, or will find it closed
    await connection.send({"type": "websocket.close", "code": 4404})
    assert (await waiting)["type"] == "websocket.disconnect"
