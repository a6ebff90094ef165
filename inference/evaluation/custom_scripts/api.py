"""How the API says an own script of an evaluation: in a request, and in an answer."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from aiplatform.lib.api import VisibleField
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.models import Evaluation
from training.programs import script as command_lines
from training.programs.serializers import InputsIn
from workers.images.models import Image


class ScriptIn(InputsIn):
    """Code that judges in place of ours, in one of four ways, and its start file; all left out: ours judges."""

    datasets = None  # type: ignore[assignment]  # takes the inherited field away, as DRF has it
    variables = None  # type: ignore[assignment]  # likewise
    secrets = None  # type: ignore[assignment]  # likewise
    start_file = serializers.CharField(
        max_length=255, required=False, default="", allow_blank=True,
        help_text="A Python file in the code. It writes metrics.json into the folder in AIP_OUTPUT_DIR.",
    )  # fmt: skip
    arguments = serializers.CharField(
        max_length=2000, required=False, default="", allow_blank=True,
        help_text="Words after the start file; {model}, {data}, {output} and {params} become paths.",
    )  # fmt: skip
    output_path = serializers.CharField(
        max_length=255, required=False, default="", allow_blank=True, help_text="Folder in the code that it writes to."
    )
    image = VisibleField(
        Image, to_use=True, required=False, allow_null=True, default=None,
        help_text="Where the programs of an own script come from; null: the platform's own.",
    )  # fmt: skip


class ScriptOut(serializers.Serializer[Any]):
    """The script that judged, and why its newest run left no figures."""

    code = serializers.CharField(source="code_id")
    code_origin = serializers.CharField(source="code.origin")
    start_file = serializers.CharField()
    arguments = serializers.SerializerMethodField()
    output_path = serializers.CharField()
    image = serializers.SerializerMethodField(help_text='{"id", "name"}; the id is null where it was deleted.')
    problems = serializers.SerializerMethodField()

    def get_arguments(self, row: Any) -> str:
        return command_lines.shown(row.arguments)

    def get_image(self, row: Any) -> dict[str, Any] | None:
        use = getattr(row.evaluation.job, "image_use", None)
        return {"id": use.image_id, "name": use.name} if use else None

    def get_problems(self, row: Any) -> list[str]:
        return [str(problem) for problem in scripts.problems(row)]


class ScriptedOut(serializers.Serializer[Any]):
    """What an evaluation says of an own script."""

    script = serializers.SerializerMethodField(help_text="null if the built-in evaluation was used.")
    params = serializers.SerializerMethodField()

    @extend_schema_field(ScriptOut(allow_null=True))
    def get_script(self, evaluation: Evaluation) -> dict[str, Any] | None:
        return dict(ScriptOut(evaluation.script).data) if evaluation.is_scripted else None

    def get_params(self, evaluation: Evaluation) -> dict[str, Any]:
        return scripts.shown_params(evaluation)
