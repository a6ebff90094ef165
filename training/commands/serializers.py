"""Serializers of custom jobs."""

from __future__ import annotations

from rest_framework import serializers

from training.commands.models import Command
from training.programs import layout, script
from training.programs.launchers import Launcher
from training.programs.serializers import ProgramIn, ProgramOut, ScriptOut
from workers.jobs.api.following import ArrayIn


class CommandIn(ArrayIn, ProgramIn):
    command = serializers.CharField(
        max_length=script.MAX_LENGTH,
        trim_whitespace=False,
        help_text="A line or a script for bash, or with its own “#!”.",
    )
    output_path = serializers.CharField(max_length=255, default="", allow_blank=True)
    writes_checkpoints = serializers.BooleanField(default=False)
    launcher = serializers.ChoiceField(choices=Launcher.choices, default=Launcher.ONCE)
    processes = serializers.IntegerField(
        min_value=0, max_value=layout.MAX_PROCESSES, default=0, help_text="Per node; 0: one per GPU."
    )
    worker_command = serializers.CharField(
        max_length=script.MAX_LENGTH, default="", allow_blank=True, trim_whitespace=False,
        help_text="Command of all nodes except the first; empty: the same command.",
    )  # fmt: skip


class CommandOut(ScriptOut, ProgramOut):
    """A command; state, log, files and controls are the job's of the same number."""

    array = serializers.IntegerField(source="job.array_id", help_text="The array it belongs to, if any.")
    array_index = serializers.IntegerField(source="job.array_index")

    class Meta:
        model = Command
        fields = [
            "id", "name", "owner", "state", "sentence", "command", "code", "image", "output_path", "datasets",
            "variables", "secrets", "writes_checkpoints", "launcher", "processes",
            "worker_command", "array", "array_index", "created_at", "ended_at", "url",
        ]  # fmt: skip
        read_only_fields = fields
