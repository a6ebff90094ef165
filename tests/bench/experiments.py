"""The table of runs and their comparison: `python -m tests.bench.experiments [--runs 1000] [--points N] [--long N]`.

Trainings with parameters and ten figures each, one of them a curve of `--points`; the first 20 have one of `--long`
points besides. The platform's own web server answers; a headless Chromium draws. Printed are, as medians: how long the
server takes to answer (wall, and CPU of its processes), and how long after asking for a page everything on it is drawn,
with the modules of the pages in the browser's cache as on anybody's second visit. CPU times stay firm on a loaded
machine; the others do not.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests import migrated
from tests.bench.web import Person, Web, serving
from tests.running import environment

COMPARED, FIGURES, ROUNDS = 20, 9, 7
RATES, SIZES = (0.001, 0.003, 0.01, 0.03, 0.1), (16, 32, 64)
NARROWED = "params.lr >= 0.003 and best(val/accuracy) > 0.6 and not archived"
#: When everything on a page is drawn; milliseconds since it was asked for, after the next frame.
DRAWN = """(enough) => new Promise((done) => {
  const over = () => setTimeout(() => done(performance.now()));
  const look = () => requestAnimationFrame(enough() ? over : look);
  look();
})"""
TABLE_DRAWN = "() => document.querySelectorAll('[data-rows] tr:not(.runs-gap)').length > 5"
CHARTS_DRAWN = """() => {
  const charts = [...document.querySelectorAll('.compare-chart')];
  const told = (chart) => chart.querySelector('.chart-note').textContent;
  return charts.length > 0 && charts.every((chart) => chart.querySelector('canvas') && /\\d/.test(told(chart)));
}"""


def main() -> None:
    """Make the runs, ask, draw, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--points", type=int, default=10_000, help="of a curve of each run")
    parser.add_argument("--long", type=int, default=100_000, help="of a curve of each compared run")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aip-bench-") as folder:
        root = Path(folder)
        os.environ.update(environment(root) | {"DJANGO_ALLOW_ASYNC_UNSAFE": "true"})

        import django

        django.setup()
        migrated.begin(root)
        began = time.monotonic()
        person, numbers = _prepare(asked.runs, asked.points, asked.long)
        print(f"{asked.runs:,} runs of {asked.points:,} points made in {time.monotonic() - began:.0f} s", flush=True)
        with serving(root, workers=2) as web:
            _measure(web, person, numbers[:COMPARED])


def _prepare(runs: int, points: int, long: int) -> tuple[Person, list[int]]:
    from django.test import Client

    from accounts.services import tokens
    from tests.factories import curves, people, training, work
    from training.experiments.models import Run
    from workers.core.models import VirtualCluster

    owner = people.user("bench", cluster=VirtualCluster.objects.get(name="default"))
    work.node(cores=4)
    data = training.version(owner, "digits", task="classification")
    for number in range(runs):
        params = {
            "lr": RATES[number % 5],
            "batch_size": SIZES[number % 3],
            "seed": number,
            "weight_decay": 1 / (number + 1),
        }
        name = f"run {number}"
        made = training.training(owner, data=data, name=name, state="succeeded", preset="classify", params=params)
        attempt = made.job.attempts.get()
        curves.report(attempt, "train/loss", ((step, 1 / (step + number + 1)) for step in range(points)))
        for figure in range(FIGURES):
            key = "val/accuracy" if figure == 0 else f"val/figure_{figure}"
            curves.report(attempt, key, [(points, 0.5 + (number * (figure + 7) % 500) / 1000)])
        if number < COMPARED:
            values = ((step, 1 / (1 + step * RATES[number % 5]) + (step * 7919 % 1000) / 1e4) for step in range(long))
            curves.report(attempt, "train/every_step", values)
    client = Client()
    client.force_login(owner)
    person = Person(client.cookies["sessionid"].value, tokens.issue(user=owner, name="bench")[1])
    return person, list(Run.objects.order_by("pk").values_list("pk", flat=True))


def _measure(web: Web, person: Person, chosen: list[int]) -> None:
    compared = urlencode({"run": chosen}, doseq=True)
    curve = f"/api/v1/training/comparison/curves/?{compared}&key=train/every_step"
    narrowed = urlencode({"filter": NARROWED, "sort": "-best(val/accuracy)"})
    routes = {
        "table, all runs": "/api/v1/runs/table/",
        "table, filtered and sorted": f"/api/v1/runs/table/?{narrowed}",
        "comparison, facts": f"/api/v1/training/comparison/?{compared}",
        "comparison, one curve": curve,
        "comparison, 5 % of it": f"{curve}&from=40000&to=45000",
    }
    for name, path in routes.items():
        wall, busy, size = _asked(web, person, path)
        print(f"  {name:<28} answered in {wall:.0f} ms, CPU {busy:.0f} ms, {size / 1024:.0f} KiB", flush=True)
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import ARGS, CHROMIUM

    site = f"http://127.0.0.1:{web.port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        context = browser.new_context(base_url=site, viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": "sessionid", "value": person.cookie, "url": site}])
        page = context.new_page()
        page.set_default_timeout(120_000)
        pages = {
            "table": ("/experiments/", TABLE_DRAWN),
            "filtered table": (f"/experiments/?{narrowed}", TABLE_DRAWN),
            "comparison": (f"/training/compare/?{compared}", CHARTS_DRAWN),
        }
        for name, (path, enough) in pages.items():
            taken = [_drawn(page, path, enough) for _round in range(ROUNDS)][1:]
            said = f"{statistics.median(taken):.0f} ms after it was asked for (slowest {max(taken):.0f})"
            print(f"  {name:<28} drawn {said}", flush=True)
        browser.close()


def _asked(web: Web, person: Person, path: str) -> tuple[float, float, int]:
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=120)
    headers = person.headers(by_token=True)
    size, walls, before = 0, [], 0.0
    for number in range(4 + ROUNDS):
        if number == 4:  # both web processes have answered
            before = web.cpu_s()
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        size = len(answer.read())
        assert answer.status == 200, f"{path}: {answer.status}"
        walls.append(1000 * (time.perf_counter() - began))
    return statistics.median(walls[4:]), 1000 * (web.cpu_s() - before) / ROUNDS, size


def _drawn(page: Any, path: str, enough: str) -> float:
    page.goto(path, wait_until="commit")
    taken: Callable[..., float] = page.evaluate
    return taken(f"({DRAWN})({enough})")


if __name__ == "__main__":
    main()
