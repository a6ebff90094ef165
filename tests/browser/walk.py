"""The main job as people click it: from a bare folder to a model in use, in three browsers.

`Walk` has one method per chapter; test_story.py walks them all and judges, screenshots.py keeps pictures.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from aiplatform.cli.demo import digits
from tests.browser.conftest import Watch
from tests.journeys.up import Up

PASSWORD = "seven green boats"
PATIENCE_MS = 60_000
TINY = {"steps": "45", "budget_minutes": "0", "batch_size": "4", "width": "96", "height": "64"}


def zipped(folder: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return target


class Walk:
    """Olga, Alice and Anna at a platform that was just started.

    Args:
        look: called as `look(page, name)` where a picture is worth keeping or a page worth judging.
        counts: images per split of the annotated data set.
        params: what to change in the training form, as typed.
    """

    def __init__(
        self, up: Up, chromium: Browser, folder: Path, *, look: Callable[[Page, str], object],
        counts: dict[str, int] | None = None, params: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.up, self.chromium, self.look = up, chromium, look
        self.params = params or TINY
        self.watches: list[Watch] = []
        self.contexts: list[Any] = []
        made = digits.draw(counts or {"train": 12, "val": 4, "test": 4}, classes=(0, 1, 2))
        plain = digits.draw({"": 3}, classes=(0, 1, 2), seed=11)
        self.truth = plain[0].boxes
        self.picture = digits.write(folder / "digits", made, annotated=True) / "images" / made[-1].name
        self.archive = zipped(folder / "digits", folder / "digits.zip")
        self.plain = zipped(digits.write(folder / "plain", plain, annotated=False), folder / "plain.zip")
        self.olga, self.alice, self.anna = (self.browser() for _ in range(3))

    def browser(self) -> Page:
        context = self.chromium.new_context(
            base_url=self.up.url, viewport={"width": 1440, "height": 900}, reduced_motion="reduce", locale="en",
            color_scheme="light",
        )  # fmt: skip
        self.contexts.append(context)
        page = context.new_page()
        watch = Watch(f"127.0.0.1:{self.up.port}")
        self.watches.append(watch)
        context.on("request", watch.request)
        page.on("console", watch.console)
        page.on("pageerror", watch.broke)
        page.set_default_timeout(PATIENCE_MS)
        return page

    def close(self) -> None:
        for context in self.contexts:
            context.close()

    def seen(self, page: Page, name: str) -> None:
        page.wait_for_load_state("networkidle")
        self.look(page, name)

    # --- 1 and 2. the first administrator makes people

    def people(self) -> None:
        page = self.olga
        page.goto(self.up.wait(r"this one-time link creates one: http://[^/]+(/welcome/\S+)")[1])
        page.get_by_label("Username").fill("olga")
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_label("Repeat password").fill(PASSWORD)
        page.get_by_role("button", name="Create account and sign in").click()
        expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        for own, name, role, cluster in (
            (self.alice, "alice", "User", True),
            (self.anna, "anna", "Annotator", False),
        ):
            page.goto("/people/new/")
            page.get_by_label("Username 1").fill(name)
            page.get_by_label("Display name 1").fill(name.title())
            page.get_by_label("Role 1").select_option(role)
            if cluster:  # an annotator starts no jobs, and its cell is shut
                page.get_by_label("Cluster 1").select_option("default")
            page.get_by_role("button", name="Create 1 user").click()
            self._enter(own, name, page.locator("#first-password-1").inner_text().strip())
        self.seen(page, "account-made")

    def _enter(self, page: Page, name: str, first: str) -> None:
        """Sign in with the password the administrator handed over, and choose one's own."""
        page.goto("/")
        page.get_by_label("Username").fill(name)
        page.get_by_label("Password", exact=True).fill(first)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("New password").fill(PASSWORD + name)
        page.get_by_role("button", name="Set password").click()
        page.wait_for_url(lambda url: "password" not in url)

    # --- 3. data comes in

    def bring_in(self, name: str, archive: Path) -> None:
        page = self.alice
        page.goto("/datasets/new/")
        page.get_by_label("Name").fill(name)
        page.set_input_files("[data-file]", str(archive))
        expect(page.get_by_text("The upload is complete.")).to_be_visible(timeout=PATIENCE_MS)
        page.get_by_role("button", name="Create", exact=True).click()
        take = page.get_by_role("button", name=re.compile("Import .* image|import the rest"))
        expect(take).to_be_visible(timeout=PATIENCE_MS)
        self.seen(page, "import-report")
        take.click()
        page.locator(".gallery .tile").first.wait_for()
        self.seen(page, "dataset")

    # --- 4. and 5. the annotator draws, the researcher converts

    def annotate(self) -> None:
        page = self.alice
        page.goto("/annotation/projects/new/")
        page.get_by_label("Name").fill("Digits")
        page.get_by_label("Description").fill("Boxes around handwritten digits")
        page.get_by_role("button", name="Create project").click()
        page.wait_for_url(re.compile(r"/projects/\d+/$"))
        project = page.url
        page.get_by_role("main").get_by_role("link", name="Add dataset").first.click()
        page.get_by_label("Name").first.fill("Digit boxes")
        page.get_by_label("Description").fill("Boxes around digits")
        page.get_by_label("Source").select_option(index=1)
        for row, name in enumerate(("0", "1")):
            page.locator(f"#id_labels-{row}-supercategory").fill("digit")
            page.locator(f"#id_labels-{row}-name").fill(name)
            page.locator(f"#id_labels-{row}-shape").select_option("bbox")
        page.get_by_role("button", name="Add another class").click()
        page.locator("#id_labels-2-supercategory").fill("digit")
        page.locator("#id_labels-2-name").fill("2")
        page.locator("#id_labels-2-shape").select_option("bbox")
        page.get_by_role("button", name="Add dataset").click()
        page.wait_for_url(re.compile(r"/datasets/\d+/$"))
        page.goto(project)
        page.get_by_role("button", name="Add members").click()
        dialog = page.locator("#add-members")
        people = dialog.get_by_role("combobox", name="Users")
        people.fill("anna")
        people.press("Enter")
        dialog.get_by_role("button", name="Add members").click()
        expect(page.get_by_role("button", name="Remove Anna from the project")).to_be_visible()

        self._draw(project)

        page.goto(project)
        page.get_by_role("button", name="Convert", exact=True).first.click()
        page.locator("dialog[open]").get_by_role("button", name="Convert").click()
        expect(page.locator("td", has_text="dataset version").first).to_be_visible(timeout=PATIENCE_MS)
        self.seen(page, "converted")

    def _draw(self, project: str) -> None:
        page = self.anna
        page.goto(project)
        page.get_by_role("link", name="Digit boxes").click()
        page.locator("main a[href*='/tasks/']").first.click()
        page.wait_for_selector("#annotator[data-open]:not([data-busy])")
        for name, x, y, w, h in self.truth:
            page.keyboard.press(str(int(name) + 1))  # the class
            page.keyboard.press("r")
            page.mouse.move(*self._at(x, y))
            page.mouse.down()
            page.mouse.move(*self._at(x + w / 2, y + h / 2))
            page.mouse.move(*self._at(x + w, y + h))
            page.mouse.up()
        expect(page.locator("[data-object-count]")).to_have_text(str(len(self.truth)))
        expect(page.locator("[data-saved]")).to_have_text("Saved", timeout=PATIENCE_MS)
        self.seen(page, "annotator")
        page.keyboard.press("Control+Enter")
        expect(page.locator("[data-place]")).to_have_text("2 / 3")

    def _at(self, x: float, y: float) -> tuple[float, float]:
        across, down = self.anna.evaluate(
            """([x, y]) => { const s = document.querySelector("[data-stage]").getBoundingClientRect();
            const p = annotator.desk.viewport.toScreen(x, y); return [s.left + p[0], s.top + p[1]]; }""",
            [x, y],
        )
        return across, down

    # --- 6. training

    def train(self, *, pause: bool = True) -> None:
        page = self.alice
        page.goto("/training/new/")
        page.get_by_label("Name", exact=True).fill("digits")
        choice = page.get_by_label("Dataset", exact=True)
        expect(choice).to_be_visible(timeout=PATIENCE_MS)
        label = next(text for text in choice.locator("option").all_inner_texts() if text.startswith("Digits "))
        choice.select_option(label=label)
        expect(page.get_by_text("Can start now")).to_be_visible(timeout=PATIENCE_MS)
        self.seen(page, "training-new")
        page.locator("[data-of=detect] summary").click()
        for name, value in self.params.items():
            page.locator(f"[name=detect__{name}]").fill(value)
        page.locator("[name=detect__show_steps]").check()
        page.get_by_role("button", name="Start training").click()
        page.wait_for_url(re.compile(r"/training/\d+/$"))
        expect(page.get_by_role("log")).to_contain_text(re.compile(r"step \d+"), timeout=2 * PATIENCE_MS)
        if pause:
            page.locator("#job-pause").click()
            expect(page.locator("#job-head[data-job-state=paused]")).to_be_visible(timeout=PATIENCE_MS)
            page.locator("#job-continue").click()
        expect(page.locator("[data-job-progress]")).to_be_visible(timeout=PATIENCE_MS)
        if int(self.params["steps"]) > 50:  # long enough to be looked at half way
            percent = re.compile(r"^([6-9]\d|100)")
            expect(page.locator("[data-job-percent]")).to_have_text(percent, timeout=8 * PATIENCE_MS)
        self.seen(page, "training-live")
        expect(page.locator("#job-head[data-job-state=succeeded]")).to_be_visible(timeout=8 * PATIENCE_MS)
        expect(page.get_by_role("heading", name="Loss", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        self.seen(page, "training")

    # --- 7. the model, and what it is worth

    def evaluate(self) -> None:
        page = self.alice
        for _ in range(60):
            page.reload()
            if page.get_by_role("link", name="View model").count():
                break
            page.wait_for_timeout(500)
        page.get_by_role("link", name="View model").click()
        expect(page.get_by_text("Upstream")).to_be_visible()
        self.model = page.url
        self.seen(page, "model")
        page.get_by_role("link", name="Evaluate", exact=True).click()
        choice = page.get_by_label("Dataset", exact=True)
        expect(choice).to_be_visible(timeout=PATIENCE_MS)
        label = next(text for text in choice.locator("option").all_inner_texts() if text.startswith("Digits "))
        choice.select_option(label=label)
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_text("AP50").first).to_be_visible(timeout=4 * PATIENCE_MS)
        expect(page.get_by_role("heading", name="Confusion matrix")).to_be_visible(timeout=PATIENCE_MS)
        self.seen(page, "evaluation")

    # --- 8. the model at work

    def serve(self) -> None:
        page = self.alice
        page.goto(self.model)
        page.get_by_role("link", name="Create endpoint").first.click()
        page.get_by_label("Name", exact=True).fill("digits")
        page.get_by_role("button", name="Start").click()
        page.wait_for_url(re.compile(r"/services/\d+/$"))
        expect(page.get_by_text("Ready").first).to_be_visible(timeout=4 * PATIENCE_MS)
        page.set_input_files("main input[type=file]", str(self.picture))
        expect(page.get_by_text(re.compile("ms inference"))).to_be_visible(timeout=PATIENCE_MS)
        self.seen(page, "service")

    # --- 9. the operator looks, and stops

    def operate(self) -> None:
        page = self.olga
        page.goto("/cluster/")
        expect(page.get_by_role("link", name="node1").first).to_be_visible()
        self.seen(page, "cluster")
        page.goto("/admin/workers/job/")
        expect(page.locator("#result_list, table").get_by_text("digits", exact=True).first).to_be_visible(
            timeout=PATIENCE_MS
        )
        page.goto("/tasks/")
        self.seen(page, "tasks")
        page.locator("tr", has_text="Endpoint").get_by_role("checkbox").check()
        page.locator("[data-bulk-code=stop]").click()
        page.locator("dialog[open]").get_by_role("button", name="Stop", exact=True).click()
        for _ in range(60):
            page.goto("/tasks/?state=stopped")
            if page.locator("tbody tr", has_text="Stopped").count():
                return
            page.wait_for_timeout(500)
        raise AssertionError("the stopped service never showed as stopped")

    def all(self) -> None:
        """The whole story."""
        self.people()
        self.bring_in("Digits", self.archive)
        self.bring_in("Plain digits", self.plain)
        self.annotate()
        self.train()
        self.evaluate()
        self.serve()
        self.operate()
