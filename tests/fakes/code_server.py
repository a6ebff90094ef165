#!/usr/bin/env python3
"""A stand-in for code-server, as documented: options, `/healthz`, heartbeat, relative pages, a socket.

It refuses options that code-server does not have, and keeps a number that only this process knows.
"""

import argparse
import asyncio
import json
import os
import secrets
import time

from aiohttp import web

PAGE = "<!doctype html><title>code-server</title><h1>Code</h1><script src='./static/workbench.js'></script>"
MINE = secrets.token_hex(8)
beat = {"at": 0}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="code-server", allow_abbrev=False)
    for name in ("--auth", "--socket", "--socket-mode", "--bind-addr", "--user-data-dir", "--extensions-dir"):
        parser.add_argument(name)
    for name in ("--disable-telemetry", "--disable-update-check", "--ignore-last-opened"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("folder", nargs="?")
    return parser.parse_args()


@web.middleware
async def beating(request: web.Request, handler):
    if request.path != "/healthz":
        beat["at"] = int(time.time() * 1000)
    return await handler(request)


async def page(request: web.Request) -> web.Response:
    return web.Response(text=PAGE, content_type="text/html")


async def script(request: web.Request) -> web.Response:
    return web.Response(text="", content_type="text/javascript")


async def health(request: web.Request) -> web.Response:
    alive = time.time() * 1000 - beat["at"] < 60_000
    return web.json_response({"status": "alive" if alive else "expired", "lastHeartbeat": beat["at"]})


async def about(request: web.Request) -> web.Response:
    told = {
        "pid": os.getpid(),
        "mine": MINE,
        "folder": given.folder,
        "home": os.environ.get("HOME"),
        "auth": given.auth,
    }
    return web.json_response(told | {"prefix": request.headers.get("X-Forwarded-Prefix", "")})


async def talk(request: web.Request) -> web.WebSocketResponse:
    """Echo what carries something after its head, as the protocol of the editor has it."""
    made = web.WebSocketResponse()
    await made.prepare(request)
    async for message in made:
        if message.data[13:]:
            await made.send_bytes(message.data)
    return made


async def end(request: web.Request) -> web.Response:
    os._exit(1)


async def main() -> None:
    app = web.Application(middlewares=[beating])
    app.add_routes([
        web.get("/", page), web.get("/static/workbench.js", script), web.get("/healthz", health),
        web.get("/about", about), web.get("/stable", talk), web.post("/end", end),
    ])  # fmt: skip
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, given.socket).start()
    os.chmod(given.socket, int(given.socket_mode or "700", 8))
    print(json.dumps({"listening": given.socket}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    given = options()
    if given.auth != "none":
        raise SystemExit("this stand-in knows no passwords")
    asyncio.run(main())
