"""Fields about the progress of a job, the same for jobs and for everything that has one."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

PROGRESS = ("progress", "eta_s", "phase", "phase_label", "phase_done", "phase_total", "phase_times")
"""Names of the fields of `ProgressFields`, for `Meta.fields`."""


class PhaseTimeOut(serializers.Serializer[Any]):
    """Time of one phase of a job."""

    phase = serializers.CharField(read_only=True)
    name = serializers.CharField(read_only=True, help_text="In the caller's language.")
    spent_s = serializers.FloatField(read_only=True)
    left_s = serializers.FloatField(read_only=True, allow_null=True, help_text="Null where it is not estimated.")


class ProgressFields(serializers.Serializer[Any]):
    """Progress of the row's `job`."""

    progress = serializers.FloatField(
        source="job.progress", read_only=True, help_text="0 to 1 of the phase; null before its first step."
    )
    eta_s = serializers.FloatField(
        source="job.eta_s", read_only=True, help_text="Seconds until the job ends, over all phases; null where unknown."
    )
    phase = serializers.CharField(source="job.phase", read_only=True)
    phase_label = serializers.CharField(
        source="job.get_phase_display", read_only=True, help_text="`phase` in the caller's language."
    )
    phase_done = serializers.IntegerField(
        source="job.phase_done", read_only=True, help_text="Counter of the phase, of `phase_total`."
    )
    phase_total = serializers.IntegerField(source="job.phase_total", read_only=True)
    phase_times = PhaseTimeOut(source="job.timeline", many=True, read_only=True)
