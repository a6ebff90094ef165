"""API of trials: begin one, see its ways, use one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import StrictMixin, VisibleField, parse_request
from aiplatform.lib.errors import Invalid
from aiplatform.lib.idempotency import once_in_parts
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion, Upload
from inference.registry import import_requests, imports
from inference.registry.import_trials import labels, panel, trials
from inference.registry.models import Model, ModelTask, Visibility
from inference.registry.serializers import ModelTaskOut, ModelVersionOut, VersionIn

if TYPE_CHECKING:
    from aiplatform.lib.api import NumberedViewSet as Base
else:
    Base = object


class TrialIn(VersionIn):
    """A model as it is brought in, and what it is tried on; `name` makes a new model, `model` a further version."""

    name = serializers.CharField(max_length=100, required=False, default="", validators=[TITLE])
    description = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False, default=Visibility.PRIVATE)
    model = VisibleField(Model, required=False, allow_null=True, default=None, help_text="One's own.")
    pictures = serializers.ListField(
        child=serializers.FileField(), required=False, default=list, max_length=trials.MAX_IMAGES
    )
    picture_uploads = serializers.ListField(
        child=VisibleField(Upload), required=False, default=list, max_length=trials.MAX_IMAGES,
        help_text="Ids of completed uploads, one image each.",
    )  # fmt: skip
    version = VisibleField(
        DatasetVersion, to_use=True, required=False, allow_null=True, default=None,
        help_text="Images with the most objects; annotations show which interpretation is correct.",
    )  # fmt: skip


class WayOut(serializers.Serializer):
    """One of the best ways; `score` is 0 to 1, `declared` what an import with it would declare."""

    rank = serializers.IntegerField()
    score = serializers.FloatField()
    title = serializers.CharField()
    about = serializers.ListField(child=serializers.CharField())
    declared = serializers.DictField()
    answers = serializers.ListField(help_text="Predictions for each image, in the format of an endpoint.")


class WaysOut(serializers.Serializer):
    """What came of a trial; empty until it has ended."""

    pictures = serializers.ListField(child=serializers.DictField())
    with_truth = serializers.BooleanField(help_text="The score compares with what is annotated.")
    tried = serializers.IntegerField()
    fallen = serializers.DictField(child=serializers.IntegerField(), help_text="How many ways fell out, by reason.")
    ways = WayOut(many=True)


class TrialUseIn(StrictMixin, serializers.Serializer):
    """Which way to use, 1 is the best; `name` in place of the one that was given."""

    rank = serializers.IntegerField(min_value=1)
    name = serializers.CharField(max_length=100, required=False, default="", validators=[TITLE])


class TrialActs(Base):
    """Acts of trials among the jobs about models."""

    acts: ClassVar[dict[str, Action]] = {
        "begin_trial": Action.MODELS_MANAGE,
        "ways": Action.MODELS_VIEW,
        "use": Action.MODELS_MANAGE,
    }

    @extend_schema(request=TrialIn, responses={202: ModelTaskOut})
    @action(detail=False, methods=["post"], url_path="try")
    @once_in_parts
    def begin_trial(self, request: ApiRequest) -> Response:
        """Queue a job that runs a model on pictures in every way that is possible."""
        serializer = TrialIn(data=request.data, context=self.get_serializer_context())
        fields = parse_request(serializer, imports.check, user=request.user)
        if (model := fields["model"]) is not None:
            fields["model"] = self._own(model)
        uploads = [
            import_requests.require_complete(upload, "picture_uploads") for upload in fields.pop("picture_uploads")
        ]
        declared = import_requests.pop_declared(fields)
        with (
            trials.examples([*fields.pop("pictures"), *uploads]) as pictures,
            import_requests.open_source(request.user, fields, declared, is_trial=True) as source,
        ):
            task = trials.submit(user=request.user, brought=source, declared=declared, pictures=pictures, **fields)
        return Response(ModelTaskOut(task).data, status=202)

    def _own(self, model: Model) -> Model:
        if not Model.objects.editable_by(self.request.user).filter(pk=model.pk).exists():
            self.permission_denied(self.request)
        return model

    @extend_schema(responses=WaysOut)
    @action(detail=True, methods=["get"])
    def ways(self, request: ApiRequest, pk: str) -> Response:
        """The best ways with their answers, and why others are not among them."""
        task = self._trial()
        result, declarations = panel.found_of(task), trials.ways_of(task)
        rows = [
            {
                "rank": rank, "score": variant.score, "title": labels.title(declarations[variant.number]),
                "about": labels.describe(declarations[variant.number]), "answers": variant.answers,
                "declared": {name: value for name, value in vars(declarations[variant.number]).items() if value},
            }
            for rank, variant in enumerate(result.best, 1)
        ]  # fmt: skip
        summary = {"pictures": result.pictures, "with_truth": result.with_truth, "tried": result.tried}
        return Response(WaysOut({**summary, "fallen": result.counts(), "ways": rows}).data)

    @extend_schema(request=TrialUseIn, responses={201: ModelVersionOut})
    @action(detail=True, methods=["post"])
    @once_in_parts
    def use(self, request: ApiRequest, pk: str) -> Response:
        """Make the version that an import with the declaration of this way would make."""
        task = self._trial()
        if not ModelTask.objects.editable_by(request.user).filter(pk=task.pk).exists():
            self.permission_denied(request)
        serializer = TrialUseIn(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        version = trials.use(task=task, by=request.user, **serializer.validated_data)
        return Response(ModelVersionOut(version).data, status=201)

    def _trial(self) -> ModelTask:
        """The trial; a job about a model that is another act is none."""
        task: ModelTask = self.get_object()
        if task.act != ModelTask.Act.TRY:
            raise Invalid(_("This job tests no model."))
        rows = ModelTask.objects.visible_to(self.request.user).select_related("job__owner", "made__model")
        return get_object_or_404(rows, pk=task.pk)
