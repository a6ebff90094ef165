"""Multi-step forms without JavaScript and without server-side state: the other steps are sent as hidden fields.

The back button therefore loses no input, wizards in two windows are independent, and a restart of the platform loses
nothing.
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
    """A form of a step. `prefix` is unique within the wizard, because a request contains the fields of all steps."""

    form: Callable[..., BaseForm]
    prefix: str
    initial: dict[str, Any] = field(default_factory=dict)

    def bound(self, data: QueryDict) -> BaseForm:
        """Return the form bound to the submitted data."""
        return self.form(data, prefix=self.prefix)

    def shown(self, data: QueryDict | None) -> BaseForm:
        """Return the unbound form, without errors: with the submitted values, otherwise with its initial values."""
        blank = self.form(prefix=self.prefix)
        submitted = {
            name: field.widget.value_from_datadict(data, {}, blank.add_prefix(name))
            for name, field in blank.fields.items()
            if data is not None and blank.add_prefix(name) in data
        }
        return self.form(prefix=self.prefix, initial=self.initial | submitted)


@dataclass(frozen=True)
class Step:
    """A page of the wizard.

    Attributes:
        label: name in the progress bar, may be lazily translated.
    """

    key: str
    label: Any
    parts: Sequence[Part]


def part(form: Callable[..., BaseForm], prefix: str, *, initial: dict[str, Any] | None = None, **kwargs: Any) -> Part:
    """Return a `Part`; `kwargs` are passed to the constructor of the form."""
    return Part(partial(form, **kwargs) if kwargs else form, prefix, initial or {})


class Wizard:
    """A multi-step form and its current step.

    The page sends `at` (index of the displayed step, from 0) and one of the buttons `go=back`, `go=next`, `go=done`.
    """

    def __init__(self, steps: Sequence[Step], data: QueryDict | None) -> None:
        self.steps = list(steps)
        self.data = data
        step_number = data.get("at", "0") if data else "0"
        self.at = min(int(step_number), len(self.steps) - 1) if step_number.isdecimal() and len(step_number) < 4 else 0
        self.refused = False  # True: the current step shows errors, the response is 422
        self._bound: dict[int, list[BaseForm]] = {}

    def walk(self) -> bool:
        """Apply the pressed button to the current step; return True if it was `done` and all steps are valid.

        If a step is invalid, the wizard moves to the first invalid one and shows its errors.
        """
        go = self.data.get("go", "") if self.data else ""
        if go == "back":
            self.at = max(0, self.at - 1)
        elif go in ("next", "done"):
            last = len(self.steps) - 1 if go == "done" else self.at
            invalid = next((n for n in range(last + 1) if not self._is_valid(n)), None)
            if invalid is None and go == "done":
                return True
            if invalid is None:
                self.at = min(self.at + 1, len(self.steps) - 1)
            else:
                self.refuse(invalid)
        return False

    def bound(self, number: int) -> list[BaseForm]:
        """Return the forms of a step bound to the submitted data, always the same objects."""
        if number not in self._bound:
            assert self.data is not None
            self._bound[number] = [part.bound(self.data) for part in self.steps[number].parts]
        return self._bound[number]

    def _is_valid(self, number: int) -> bool:
        return all([form.is_valid() for form in self.bound(number)])  # noqa: C419 - validates all, so all show errors

    def cleaned(self, number: int) -> list[dict[str, Any]]:
        """Return the cleaned values of each form of a step; only after `walk` returned True."""
        return [form.cleaned_data for form in self.bound(number)]

    def refuse(self, number: int) -> None:
        """Move to a step and show its errors; views also call it when a service rejects the values."""
        self.at, self.refused = number, True

    def shown(self, number: int) -> list[BaseForm]:
        """Return the unbound forms of any step, filled with the submitted values."""
        return [part.shown(self.data) for part in self.steps[number].parts]

    @property
    def status(self) -> int:
        """HTTP status of the page."""
        return 422 if self.refused else 200

    @property
    def step(self) -> Step:
        return self.steps[self.at]

    @property
    def forms(self) -> list[BaseForm]:
        """Return the forms of the current step, with errors if it was refused."""
        return self.bound(self.at) if self.refused else [part.shown(self.data) for part in self.step.parts]

    @property
    def is_last(self) -> bool:
        return self.at == len(self.steps) - 1

    def progress(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of the progress bar: {label, number (from 1), state: done | now | next}."""
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
