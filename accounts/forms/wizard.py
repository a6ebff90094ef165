"""Multi-step forms without script and without state on the server: earlier steps travel as hidden fields.

So the back button loses nothing, wizards in two windows do not mix, and a restart of the platform does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.forms import BaseForm
from django.http import QueryDict
from django.utils.html import format_html_join
from django.utils.safestring import SafeString


@dataclass(frozen=True)
class Part:
    """A form of a step. Prefixes differ between all forms of a wizard."""

    form: Callable[..., BaseForm]
    prefix: str
    initial: dict[str, Any] = field(default_factory=dict)

    def bound(self, data: QueryDict) -> BaseForm:
        return self.form(data, prefix=self.prefix)

    def shown(self, data: QueryDict | None) -> BaseForm:
        """Return the form unvalidated: with what was typed before, else with its initial values."""
        blank = self.form(prefix=self.prefix)
        typed = {
            name: field.widget.value_from_datadict(data, {}, blank.add_prefix(name))
            for name, field in blank.fields.items()
            if data is not None and blank.add_prefix(name) in data
        }
        return self.form(prefix=self.prefix, initial=self.initial | typed)


@dataclass(frozen=True)
class Step:
    key: str
    label: Any
    parts: Sequence[Part]


def part(form: Callable[..., BaseForm], prefix: str, *, initial: dict[str, Any] | None = None, **kwargs: Any) -> Part:
    """A `Part` whose form takes further keyword arguments."""
    return Part(partial(form, **kwargs) if kwargs else form, prefix, initial or {})


class Wizard:
    """A multi-step form and its current step.

    The page sends `at` (number of the step shown) and one of the buttons `go=back`, `go=next`, `go=done`.
    """

    def __init__(self, steps: Sequence[Step], data: QueryDict | None) -> None:
        self.steps = list(steps)
        self.data = data
        step_number = data.get("at", "0") if data else "0"
        self.at = min(int(step_number), len(self.steps) - 1) if step_number.isdecimal() and len(step_number) < 4 else 0
        self.refused = False  # the answer is 422
        self._bound: dict[int, list[BaseForm]] = {}

    def walk(self) -> bool:
        """Follow the pressed button; True when every step is valid and the last button was pressed."""
        go = self.data.get("go", "") if self.data else ""
        if go == "back":
            self.at = max(0, self.at - 1)
        elif go in ("next", "done"):
            last = len(self.steps) - 1 if go == "done" else self.at
            wrong = next((n for n in range(last + 1) if not self._right(n)), None)
            if wrong is None and go == "done":
                return True
            if wrong is None:
                self.at = min(self.at + 1, len(self.steps) - 1)
            else:
                self.refuse(wrong)
        return False

    def bound(self, number: int) -> list[BaseForm]:
        """Return the validated forms of a step."""
        if number not in self._bound:
            assert self.data is not None
            self._bound[number] = [part.bound(self.data) for part in self.steps[number].parts]
        return self._bound[number]

    def _right(self, number: int) -> bool:
        return all([form.is_valid() for form in self.bound(number)])  # noqa: C419 - each shows its errors

    def cleaned(self, number: int) -> list[dict[str, Any]]:
        """Return the cleaned values of a step; after `walk` returned True."""
        return [form.cleaned_data for form in self.bound(number)]

    def refuse(self, number: int) -> None:
        """Go to a step because its forms are wrong, also when a service refused."""
        self.at, self.refused = number, True

    def shown(self, number: int) -> list[BaseForm]:
        """Return the forms of any step unvalidated, with what was typed."""
        return [part.shown(self.data) for part in self.steps[number].parts]

    @property
    def status(self) -> int:
        return 422 if self.refused else 200

    @property
    def step(self) -> Step:
        return self.steps[self.at]

    @property
    def forms(self) -> list[BaseForm]:
        """Return the forms of the current step; errors only when it was validated and is wrong."""
        return self.bound(self.at) if self.refused else [part.shown(self.data) for part in self.step.parts]

    @property
    def is_last(self) -> bool:
        return self.at == len(self.steps) - 1

    def progress(self) -> Iterator[dict[str, Any]]:
        """Steps for the row of steps above the form: {label, number, state: done | now | next}."""
        for number, step in enumerate(self.steps):
            state = "done" if number < self.at else "now" if number == self.at else "next"
            yield {"label": step.label, "number": number + 1, "state": state}

    def hidden(self) -> SafeString:
        """Return the fields of all other steps as hidden inputs."""
        pairs = []
        for number, step in enumerate(self.steps):
            if number != self.at and self.data is not None:
                forms = [part.form(prefix=part.prefix) for part in step.parts]
                names = [form.add_prefix(name) for form in forms for name in form.fields]
                pairs += [(name, value) for name in names for value in self.data.getlist(name)]
        return format_html_join("", '<input type="hidden" name="{}" value="{}">', pairs)
