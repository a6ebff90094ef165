"""What a job follows, in the API: the fields that submitting routes take beside the resource request."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from aiplatform.lib.api import StrictMixin
from workers.jobs import arrays, following
from workers.jobs.following import Following

NAMES = ("after", "after_end", "outputs_of", "retries", "retry_pause_s")


def _numbers(help_text: str) -> serializers.ListField:
    number = serializers.IntegerField(min_value=1, max_value=2**53)
    return serializers.ListField(child=number, default=list, max_length=following.MAX_JOBS, help_text=help_text)


class FollowingIn(serializers.Serializer):
    """Fields of `following.Following`; they come together as `following`."""

    after = _numbers("Your jobs that have to complete first.")
    after_end = _numbers("Your jobs that have to end first, however.")
    outputs_of = _numbers("Your jobs whose outputs it reads; they have to complete first, unless their end is enough.")
    retries = serializers.IntegerField(
        min_value=0, max_value=following.MAX_RETRIES, default=0, help_text="How often it is started again if it fails."
    )
    retry_pause_s = serializers.IntegerField(
        min_value=0,
        max_value=following.MAX_PAUSE_S,
        default=following.NOTHING.retry_pause_s,
        help_text="Seconds before the first retry; each later pause is twice as long.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        attrs["following"] = Following(**{name: attrs.pop(name) for name in NAMES})
        return attrs


class FollowIn(StrictMixin, serializers.Serializer):
    """Other jobs for a waiting one to follow; none: it follows no job any more."""

    after = _numbers("Jobs of its owner that have to complete first.")
    after_end = _numbers("Jobs of its owner that have to end first, however.")
    outputs_of = _numbers("Jobs of its owner whose outputs it reads.")


class ArrayIn(FollowingIn):
    """The same with the indices of an array of jobs."""

    array = serializers.CharField(
        max_length=arrays.MAX_LENGTH,
        default="",
        allow_blank=True,
        help_text="Indices such as 0-99, 1,3,7 or 0-99%8 (eight at a time): one job each, with its index in "
        "AIP_ARRAY_INDEX.",
    )
