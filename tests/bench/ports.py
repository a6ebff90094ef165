"""What the way to a port of a job costs: python -m tests.bench.ports [requests] [MiB].

A whole platform in a folder of its own, a server in a real job, one browser's worth of requests. "direct" is the same
server without the platform between, where the job shares this machine's loopback.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from tests.journeys.up import PASSWORD, Browser, call, first_admin, running, until
from tests.running import printed_in

SERVER = """#!/usr/bin/env python
import asyncio
from aiohttp import web
async def small(request): return web.Response(text="ok")
async def large(request):
    response = web.StreamResponse()
    await response.prepare(request)
    piece = bytes(1 << 20)
    for _ in range(int(request.query["mib"])): await response.write(piece)
    return response
async def sink(request):
    size = 0
    async for piece in request.content.iter_any(): size += len(piece)
    return web.Response(text=str(size))
async def main():
    app = web.Application()
    app.add_routes([web.get("/", small), web.get("/large", large), web.post("/", sink)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 40000).start()
    print("listening", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def measure(url: str, headers: dict[str, str], requests: int, mib: int) -> tuple[list[float], float, float]:
    """Milliseconds of each of `requests` small requests; MB/s down and up."""

    async def pieces():
        for _ in range(mib):
            yield bytes(1 << 20)

    times = []
    async with aiohttp.ClientSession(headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as client:
        for _ in range(requests):
            begun = time.perf_counter()
            async with client.get(url) as answer:
                await answer.read()
                assert answer.status == 200, answer.status
            times.append((time.perf_counter() - begun) * 1000)
        begun, size = time.perf_counter(), 0
        async with client.get(f"{url}large?mib={mib}") as answer:
            async for piece in answer.content.iter_any():
                size += len(piece)
        down = size / 1e6 / (time.perf_counter() - begun)
        begun = time.perf_counter()
        async with client.post(url, data=pieces()) as answer:
            assert int(await answer.text()) == mib << 20
        return times, down, (mib << 20) / 1e6 / (time.perf_counter() - begun)


async def admitted(url: str, session: dict[str, str]) -> dict[str, str]:
    """Turn a ticket into a cookie, as the browser does that its person signed in with."""
    async with aiohttp.ClientSession(cookies=session) as client, client.get(url, allow_redirects=False) as answer:
        return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


def main(requests: int = 300, mib: int = 200) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="aip-bench-") as folder,
        running(Path(folder) / "up") as up,
    ):
        token = first_admin(up)
        browser = Browser(up.url)
        browser.post("/login/", username="olga", password=PASSWORD)
        session = {cookie.name: cookie.value or "" for cookie in browser.cookies}
        job = call(up.url, token, "POST", "commands/", {"command": SERVER, "cpus": 0.5})[1]["id"]
        try:
            until(
                lambda: "listening" in printed_in(call(up.url, token, "GET", f"jobs/{job}/log/")[1]["text"]),
                90,
                "the server's start",
            )
            call(up.url, token, "POST", f"jobs/{job}/ports/", {"port": 40_000, "name": "bench"})
            opened = call(up.url, token, "POST", f"jobs/{job}/ports/bench/open/")[1]["url"]
            through = f"http://127.0.0.1:{up.ports_port}/jobs/{job}/bench/"
            direct = asyncio.run(measure("http://127.0.0.1:40000/", {}, requests, mib))
            passed = asyncio.run(measure(through, asyncio.run(admitted(opened, session)), requests, mib))
        finally:  # jobs outlive `up`
            call(up.url, token, "POST", f"jobs/{job}/stop/")
            until(lambda: call(up.url, token, "GET", f"jobs/{job}/")[1]["state"] == "stopped", 60, "the end of the job")
    for name, (times, down, back) in (("direct", direct), ("through", passed)):
        cuts = statistics.quantiles(times, n=20)
        print(f"{name:<8} p50 {cuts[9]:.1f} ms, p95 {cuts[18]:.1f} ms; down {down:.0f} MB/s, up {back:.0f} MB/s")
    print(f"added p50 {statistics.median(passed[0]) - statistics.median(direct[0]):.1f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
