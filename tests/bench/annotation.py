# ruff: noqa: E402 - Django is set up before models are imported
"""How the annotator feels and how fast a set is converted: python -m tests.bench.annotation [polygons …]

Opens, pans, zooms and drags in headless Chromium (software rendering) with 2,000 and 10,000 polygons on
one image, then converts 100,000 polygons to COCO (other numbers: `polygons`, `--exported`). Times are of frames
as the page sees them: between two animation frames while a real mouse moves.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

from tests import migrated
from tests.running import free_port

os.environ["AIP_TEST_ROOT"] = tempfile.mkdtemp(prefix="aip-bench-")
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from django.test import Client

from annotation.models import ImageTask, Shape
from annotation.services import exports
from datasets.shapes import geometry
from tests.browser.conftest import ARGS, CHROMIUM
from tests.factories import annotation as make
from tests.factories import datasets as data
from tests.factories import people

WIDTH, HEIGHT = 2400, 1600
REFERENCES = {  # measured with the same scene elsewhere
    "pan frame": "Annotorious 128 ms, Konva 65 ms; target 50 ms",
    "drag step": "Annotorious 449 ms, Konva 40 ms; target 40 ms",
    "open": "target 1,000 ms at 5,000 polygons",
    "export": "Label Studio 61 s; target 10 s",
}


def polygon(rng: random.Random, width: int, height: int) -> list[float]:
    """A wobbly outline of 8 to 24 points, 10 to 40 pixels in radius."""
    radius, count = rng.uniform(10, 40), rng.randint(8, 24)
    cx, cy = rng.uniform(41, width - 41), rng.uniform(41, height - 41)
    ring: list[float] = []
    for n in range(count):
        angle, r = 2 * math.pi * n / count, radius * rng.uniform(0.7, 1.0)
        ring += [round(cx + r * math.cos(angle), 2), round(cy + r * math.sin(angle), 2)]
    return ring


def shape(task: ImageTask, label: int, ring: list[float], by) -> Shape:
    x, y, width, height = geometry.extents([ring])
    return Shape(
        task=task, uuid=uuid.uuid4(), label_id=label, kind="polygon", rings=[ring], created_by=by, updated_by=by,
        x=x, y=y, width=width, height=height, area=geometry.area([ring]),
    )  # fmt: skip


def fill(task: ImageTask, labels: list[int], count: int, by, rng: random.Random) -> None:
    rows = [shape(task, rng.choice(labels), polygon(rng, WIDTH, HEIGHT), by) for _ in range(count)]
    Shape.objects.bulk_create(rows, batch_size=2_000)
    ImageTask.objects.filter(pk=task.pk).update(shape_count=count, rev=count, state="in_progress")


def serve() -> str:
    import uvicorn

    from aiplatform.asgi import application

    port = free_port()
    server = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=port, log_level="error", lifespan="off"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://127.0.0.1:{port}"


WATCH = """() => { const w = globalThis.watched = { frames: [], on: true }; let last = 0;
  const step = (now) => { if (last) w.frames.push(now - last); last = now; if (w.on) requestAnimationFrame(step); };
  requestAnimationFrame(step); }"""
STOP = "() => { watched.on = false; return watched.frames.slice(2); }"
SETTLE = """async () => { const d = annotator.desk; const began = performance.now();
  while (!d.renderer.settled && performance.now() - began < 8000) await new Promise((go) => setTimeout(go, 16)); }"""


def frames(page, act) -> dict[str, float]:
    """Median and 95th percentile of frame times while `act` moves the mouse."""
    page.evaluate(WATCH)
    act()
    found = sorted(page.evaluate(STOP))
    return {"median": round(statistics.median(found), 1), "p95": round(found[int(0.95 * (len(found) - 1))], 1)}


def feel(page, url: str, count: int) -> dict[str, object]:
    """Open, pan, zoom, drag a corner and a whole polygon."""
    page.goto("about:blank")
    page.goto(url)
    page.wait_for_selector("#annotator[data-open]:not([data-busy])")
    page.evaluate(SETTLE)
    opened = page.evaluate("performance.now()")
    assert page.evaluate("annotator.desk.scene.shapes.size") == count
    box = page.locator("[data-stage]").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse = page.mouse

    def pan() -> None:
        mouse.move(x, y)
        mouse.down(button="middle")
        for n in range(120):
            mouse.move(x + 150 * math.sin(n / 12), y + 90 * math.cos(n / 12))
        mouse.up(button="middle")

    def zoom() -> None:
        for n in range(60):
            mouse.wheel(0, -60 if n < 30 else 60)

    found: dict[str, object] = {"polygons": count, "open_ms": round(opened), "pan": frames(page, pan)}
    page.evaluate(SETTLE)
    found["zoom"] = frames(page, zoom)
    page.evaluate("() => { annotator.desk.viewport.fit(); annotator.desk.viewMoved(); }")
    page.evaluate(SETTLE)
    corner = page.evaluate(
        """() => { const d = annotator.desk; const near = (s) => Math.hypot(s.rings[0][0] - 1200, s.rings[0][1] - 800);
        const s = [...d.scene.shapes.values()].sort((a, b) => near(a) - near(b))[0]; d.objects.pick(s.id, false);
        const stage = document.querySelector("[data-stage]").getBoundingClientRect();
        const at = (x, y) => { const p = d.viewport.toScreen(x, y); return [stage.left + p[0], stage.top + p[1]]; };
        return at(s.rings[0][0], s.rings[0][1]); }"""
    )

    def drag() -> None:
        mouse.move(*corner)
        mouse.down()
        for n in range(100):
            mouse.move(corner[0] + 6 * math.sin(n / 9), corner[1] + n / 25)
        mouse.up()

    found["drag"] = frames(page, drag)
    page.evaluate(SETTLE)
    work = page.evaluate("annotator.desk.renderer.frames.slice(-100)")
    found["own_work_ms"] = round(statistics.median(work), 1)
    return found


def browse(counts: list[int], task_urls: dict[int, str], site: str, person) -> list[dict[str, object]]:
    from playwright.sync_api import sync_playwright

    client = Client()
    client.force_login(person)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        context = browser.new_context(base_url=site, viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": site}])
        page = context.new_page()
        page.set_default_timeout(120_000)  # a bound for what hangs, on slow machines too
        page.goto(task_urls[counts[0]])  # warm: modules in the cache, as for anybody's second image
        page.wait_for_selector("#annotator[data-open]:not([data-busy])")
        found = [feel(page, task_urls[count], count) for count in counts]
        browser.close()
    return found


def export(person, count: int, rng: random.Random) -> dict[str, object]:
    """Convert `count` polygons on a thousand images, from rows to the named file."""
    made = make.annotation_set(person, images=1000, of=make.project(person, "Export"), name="export")
    made.source.assets.update(width=WIDTH, height=HEIGHT)
    label = made.labels.first().pk
    tasks = list(made.tasks.all())
    for begin in range(0, count, 5_000):
        size = range(begin, min(begin + 5_000, count))
        rows = [shape(tasks[n % 1000], label, polygon(rng, WIDTH, HEIGHT), person) for n in size]
        Shape.objects.bulk_create(rows, batch_size=1_000)
    for number, task in enumerate(tasks):  # images without objects that nobody has opened are not exported
        task.shape_count, task.state = len(range(number, count, 1000)), "in_progress"
    ImageTask.objects.bulk_update(tasks, ["shape_count", "state"])
    asked = exports.start(annotation_set=made, by=person, make_version=False)
    began, busy = time.perf_counter(), time.process_time()
    exports.convert(asked.pk)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    asked.refresh_from_db()
    assert (asked.state, asked.annotations) == ("success", count), asked.detail
    task = ImageTask.objects.select_related("asset").get(pk=tasks[0].pk)
    events = [make.put(task, label=label, rings=[polygon(rng, WIDTH, HEIGHT)]) for _ in range(200)]
    began = time.perf_counter()
    make.apply(task, *events, by=person)
    stored = time.perf_counter() - began
    return {
        "polygons": count, "seconds": round(seconds, 2), "cpu_seconds": round(busy, 2),
        "mib": round(asked.size_bytes / 2**20, 1), "store_200_edits_ms": round(1000 * stored),
    }  # fmt: skip


def main() -> None:
    """Print a table, and with --json one line of JSON after it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("polygons", nargs="*", type=int, default=[2_000, 10_000], help="on one image, for each page")
    parser.add_argument("--exported", type=int, default=100_000, help="polygons that are converted to COCO")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    counts: list[int] = options.polygons
    migrated.take(Path(settings.DATABASES["default"]["NAME"]))
    call_command("migrate", verbosity=0)
    rng = random.Random(1)
    person = people.user("bench")
    project = make.project(person, "Bench")
    urls = {}
    for count in counts:
        owned = data.dataset(person, f"scene{count}")
        version = data.version(owned, images=1, task="none")
        version.assets.update(width=WIDTH, height=HEIGHT)
        path = version.path / "images" / version.assets.get().path
        path.write_bytes(data.picture(WIDTH, HEIGHT, 120))
        labels = [{"supercategory": "thing", "name": f"class {n}"} for n in range(9)]
        made = make.sets.create(
            project=project, name=f"scene{count}", intro="Bench", source=version, by=person, labels=labels
        )
        task = made.tasks.get()
        fill(task, list(made.labels.values_list("pk", flat=True)), count, person, rng)
        urls[count] = f"/annotation/projects/{project.pk}/tasks/{task.pk}/"
    felt = browse(counts, urls, serve(), person) if CHROMIUM else []
    written = export(person, options.exported, rng)
    print(f"{'polygons':>9} {'open':>8} {'pan frame':>18} {'zoom frame':>18} {'drag step':>18} {'own work':>9}")
    for row in felt:
        pan, zoom, drag = row["pan"], row["zoom"], row["drag"]
        cells = [f"{found['median']:6.1f} / {found['p95']:6.1f} ms" for found in (pan, zoom, drag)]
        line = " ".join(f"{cell:>18}" for cell in cells)
        print(f"{row['polygons']:>9} {row['open_ms']:>5} ms {line} {row['own_work_ms']:>6} ms")
    took = f"{written['seconds']} s ({written['cpu_seconds']} s of CPU)"
    print(f"export of {written['polygons']:,} polygons: {took}, {written['mib']} MiB; ", end="")
    print(f"storing 200 edits: {written['store_200_edits_ms']} ms")
    for name, words in REFERENCES.items():
        print(f"  {name}: {words}")
    print(f"frame times: median / 95th percentile, {os.cpu_count()} cores, software rendering, 1440 × 900")
    if options.json:
        print(json.dumps({"annotator": felt, "export": written}))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the server's thread ends with us
