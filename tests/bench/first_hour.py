"""From the printed link to a first prediction on one's own pictures: `python -m tests.bench.first_hour`.

A person who has read nothing: loose pictures, some of them annotated, a short training, a service, a picture tried.
Starts a platform on a throw-away folder and drives headless Chromium; counts clicks, strokes of the mouse in the
annotator, keys and refusals, and times every step. `--pictures FOLDER` takes JPEG files with Pascal VOC files of the
same names beside them (what a person would draw); without it, digits are drawn.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Locator, Page, expect, sync_playwright

from aiplatform.cli.demo import digits
from tests.browser.conftest import ARGS, CHROMIUM
from tests.journeys.up import Up, running

PATIENCE_MS = 120_000
Box = tuple[str, float, float, float, float]  # class, x, y, width, height in pixels


@dataclass
class Step:
    """What one step took."""

    name: str
    seconds: float = 0.0
    clicks: int = 0
    strokes: int = 0
    keys: int = 0


@dataclass
class Person:
    """Hands and eyes at one page; every act is counted."""

    page: Page
    steps: list[Step] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    _since: float = 0.0

    def begin(self, name: str) -> None:
        """Start the next step; the one before ends here."""
        self.end()
        self.steps.append(Step(name))
        self._since = time.monotonic()

    def end(self) -> None:
        if self.steps:
            self.steps[-1].seconds = time.monotonic() - self._since
        self.refusals += self.page.locator(".form-error:visible").all_inner_texts()

    def click(self, what: Locator) -> None:
        what.click()
        self.steps[-1].clicks += 1

    def choose(self, files: list[Path]) -> None:
        """Choose files in the dialog of the system, which a script cannot click through: one click."""
        self.page.set_input_files("input[type=file]", [str(path) for path in files])
        self.steps[-1].clicks += 1

    def write(self, where: Locator, text: str) -> None:
        where.fill(text)
        self.steps[-1].keys += len(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.steps[-1].keys += 1

    def draw(self, box: Box) -> None:
        """One stroke over a box, in pixels of the image."""
        _, x, y, width, height = box
        (left, top), (right, bottom) = (self._at(x, y), self._at(x + width, y + height))
        mouse = self.page.mouse
        mouse.move(left, top)
        mouse.down()
        mouse.move((left + right) / 2, (top + bottom) / 2)
        mouse.move(right, bottom)
        mouse.up()
        self.steps[-1].strokes += 1

    def _at(self, x: float, y: float) -> tuple[float, float]:
        across, down = self.page.evaluate(
            """([x, y]) => { const s = document.querySelector("[data-stage]").getBoundingClientRect();
            const p = annotator.desk.viewport.toScreen(x, y); return [s.left + p[0], s.top + p[1]]; }""",
            [x, y],
        )
        return across, down


def drawn_pictures(folder: Path, count: int) -> dict[Path, list[Box]]:
    """Pictures of handwritten digits, and the boxes a person would draw."""
    made = digits.draw({"": count}, classes=(0, 1), seed=5)
    home = digits.write(folder / "mine", made, annotated=False) / "images"
    return {home / drawing.name: list(drawing.boxes) for drawing in made}


def voc_pictures(folder: Path, count: int, only: set[str]) -> dict[Path, list[Box]]:
    """The first pictures of a folder with boxes by their Pascal VOC files, classes of `only` (empty: all)."""
    told = {path.stem: path for path in sorted(folder.rglob("*.xml"))}
    found: dict[Path, list[Box]] = {}
    for picture in sorted(folder.rglob("*.jpg")):
        if picture.stem not in told or len(found) == count:
            continue
        boxes: list[Box] = []
        for item in ElementTree.parse(told[picture.stem]).iter("object"):
            name = str(item.findtext("name"))
            x0, y0, x1, y1 = (float(str(item.findtext(f"bndbox/{k}"))) for k in ("xmin", "ymin", "xmax", "ymax"))
            if (not only or name in only) and x1 > x0 and y1 > y0:
                boxes.append((name, x0, y0, x1 - x0, y1 - y0))
        found[picture] = boxes
    return found


def walk(up: Up, person: Person, pictures: dict[Path, list[Box]], *, annotate: int, minutes: float) -> str:
    """The whole way; returns what the service said about the last picture."""
    page = person.page
    classes = sorted({box[0] for boxes in pictures.values() for box in boxes})
    named = {path.name: boxes for path, boxes in pictures.items()}

    person.begin("account")
    page.goto(up.wait(r"this one-time link creates one: (http://\S+)")[1])
    person.write(page.get_by_label("Username"), "vera")
    person.write(page.get_by_label("Password", exact=True), "tall green lamp 7")
    person.write(page.get_by_label("Repeat password"), "tall green lamp 7")
    person.click(page.get_by_role("button", name="Create account and sign in"))

    person.begin("pictures in")
    person.click(page.get_by_role("link", name="Create dataset").first)
    page.wait_for_load_state("networkidle")
    person.choose(list(pictures))
    page.get_by_text("The upload is complete.").wait_for()
    person.click(page.get_by_role("button", name=re.compile("^Create$")))
    person.click(page.get_by_role("button", name=re.compile("Import .* image")))
    page.locator(".gallery .tile").first.wait_for()

    person.begin("project")
    person.click(page.get_by_role("link", name=re.compile("^Annotate")).first)
    person.write(page.get_by_label("Classes"), ", ".join(classes))
    person.click(page.get_by_role("button", name="Create and annotate"))

    person.begin("annotating")
    page.locator("#annotator").wait_for()
    for _ in range(annotate):
        page.wait_for_selector("#annotator[data-open]:not([data-busy])")
        task = page.evaluate("annotator.desk.task.id")
        last = ""
        for box in named[page.evaluate("annotator.desk.task.name").split("/")[-1]]:
            if box[0] != last:
                person.press(str(classes.index(box[0]) + 1))
            person.press(*(() if last else ("r",)))
            person.draw(box)
            last = box[0]
        person.press("Control+Enter")
        for _tick in range(400):
            if page.evaluate("annotator.desk.task.id") != task:
                break
            page.wait_for_timeout(25)

    person.begin("a dataset of it")
    person.click(page.get_by_role("navigation", name="Breadcrumb").get_by_role("link").last)
    person.click(page.get_by_role("button", name=re.compile("^(Convert|Create dataset)")).first)
    person.click(page.locator("dialog[open]").get_by_role("button", name=re.compile("^(Convert|Make)")))
    person.click(page.get_by_role("link", name="Train on this dataset").first)

    person.begin("training")
    person.write(page.locator("[name=detect__budget_minutes]"), f"{minutes:g}")
    person.click(page.get_by_role("button", name="Start training"))
    page.wait_for_url(re.compile(r"/training/\d+/$"))
    over = page.locator("#job-head[data-job-state=succeeded], #job-head[data-job-state=failed]")
    expect(over).to_be_visible(timeout=(minutes * 60 + 240) * 1000)

    person.begin("service")
    person.click(page.get_by_role("link", name="Create endpoint").first)
    person.click(page.get_by_role("button", name="Start", exact=True))
    page.locator("input[type=file]").wait_for(state="attached")

    person.begin("prediction")
    person.choose([list(pictures)[-1]])
    said = page.get_by_text(re.compile(r"\d+ box"))
    expect(said.first).to_be_visible(timeout=PATIENCE_MS)
    person.end()
    return said.first.inner_text()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, help="a folder of JPEG and Pascal VOC files")
    parser.add_argument("--only", default="", help="classes to draw, separated by commas")
    parser.add_argument("--count", type=int, default=50, help="pictures to upload")
    parser.add_argument("--annotate", type=int, default=20, help="pictures to annotate")
    parser.add_argument("--minutes", type=float, default=2, help="budget of the training")
    parser.add_argument("--keep", type=Path, help="where to keep a picture of the last page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        only = {name for name in options.only.split(",") if name}
        pictures = (
            voc_pictures(options.pictures, options.count, only)
            if options.pictures
            else drawn_pictures(folder, options.count)
        )
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        page = chromium.new_page(viewport={"width": 1440, "height": 900}, locale="en")
        page.set_default_timeout(PATIENCE_MS)
        person = Person(page)
        try:
            with running(folder / "data") as up:
                said = walk(up, person, pictures, annotate=options.annotate, minutes=options.minutes)
        finally:
            if options.keep:
                page.screenshot(path=options.keep)
            chromium.close()
    for step in person.steps:
        acts = f"{step.clicks:3} clicks  {step.strokes:3} strokes  {step.keys:4} keys"
        print(f"{step.name:18} {step.seconds:7.1f} s  {acts}")
    clicks, strokes = sum(step.clicks for step in person.steps), sum(step.strokes for step in person.steps)
    print(f"first hour: {sum(step.seconds for step in person.steps):.0f} s, {clicks} clicks, {strokes} strokes, "
          f"{len(person.refusals)} refusals; the service says: {said}")  # fmt: skip
    for refusal in person.refusals:
        print(f"refused: {refusal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
