"""How the pipeline editor feels with 20, 200 and 1,000 steps: python -m tests.bench.editor [steps …] [--json]

Opens, lays out, pans, drags, zooms and lists in headless Chromium (software rendering, 1440 × 900). Frame times are
those between two animation frames while the editor's own code moves the view or a step; zoom 1 shows a part of the
pipeline, "all" shows every step at once. The ratios say how much of it comes with the size, whatever the machine.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGS, CHROMIUM
from tests.browser.pipeline_page import ADDRESS, Drafts, long_spec, serve

SIZES = (20, 200, 1000)
FRAMES = 60
TARGETS = "targets: p95 ≤ 17 / 17 / 33 ms, open ≤ 1 s, layout ≤ 100 ms with 1,000 steps on an idle machine"

LOOP = """async ([what, all, count]) => {
  const frame = () => new Promise(requestAnimationFrame), { stage, graph } = editor, times = [];
  if (all) stage.fit(); else { stage.camera.zoom = 1; stage.camera.x = 40; stage.camera.y = 450; stage.look(); }
  const shown = [...graph.steps.keys()].filter((id) => stage.cards.has(id) && !stage.cards.get(id).element.hidden);
  const id = shown[Math.floor(shown.length / 2)], [x, y] = graph.places.get(id);
  for (let n = 0; n < 10; n++) await frame();
  let last = await frame();
  for (let n = 0; n < count; n++) {
    if (what === "pan") stage.pan(-12, n % 2 ? 3 : -3);
    else if (what === "zoom") stage.zoom(n % 20 < 10 ? 1.02 : 1 / 1.02);
    else editor.drag([[id, [x + n * 3, y + n * 2]]]);
    const now = await frame(); times.push(now - last); last = now;
  }
  if (what === "drag") { graph.close(); editor.undo(); }
  times.sort((a, b) => a - b);
  return [times[Math.floor(count / 2)], times[Math.floor(count * 0.95)]];
}"""
ONCE = """async (what) => {
  const frame = () => new Promise(requestAnimationFrame);
  await frame(); await frame();
  const began = performance.now();
  if (what === "layout") { const edits = await import("/static/pipelines/edits.js"); const from = performance.now();
    edits.arrange(editor.graph, editor.stage.sizes); return performance.now() - from; }
  if (what === "list") { editor.showList(true); await frame(); await frame(); }
  if (what === "canvas") { editor.showList(false); await frame(); await frame(); }
  if (what === "undo") { editor.graph.undo(); return performance.now() - began; }
  if (what === "spec") { const { write } = await import("/static/pipelines/spec.js"); const from = performance.now();
    JSON.stringify(write(editor.graph)); return performance.now() - from; }
  if (what === "problems") { const { problemsOf } = await import("/static/pipelines/problems.js");
    const from = performance.now(); problemsOf(editor.graph); return performance.now() - from; }
  return performance.now() - began;
}"""


def measured(browser: Any, count: int) -> dict[str, Any]:
    """Figures of one size, in milliseconds; of frames the median, the 95th percentile and the processor time."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(120_000)
    serve(page, Drafts(spec=long_spec(count)))
    page.goto(ADDRESS)
    page.wait_for_function("globalThis.opened")
    assert page.evaluate("editor.graph.steps.size") == count
    found: dict[str, Any] = {"open": page.evaluate("opened")}
    page.wait_for_timeout(500)  # pause: the checks after opening are no part of a frame
    found |= {what: page.evaluate(ONCE, what) for what in ("layout", "spec", "problems", "list", "canvas")}
    for what, whole in (("pan", False), ("drag", False), ("zoom", False), ("pan", True), ("drag", True)):
        before = spent()
        times = page.evaluate(LOOP, [what, whole, FRAMES])
        found[f"{what} all" if whole else what] = [*times, (spent() - before) / FRAMES * 1000]
    page.close()
    return found


def spent() -> float:
    """Processor seconds of all processes of the browser: what frames cost, however busy the machine is."""
    total = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def printed(count: int, found: dict[str, Any], first: dict[str, Any]) -> None:
    """One block a size, each figure with its ratio to that of the smallest."""
    print(f"{count} steps")
    for what, value in found.items():
        if isinstance(value, list):
            ratios = f"× {value[1] / first[what][1]:.1f}, × {value[2] / first[what][2]:.1f}"
            times = f"{value[0]:6.1f} / {value[1]:6.1f} ms, {value[2]:6.1f} CPU-ms"
            print(f"  {count:5d} {what:9} frame p50 / p95 {times}  {ratios}")
        else:
            print(f"  {count:5d} {what:9} {value:8.1f} ms   × {value / max(first[what], 0.1):.1f}")


def main(arguments: list[str]) -> int:
    sizes = [int(one) for one in arguments if one.isdigit()] or SIZES
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        measured(browser, min(sizes))  # the first page pays for the browser's start
        results = {count: measured(browser, count) for count in sizes}
        browser.close()
    if "--json" in arguments:
        print(json.dumps(results))
        return 0
    for count, found in results.items():
        printed(count, found, results[min(sizes)])
    print(TARGETS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
