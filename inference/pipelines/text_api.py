"""`/api/v1/pipeline-texts/`: specifications as YAML and Python, back from YAML, and what differs between two of them.

Nothing is stored. Python is only written here: who wants it read runs it themselves (`aip pipeline push FILE.py`).
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import PlatformViewSet, StrictMixin, parse_request
from inference.pipelines import diffing, graph, text
from inference.pipelines.kinds import KINDS
from inference.pipelines.models import Pipeline
from inference.pipelines.python_text import to_python
from inference.pipelines.text_reading import MAX_BYTES


class TextIn(StrictMixin, serializers.Serializer[Any]):
    text = serializers.CharField(max_length=MAX_BYTES, trim_whitespace=False, help_text="YAML.")


class SpecOut(serializers.Serializer[Any]):
    spec = serializers.DictField(help_text="In its canonical form.")
    layout = serializers.DictField(allow_null=True, help_text="Positions of the steps; null: the text contains none.")


class SpecToWriteIn(StrictMixin, serializers.Serializer[Any]):
    spec = serializers.DictField()
    layout = serializers.DictField(required=False, allow_null=True, default=None)
    form = serializers.ChoiceField(choices=[("yaml", "YAML"), ("python", "Python")], default="yaml")
    name = serializers.CharField(max_length=200, default="pipeline", help_text="For the first line of Python.")
    over = serializers.CharField(
        max_length=MAX_BYTES, trim_whitespace=False, default="", allow_blank=True,
        help_text="YAML that says something else by now: its comments and its order stay.",
    )  # fmt: skip


class TextOut(serializers.Serializer[Any]):
    text = serializers.CharField()


class TwoSpecsIn(StrictMixin, serializers.Serializer[Any]):
    old = serializers.DictField()
    new = serializers.DictField()


class SpecChangeOut(serializers.Serializer[Any]):
    what = serializers.ChoiceField(choices=[(value.value, value.value) for value in diffing.What])
    step = serializers.CharField(help_text='"" is the pipeline as a whole.')
    name = serializers.CharField(help_text="Parameter, input or option; of a renamed step its former name.")
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)
    sentence = serializers.CharField()


class SpecChangesOut(serializers.Serializer[Any]):
    changes = SpecChangeOut(many=True)


class PipelineTextViewSet(PlatformViewSet):
    """Texts of pipelines; nothing is stored."""

    needs = {"read": Action.JOBS_VIEW, "write": Action.JOBS_VIEW, "compare": Action.JOBS_VIEW}
    pagination_class = None
    serializer_class = TextOut
    queryset = Pipeline.objects.none()

    @extend_schema(request=TextIn, responses=SpecOut)
    @action(detail=False, methods=["post"])
    def read(self, request: ApiRequest) -> Response:
        """Read YAML."""
        content = text.from_yaml(parse_request(TextIn(data=request.data))["text"])
        parsed = graph.parse(content.spec)
        layout = None if content.layout is None else graph.layout_of(content.layout, parsed)
        return Response({"spec": graph.canonical(parsed), "layout": layout})

    @extend_schema(request=SpecToWriteIn, responses=TextOut)
    @action(detail=False, methods=["post"])
    def write(self, request: ApiRequest) -> Response:
        """Write YAML or Python."""
        params = parse_request(SpecToWriteIn(data=request.data))
        parsed = graph.parse(params["spec"])
        spec, layout = graph.canonical(parsed), params["layout"]
        if params["form"] == "python":
            return Response({"text": to_python(spec, params["name"])})
        places = None if layout is None else graph.layout_of(layout, parsed)
        if params["over"]:
            return Response({"text": text.merge_text(params["over"], spec, places)})
        return Response({"text": text.to_yaml(spec, places)})

    @extend_schema(request=TwoSpecsIn, responses=SpecChangesOut)
    @action(detail=False, methods=["post"])
    def compare(self, request: ApiRequest) -> Response:
        """What differs between two specifications, step by step, without secrets."""
        params = parse_request(TwoSpecsIn(data=request.data))
        old, new = (graph.canonical(graph.parse(params[name])) for name in ("old", "new"))
        changes = diffing.diff(old, new, is_secret)
        rows = [{**change.as_json(), "sentence": diffing.to_sentence(change)} for change in changes]
        return Response({"changes": rows})


def is_secret(kind: str, name: str) -> bool:
    """Whether a step kind declares a parameter as a secret."""
    step_kind = KINDS.find(kind)
    return step_kind is not None and any(
        param.name == name and param.form in ("secret", "secrets") for param in step_kind.params
    )
