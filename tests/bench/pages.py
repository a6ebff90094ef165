"""Main pages of the bench `web`: what each costs the server, the line and the browser.

CPU time and queries are measured in one process, through Django's whole chain of middleware, compression included;
requests, bytes on the line and first contentful paint in Chromium, on a line of 50 ms and 5 Mbit/s, against the web
server. CPU times are firm on a loaded machine; paint is not, so the load is printed beside it.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

DATASETS, MODELS, NOTIFICATIONS = 100, 500, 200
LATENCY_MS, DOWN_BYTES_PER_S = 50, 5_000_000 // 8
CPU_TARGET_MS, FIRST_TARGET_MS = 25, 200

#: page → address; {training} and the like are the ids of rows that `seed` made.
PAGES = {
    "overview": "/",
    "datasets": "/datasets/",
    "dataset": "/datasets/{dataset}/",
    "new dataset": "/datasets/new/",
    "annotation": "/annotation/",
    "annotator": "/annotation/projects/{project}/tasks/{task}/",
    "trainings": "/training/",
    "training": "/training/{training}/",
    "new training": "/training/new/",
    "presets": "/training/presets/",
    "compare": "/training/compare/?job={training}&job={other}",
    "experiments": "/experiments/",
    "studies": "/studies/",
    "commands": "/commands/",
    "new command": "/commands/new/",
    "environments": "/environments/",
    "templates": "/templates/",
    "YAML editor": "/expert/",
    "reports": "/reports/",
    "files": "/files/",
    "models": "/models/",
    "model": "/models/{model}/",
    "evaluations": "/evaluations/",
    "evaluation": "/evaluations/{evaluation}/",
    "new evaluation": "/evaluations/new/",
    "predictions": "/predictions/",
    "conversions": "/conversions/",
    "services": "/services/",
    "new service": "/services/new/",
    "videos": "/videos/",
    "edge": "/edge/",
    "push": "/push/",
    "pipelines": "/pipelines/",
    "pipeline": "/pipelines/{pipeline}/",
    "pipeline editor": "/pipelines/{pipeline}/edit/",
    "queue": "/queue/",
    "cluster": "/cluster/",
    "clusters": "/clusters/",
    "tasks": "/tasks/",
    "alarms": "/alarms/",
    "usage": "/usage/",
    "ports": "/ports/",
    "images": "/images/",
    "people": "/people/",
    "audit": "/people/audit/",
    "account": "/account/",
    "notifications": "/notifications/",
}

SHIFT = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value; })
    .observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 50);
})"""


@dataclass
class Figures:
    """What one page costs."""

    first_ms: float = 0.0  # CPU time of the first request in a process
    cpu_ms: float = 0.0  # p50
    queries: int = 0
    raw_bytes: int = 0  # of the page alone
    sent_bytes: int = 0  # of the page alone, compressed
    requests: int = 0  # of a browser with an empty cache
    line_bytes: int = 0  # of all of them, heads included
    paint_ms: float = 0.0  # first contentful paint
    shift: float = 0.0  # cumulative layout shift


def seed(owner: Any, users: list[Any], folder: Path) -> dict[str, str]:
    """Make rows for every page and return the addresses of the pages."""
    from accounts.models import Notification
    from aiplatform.lib.wording import verbatim
    from inference.registry.models import Model, ModelVersion
    from tests.factories import annotation, datasets, training
    from tests.factories import models as model_factory
    from tests.inference import judged
    from tests.pipelines import made

    for number in range(DATASETS):
        owned = datasets.dataset(users[number % len(users)], f"set{number}", visibility="public")
        datasets.version(owned, images=2)
    folder.mkdir(parents=True, exist_ok=True)
    model_factory.model_version(owner, folder, name="base", visibility="public")
    names = [f"model{number}" for number in range(MODELS)]
    Model.objects.bulk_create(
        Model(name=name, owner=users[number % len(users)], visibility="public") for number, name in enumerate(names)
    )
    copies = []
    for model in Model.objects.filter(name__in=names):
        copy = ModelVersion.objects.get(model__name="base")
        copy.pk, copy.model = None, model
        copies.append(copy)
    ModelVersion.objects.bulk_create(copies)
    Notification.objects.bulk_create(
        Notification(
            user=owner, kind="job_ended", key=f"bench{number}", url="/training/",
            title=verbatim(f"Training {number} ended"), text=verbatim("It succeeded."),
        )
        for number in range(NOTIFICATIONS)
    )  # fmt: skip
    data = datasets.version(datasets.dataset(owner, "streets", visibility="public"), images=12)
    first, second = (training.training(owner, name=name, state="running", data=data) for name in ("one", "two"))
    evaluation = judged.evaluation(owner, folder)
    task = annotation.first_task(owner)
    steps = {
        f"step{number}": made.command(**({"after": [f"step{number - 1}"]} if number else {})) for number in range(8)
    }
    pipeline = made.pipeline(owner, steps)
    ids = {
        "dataset": data.dataset_id, "training": first.pk, "other": second.pk,
        "model": Model.objects.get(name="base").pk, "evaluation": evaluation.pk, "pipeline": pipeline.pk,
        "project": task.set.project_id, "task": task.pk,
    }  # fmt: skip
    return {name: path.format(**ids) for name, path in PAGES.items()}


def on_server(cookie: str, pages: dict[str, str], times: int) -> dict[str, Figures]:
    """Measure each page in a process of its own, which is warmed up as the parent of web workers is."""
    code = "from tests.bench import pages; pages.serve_alone()"
    given = json.dumps({"cookie": cookie, "pages": pages, "times": times})
    done = subprocess.run([sys.executable, "-c", code], input=given, stdout=subprocess.PIPE, text=True, check=True)
    return {name: Figures(**figures) for name, figures in json.loads(done.stdout).items()}


def serve_alone() -> None:
    """The other end of `on_server`: reads cookie and pages, prints figures."""
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection
    from django.test import Client

    from aiplatform.web import warmup

    warmup.warm()
    client = Client(headers={"Accept-Encoding": "gzip, deflate, br"}, SERVER_NAME="localhost")
    plain = Client(SERVER_NAME="localhost")
    for one in (client, plain):
        one.handler.load_middleware()  # as the ASGI application does when it is imported
    given = json.load(sys.stdin)
    gc.collect()
    gc.freeze()  # as the parent of web workers does
    for one in (client, plain):
        one.cookies[settings.SESSION_COOKIE_NAME] = given["cookie"]

    def cpu_ms(path: str) -> float:
        began = time.process_time()
        client.get(path)
        return 1000 * (time.process_time() - began)

    first = {name: _in_a_fork(lambda path=path: cpu_ms(path)) for name, path in given["pages"].items()}
    figures = {}
    for name, path in given["pages"].items():
        plain.get(path)  # what is read once per process
        queries: list[str] = []
        with connection.execute_wrapper(lambda run, sql, *rest, seen=queries: (seen.append(sql), run(sql, *rest))[1]):
            answer = plain.get(path)
        if answer.status_code != 200:
            raise RuntimeError(f"{path} answered {answer.status_code}.")
        figures[name] = asdict(
            Figures(
                first_ms=first[name], cpu_ms=statistics.median(cpu_ms(path) for _ in range(given["times"])),
                queries=len(queries), raw_bytes=len(answer.content), sent_bytes=len(client.get(path).content),
            )
        )  # fmt: skip
    print(json.dumps(figures))


def _in_a_fork(measure: Callable[[], float]) -> float:
    """Return what a fork of this process measures; the process itself stays as it is."""
    receiving, sending = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(sending, str(measure()).encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as pipe:
        value = float(pipe.read())
    os.waitpid(pid, 0)
    return value


def in_browser(
    address: str, cookie: dict[str, str], pages: dict[str, str]
) -> Iterator[tuple[str, int, int, float, float]]:
    """Open each page in a browser with an empty cache: name, requests, bytes on the line, paint in ms, shift."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import ARGS, CHROMIUM

    if not CHROMIUM:
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        for name, path in pages.items():
            context = browser.new_context(base_url=address, viewport={"width": 1440, "height": 900})
            context.add_cookies([{**cookie, "url": address}])
            page = context.new_page()
            network = context.new_cdp_session(page)
            network.send("Network.enable")
            line = {"latency": LATENCY_MS, "downloadThroughput": DOWN_BYTES_PER_S, "uploadThroughput": DOWN_BYTES_PER_S}
            network.send("Network.emulateNetworkConditions", {"offline": False, **line})
            seen: list[str] = []
            sizes: list[float] = []
            network.on("Network.requestWillBeSent", lambda event, seen=seen: seen.append(event["request"]["url"]))
            network.on("Network.loadingFinished", lambda event, sizes=sizes: sizes.append(event["encodedDataLength"]))
            page.goto(path, wait_until="load", timeout=120_000)
            page.wait_for_timeout(700)  # what scripts request when they run
            paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
            shift = page.evaluate(SHIFT)
            if os.environ.get("AIP_BENCH_URLS"):
                print("\n".join(seen))
            yield name, len([url for url in seen if url.startswith("http")]), int(sum(sizes)), paint, shift
            context.close()
        browser.close()


def table(figures: dict[str, Figures]) -> str:
    """Figures as lines; a star behind a CPU time above its target."""
    lines = [
        f"{'page':16} {'first':>7} {'CPU p50':>9} {'queries':>7} {'kB':>7} {'sent kB':>8} {'requests':>8} "
        f"{'line kB':>8} {'paint':>8} {'shift':>6}"
    ]
    for name, it in figures.items():
        lines.append(
            f"{name:16} {it.first_ms:4.0f} ms{'*' if it.first_ms > FIRST_TARGET_MS else ' '}"
            f"{it.cpu_ms:6.1f} ms{'*' if it.cpu_ms > CPU_TARGET_MS else ' '} {it.queries:6} {it.raw_bytes / 1000:7.1f} "
            f"{it.sent_bytes / 1000:8.1f} {it.requests:8} {it.line_bytes / 1000:8.1f} {it.paint_ms:5.0f} ms "
            f"{it.shift:6.3f}"
        )
    return "\n".join(lines)
