"""What a person does in the annotator, in pixels of the image; fixtures of its tests."""

from __future__ import annotations

from annotation.models import Shape


def until(page, words: str) -> None:
    """Wait for what a script on a page says, 10 s or more.

    Playwright's `wait_for_function` asks twice by `eval`, which the policy of our pages forbids.
    """
    for _ in range(500):
        if page.evaluate(words):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never true: {words}")


class Hands:
    """What a person does on the page, in pixels of the image."""

    def __init__(self, page, work, number: int = 1) -> None:
        self.page = page
        self.work = work
        self.open(number)

    def open(self, number: int) -> None:
        task = self.work.tasks.get(number=number)
        self.page.goto(f"/annotation/projects/{self.work.project_id}/tasks/{task.pk}/")
        self.ready(task.pk)

    def ready(self, task_pk: int) -> None:
        self.page.wait_for_selector(f"#annotator[data-open='{task_pk}']:not([data-busy])")

    def at(self, x: float, y: float) -> tuple[float, float]:
        found = self.page.evaluate(
            """([x, y]) => { const s = document.querySelector("[data-stage]").getBoundingClientRect();
            const p = annotator.desk.viewport.toScreen(x, y); return [s.left + p[0], s.top + p[1]]; }""",
            [x, y],
        )
        return found[0], found[1]

    def click(self, x: float, y: float, **more) -> None:
        self.page.mouse.click(*self.at(x, y), **more)

    def drag(self, x0: float, y0: float, x1: float, y1: float) -> None:
        mouse = self.page.mouse
        mouse.move(*self.at(x0, y0))
        mouse.down()
        mouse.move(*self.at((x0 + x1) / 2, (y0 + y1) / 2))
        mouse.move(*self.at(x1, y1))
        mouse.up()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, words: str) -> None:
        """Wait for what a script on the page says."""
        until(self.page, words)

    def saved(self) -> None:
        self.until("annotator.journal.state === 'saved' && !annotator.journal.queue.length")

    def undo_kept(self) -> None:
        """Wait until the browser has put by the steps that belong to what the server stored last."""
        task = self.work.tasks.get(pk=self.page.evaluate("annotator.desk.task.id"))
        self.until(f"annotator.journal.shelf.get('histories', {task.pk}).then(kept => kept?.rev === {task.rev})")

    def shapes(self) -> list[dict]:
        return self.page.evaluate(
            "[...annotator.desk.scene.shapes.values()].map(({kind, rings, label}) => ({kind, rings, label}))"
        )


def stored() -> list[tuple[str, int]]:
    return [(shape.kind, round(shape.area)) for shape in Shape.objects.filter(deleted=False).order_by("pk")]
