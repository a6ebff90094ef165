"""Serializers of workspaces."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from aiplatform.lib.api import StrictMixin, VisibleField
from training.environments import actions, jupyter_access, panel, vscode
from training.environments.models import Environment
from training.programs.serializers import ProgramIn, ProgramOut
from workers.images.models import Image


class EnvironmentIn(ProgramIn):
    home_path = None  # type: ignore[assignment]  # taken out: the home itself is there
    image = VisibleField(
        Image, to_use=True, required=False, allow_null=True, default=None, help_text="Null: the built-in JupyterLab."
    )
    description = serializers.CharField(max_length=300, default="", allow_blank=True)
    folder = serializers.CharField(
        max_length=255,
        default="",
        allow_blank=True,
        help_text="Folder in the home folder where JupyterLab opens; created if missing.",
    )
    idle_hours = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Stopped after this idle time; null: default of the platform.",
    )


class MoreIn(StrictMixin, serializers.Serializer[Any]):
    hours = serializers.FloatField(default=actions.HOURS, help_text="Hours to add to the run time.")


class MoreOut(serializers.Serializer[Any]):
    granted = serializers.BooleanField(
        help_text="Whether the time was extended; otherwise the cluster managers were asked."
    )


class EnvironmentOut(ProgramOut):
    """An environment; state, log and controls are the job's of the same number."""

    condition = serializers.SerializerMethodField(help_text="Of a running workspace: starting, ready, silent or idle.")
    opens = serializers.SerializerMethodField(help_text="Names of the ports that can be opened: jupyter, vscode.")
    nodes = serializers.IntegerField(source="job.nodes", help_text="Number of nodes; JupyterLab runs on the first.")
    image = serializers.SerializerMethodField()
    root_inside = serializers.BooleanField(source="job.root_inside")
    left_s = serializers.SerializerMethodField(help_text="Run time that is left; null without a limit.")
    idle_s = serializers.SerializerMethodField(help_text="Time without activity.")
    stops_at = serializers.SerializerMethodField(help_text="Time of the stop if it stays idle; null: never.")

    class Meta:
        model = Environment
        fields = [
            "id", "name", "description", "owner", "state", "sentence", "condition", "nodes", "opens", "image",
            "root_inside", "folder", "code", "variables", "secrets", "datasets", "idle_hours", "ready_at", "alive_at",
            "alive_by", "left_s", "idle_s", "stops_at", "created_at", "ended_at", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_condition(self, environment: Environment) -> str:
        return panel.condition_of(environment)

    def get_opens(self, environment: Environment) -> list[str]:
        if panel.condition_of(environment) not in ("ready", "idle", "silent"):
            return []
        return [jupyter_access.NAME, *([vscode.NAME] if vscode.is_offered(environment) else [])]

    def get_image(self, environment: Environment) -> str:  # type: ignore[override]  # of a built-in one, a name
        return str(self._facts(environment)["image"])

    def get_left_s(self, environment: Environment) -> float | None:
        left = self._facts(environment)["left"]
        return left.total_seconds() if left is not None else None

    def get_idle_s(self, environment: Environment) -> float | None:
        return self._facts(environment)["idle_s"] if panel.condition_of(environment) else None

    def get_stops_at(self, environment: Environment) -> str | None:
        at = self._facts(environment)["stops_at"]
        return at.isoformat() if at else None

    def _facts(self, environment: Environment) -> dict[str, Any]:
        facts: dict[str, Any] | None = getattr(environment, "shown", None)
        if facts is None:
            facts = environment.shown = panel.facts(environment, self.context["request"].user)
        return facts
