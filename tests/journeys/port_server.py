"""A program as somebody runs it in a job: a page that tries what it can against the platform, and a socket."""

import asyncio
import json
import os
import sys

from aiohttp import web

PAGE = """<!doctype html><title>inside</title><h1>inside the job</h1><pre id="found"></pre><script>
const platform = "%(platform)s", found = {};
async function attempt(name, act) {
  try { found[name] = await act(); } catch (error) { found[name] = "refused: " + error.name; }
}
const read = async (path) => {
  const answer = await fetch(platform + path, {credentials: "include"});
  return (await answer.text()).slice(0, 200);
};
(async () => {
  found.cookies = document.cookie;
  found.opener = String(window.opener);
  await attempt("read", () => read("/api/v1/me/"));
  await attempt("page", () => read("/account/settings/"));
  await attempt("act", async () => {
    const body = new URLSearchParams({csrfmiddlewaretoken: "x".repeat(64)});
    const url = platform + "/jobs/%(job)s/do/stop/";
    await fetch(url, {method: "POST", mode: "no-cors", credentials: "include", body}); return "sent";
  });
  await attempt("socket", () => new Promise((resolve) => {
    const socket = new WebSocket(platform.replace("http", "ws") + "/ws/jobs/%(job)s/");
    socket.onmessage = () => resolve("heard");
    socket.onerror = socket.onclose = () => resolve("refused");
  }));
  await attempt("worker", async () => {
    await navigator.serviceWorker.register("worker.js", {scope: "/"});
    return "registered";
  });
  await attempt("own", () => new Promise((resolve, reject) => {
    const socket = new WebSocket(location.href.replace("http", "ws") + "ws");
    socket.onopen = () => socket.send("hello");
    socket.onmessage = (event) => resolve(event.data);
    socket.onerror = reject;
  }));
  document.getElementById("found").textContent = JSON.stringify(found);
})();
</script>"""


async def page(request: web.Request) -> web.Response:
    text = PAGE % {"platform": sys.argv[2], "job": os.environ["AIP_JOB_ID"]}
    heard = {name: value for name, value in request.headers.items() if name.lower() in {"cookie", "authorization"}}
    print("heard", json.dumps(heard), flush=True)
    return web.Response(text=text, content_type="text/html", headers={"Set-Cookie": "sessionid=tossed; Path=/"})


async def worker(request: web.Request) -> web.Response:
    return web.Response(text="", content_type="text/javascript", headers={"Service-Worker-Allowed": "/"})


async def socket(request: web.Request) -> web.WebSocketResponse:
    made = web.WebSocketResponse()
    await made.prepare(request)
    async for message in made:
        await made.send_str(f"echo {message.data}")
    return made


async def main() -> None:
    app = web.Application()
    app.add_routes([web.get("/", page), web.get("/worker.js", worker), web.get("/ws", socket)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(sys.argv[1])).start()
    print("listening", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
