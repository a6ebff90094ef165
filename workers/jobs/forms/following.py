"""What a job follows, in forms: the part of a submit form about other jobs, retries and arrays."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workers.core.models import Dependency, Job
from workers.jobs import arrays, following
from workers.jobs.following import Following


class JobNumbers(forms.CharField):
    """Numbers of jobs with commas or blanks between them."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.TextInput(attrs={"data-jobs": reverse_lazy("api-jobs-list")})  # workers/job_picker.js
        super().__init__(max_length=2000, required=False, widget=widget, **kwargs)

    def to_python(self, value: Any) -> list[int]:  # type: ignore[override]  # a list of what was one text
        numbers = [word.removeprefix("#") for word in re.split(r"[\s,]+", super().to_python(value) or "") if word]
        wrong = next((word for word in numbers if not re.fullmatch(r"[1-9]\d{0,15}", word)), None)
        if wrong:
            raise forms.ValidationError(_("“%(word)s” is not a job number.") % {"word": wrong[:30]})
        return [int(word) for word in dict.fromkeys(numbers)]

    def run_validators(self, value: Any) -> None:
        """Nothing more to check: the text was turned into numbers."""


class FollowForm(forms.Form):
    """Other jobs for a waiting one to follow."""

    after = JobNumbers(
        label=gettext_lazy("After completion of"),
        help_text=gettext_lazy("Your jobs that must complete first."),
    )
    after_end = JobNumbers(
        label=gettext_lazy("After the end of"),
        help_text=gettext_lazy("Your jobs that must end first, in any state."),
    )
    outputs_of = JobNumbers(
        label=gettext_lazy("Input jobs"),
        help_text=gettext_lazy("Your jobs that must complete first; their folders are in AIP_INPUTS."),
    )

    def following(self) -> Following:
        """What was requested."""
        return Following(**self._jobs())

    def _jobs(self) -> dict[str, Any]:
        return {name: self.cleaned_data.get(name) or () for name in following.FIELDS}


class FollowingFields(FollowForm):
    """Fields of `following.Following`; forms show them by `workers/_following_fields.html`."""

    retries = forms.IntegerField(
        label=gettext_lazy("Retries"),
        min_value=0,
        max_value=following.MAX_RETRIES,
        initial=0,
        required=False,
        help_text=gettext_lazy("Number of restarts after a failure."),
    )
    retry_pause_s = forms.IntegerField(
        label=gettext_lazy("Retry delay"),
        min_value=0,
        max_value=following.MAX_PAUSE_S,
        initial=following.NOTHING.retry_pause_s,
        required=False,
        help_text=gettext_lazy("Doubles after each retry."),
    )

    def following(self) -> Following:
        """What was requested."""
        data = self.cleaned_data
        pause = data.get("retry_pause_s")
        return Following(
            **self._jobs(),
            retries=data.get("retries") or 0,
            retry_pause_s=following.NOTHING.retry_pause_s if pause is None else pause,
        )

    @property
    def following_is_set(self) -> bool:
        """Whether one of the folded fields has an error or a value."""
        names = (*following.FIELDS, "retries", "retry_pause_s", "array")
        set_names = (*following.FIELDS, "retries", "array")
        return any(self.errors.get(name) for name in names) or any(
            self[name].value() not in (None, "", 0, "0") for name in set_names if name in self.fields
        )


class ArrayFields(FollowingFields):
    """The same with the indices of an array of jobs."""

    array = forms.CharField(
        label=gettext_lazy("Job array"),
        max_length=arrays.MAX_LENGTH,
        required=False,
        help_text=gettext_lazy(
            "One job per index, available in AIP_ARRAY_INDEX: 0-99, 1,3,7, or 0-99%8 for eight at a time."
        ),
    )


def initial_of(job: Job) -> dict[str, Any]:
    """Initial values for a job like this one. Jobs that came before it ended long ago: only those it reads stay."""
    return {"retries": job.retries, "retry_pause_s": job.retry_pause_s, "outputs_of": followed_by(job)["outputs_of"]}


def followed_by(job: Job) -> dict[str, str]:
    """Initial values of `FollowForm`: the jobs that this one follows."""
    rows = list(job.dependencies.filter(on__owner=job.owner_id).values_list("on_id", "needs", "outputs"))
    return {
        "after": ", ".join(
            str(number) for number, needs, reads in rows if needs == Dependency.Needs.SUCCESS and not reads
        ),
        "after_end": ", ".join(str(number) for number, needs, _reads in rows if needs == Dependency.Needs.END),
        "outputs_of": ", ".join(str(number) for number, _needs, reads in rows if reads),
    }
