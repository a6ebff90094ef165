"""Calls of the proxy of services, as an ASGI server makes them."""

from __future__ import annotations

import asyncio
import json

from accounts.services import tokens
from inference.serving import proxy


class Answer:
    def __init__(self, messages):
        self.status = messages[0]["status"]
        self.headers = {k.decode(): v.decode() for k, v in messages[0]["headers"]}
        self.body = b"".join(m.get("body", b"") for m in messages[1:])

    @property
    def json(self):
        return json.loads(self.body)


async def one_call(app, method, path, headers, body, leaves):
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in {"host": "site", **headers}.items()],
        "client": ["10.0.0.9", 1],
        "scheme": "http",
    }
    if body is not None:
        scope["headers"].append((b"content-length", str(len(body)).encode()))
    waiting = [{"type": "http.request", "body": body or b"", "more_body": False}]
    sent = []

    async def receive():
        if waiting:
            return waiting.pop()
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent


def call(method, path, *, user=None, headers=None, body=None, leaves=False, app=None):
    headers = dict(headers or {})
    if user is not None:
        headers["Authorization"] = f"Bearer {tokens.issue(user=user, name='t')[1]}"

    async def main():
        chosen = app or proxy.new()
        try:
            return await asyncio.wait_for(one_call(chosen, method, path, headers, body, leaves), 60)
        finally:
            await chosen.close()

    sent = asyncio.run(main())
    return Answer(sent) if sent else None
