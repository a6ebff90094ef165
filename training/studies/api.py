"""`/api/v1/studies/`: the same services as the pages. What a trial does is under `/api/v1/training/jobs/{id}/`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField, parse_request
from aiplatform.lib.errors import Invalid
from aiplatform.lib.idempotency import once_in_parts
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet, object_action
from training.runs.serializers import TrainingDetailOut
from training.studies import actions, budget, creating, decider, limits, presentation
from training.studies.creating import StudyRequest
from training.studies.filters import StudyFilters
from training.studies.limits import Limits
from training.studies.models import Study

EVALUATORS = (decider.PED_ANOVA, decider.FANOVA)


class PlainField(serializers.JSONField):
    """A row, or a line for it."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str | Mapping):
            raise serializers.ValidationError(_("Enter a text, or fields with values."))
        return data


class LimitsIn(serializers.Serializer[Any]):
    """Fields of `limits.Limits`."""

    max_trials = serializers.IntegerField(min_value=1, max_value=limits.MAX_TRIALS, default=20)
    at_once = serializers.IntegerField(min_value=1, max_value=limits.MAX_PARALLEL_TRIALS, default=2)
    time_limit_s = serializers.IntegerField(
        min_value=1, max_value=limits.MAX_DAYS * 86400, required=False, allow_null=True, default=None,
        help_text="Measured from the start. Afterwards no new trial starts; running trials complete.",
    )  # fmt: skip
    hours_limit = serializers.FloatField(
        required=False, allow_null=True, default=None,
        help_text="GPU-hours of all trials; core-hours for trainings without GPUs.",
    )  # fmt: skip
    target = serializers.FloatField(
        required=False, allow_null=True, default=None, help_text="A value of the first objective that is good enough."
    )


class StudyIn(StrictMixin, LimitsIn):
    name = serializers.CharField(max_length=80)
    description = serializers.CharField(max_length=500, default="", allow_blank=True)
    visibility = serializers.ChoiceField(choices=Study.Visibility.choices, default=Study.Visibility.PRIVATE)
    training = serializers.DictField(help_text="Body of POST training/jobs/, without what is searched.")
    space = serializers.ListField(
        child=PlainField(),
        help_text='What is searched: lines as “lr = 1e-4 .. 0.1 log”, “layers = 1 .. 8”, “mode = a, b”, or rows '
        '{"name", "type": float, int or categorical, "low", "high", "step", "log", "choices"}.',
    )  # fmt: skip
    objectives = serializers.ListField(
        child=PlainField(),
        help_text='Keys of curves, or {"key", "direction": minimize or maximize, "take": last or best}.',
    )  # fmt: skip
    sampler = serializers.ChoiceField(choices=Study.Sampler.choices, default=Study.Sampler.TPE)
    pruner = PlainField(
        required=False, allow_null=True, default=None,
        help_text='none, median, asha, or {"name", "startup", "warmup", "factor"}, counted in points of the curve.',
    )  # fmt: skip
    seed = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False, allow_null=True, default=None)
    warm_start = serializers.ListField(child=VisibleField(Study), default=list, max_length=20)
    enqueue = serializers.ListField(
        child=serializers.DictField(), default=list, help_text="Parameters to try first; the sampler adds the others."
    )


class StudyChangeIn(StrictMixin, serializers.Serializer[Any]):
    """What changes; what is left out stays. null takes a limit away."""

    description = serializers.CharField(max_length=500, allow_blank=True, required=False)
    visibility = serializers.ChoiceField(choices=Study.Visibility.choices, required=False)
    max_trials = serializers.IntegerField(min_value=1, max_value=limits.MAX_TRIALS, required=False)
    at_once = serializers.IntegerField(min_value=1, max_value=limits.MAX_PARALLEL_TRIALS, required=False)
    time_limit_s = serializers.IntegerField(
        min_value=1, max_value=limits.MAX_DAYS * 86400, required=False, allow_null=True
    )
    hours_limit = serializers.FloatField(required=False, allow_null=True)
    target = serializers.FloatField(required=False, allow_null=True)


class ParamsIn(StrictMixin, serializers.Serializer[Any]):
    params = serializers.DictField()


class BestIn(StrictMixin, serializers.Serializer[Any]):
    trial = serializers.IntegerField(
        min_value=0,
        required=False,
        allow_null=True,
        default=None,
        help_text="Number of the trial; the best trial if omitted.",
    )
    params = serializers.DictField(default=dict, help_text="In place of the study's own: more epochs, say.")


class StudyOut(OutMixin, serializers.ModelSerializer[Study]):
    owner = serializers.CharField(source="owner.username")
    sentence = serializers.CharField(source="message")
    dataset = serializers.CharField(source="version_label")
    time_limit_s = serializers.SerializerMethodField()
    trials = serializers.IntegerField(source="made", default=0, help_text="How many there are.")
    running = serializers.IntegerField(
        source="live", default=0, help_text="Trials whose job has started and not ended."
    )
    url = serializers.SerializerMethodField()

    class Meta:
        model = Study
        fields = [
            "id", "name", "description", "owner", "visibility", "state", "sentence", "preset", "version", "dataset",
            "space", "objectives", "sampler", "pruner", "seed", "max_trials", "at_once", "time_limit_s", "hours_limit",
            "target", "trials", "running", "created_at", "ended_at", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_time_limit_s(self, study: Study) -> int | None:
        return int(study.time_limit.total_seconds()) if study.time_limit else None

    def get_url(self, study: Study) -> str:
        return f"/studies/{study.pk}/"


class TrialOut(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    state = serializers.CharField(help_text="waiting (its job is queued), running, complete, pruned or failed.")
    state_label = serializers.CharField()
    training = serializers.IntegerField(allow_null=True, help_text="Training of the trial; null if it was deleted.")
    job_state = serializers.CharField(help_text="State of the job of its training.")
    params = serializers.DictField()
    values = serializers.ListField(child=serializers.FloatField(), help_text="One for each objective.")
    so_far = serializers.FloatField(
        allow_null=True, help_text="Newest value of the first objective while the trial runs."
    )
    sentence = serializers.CharField(help_text="Why it failed.")
    enqueued = serializers.BooleanField(help_text="The parameters were requested by a user.")
    best = serializers.BooleanField(help_text="The best one; of several objectives, on the front.")
    created_at = serializers.DateTimeField()
    told_at = serializers.DateTimeField(allow_null=True)


class StudyDetailOut(StudyOut):
    counts = serializers.SerializerMethodField(help_text="Trials by state.")
    hours = serializers.SerializerMethodField(help_text="GPU-hours or core-hours used.")
    best = serializers.SerializerMethodField(help_text="The best trial; null while none is complete.")
    params = serializers.SerializerMethodField(help_text="What is the same for all trials.")
    enqueued = serializers.ListField(child=serializers.DictField())
    warm_trials = serializers.SerializerMethodField(help_text="Known from earlier studies.")

    class Meta(StudyOut.Meta):
        fields = [*StudyOut.Meta.fields, "params", "enqueued", "warm_trials", "counts", "hours", "best"]
        read_only_fields = fields

    def get_counts(self, study: Study) -> dict[str, int]:
        return presentation.counts(list(study.trials.with_jobs()))

    def get_hours(self, study: Study) -> float:
        return round(budget.hours(study), 4)

    def get_best(self, study: Study) -> dict[str, Any] | None:
        trial = budget.best_of(study, list(study.trials.order_by("number")))
        if trial is None:
            return None
        return {"number": trial.number, "training": trial.training_id, "params": trial.params, "values": trial.values}

    def get_params(self, study: Study) -> dict[str, Any]:
        return presentation.fixed(study)

    def get_warm_trials(self, study: Study) -> int:
        return len(study.warm)


class TrialCurveOut(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    state = serializers.CharField()
    points = serializers.ListField(child=serializers.ListField(child=serializers.FloatField()))


class ImportanceOut(serializers.Serializer[Any]):
    objective = serializers.CharField()
    evaluator = serializers.CharField()
    importance = serializers.DictField(child=serializers.FloatField(), help_text="By parameter; together 1.")


def request_of(data: dict[str, Any]) -> StudyRequest:
    """Return the request of a validated body."""
    seconds = data.pop("time_limit_s")
    allowed = Limits(
        time_limit=timedelta(seconds=seconds) if seconds else None,
        **{name: data.pop(name) for name in ("max_trials", "at_once", "hours_limit", "target")},
    )
    return StudyRequest(limits=allowed, **data)


class StudyViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """Searches for parameters: many trainings of one request."""

    view_permission, change_permission = Action.TRAINING_VIEW, Action.TRAINING_SUBMIT
    needs = dict.fromkeys(("trials", "curves", "importance"), Action.TRAINING_VIEW) | dict.fromkeys(
        ("destroy", "pause", "resume", "stop"), Action.TRAINING_CONTROL
    )
    asks = {"importance": ("objective", "evaluator")}
    serializer_class, list_serializer_class = StudyDetailOut, StudyOut
    create_serializer_class, change_serializer_class = StudyIn, StudyChangeIn
    filters = StudyFilters

    def service_check(self) -> Any:
        return creating.check_parts if self.action == "create" else None

    def create_object(self, **values: Any) -> Study:
        return creating.create(user=self.request.user, request=request_of(values))

    def change_object(self, study: Study, **values: Any) -> Study:
        columns = {name: values.pop(name) for name in ("description", "visibility") if name in values}
        if "time_limit_s" in values:
            seconds = values.pop("time_limit_s")
            values["time_limit"] = timedelta(seconds=seconds) if seconds else None
        allowed = Limits(**{**vars(actions.limits_of(study)), **values}) if values else None
        return actions.change(study, limits=allowed, **columns)

    def delete_object(self, study: Study) -> None:
        actions.delete(study)

    @object_action()
    def pause(self, study: Study) -> Study:
        """Start no new trials."""
        return actions.pause(study, by=self.request.user)

    @object_action()
    def resume(self, study: Study) -> Study:
        """Continue after a pause, or after it ended and a limit was raised."""
        return actions.resume(study, by=self.request.user)

    @object_action(status=202)
    def stop(self, study: Study) -> Study:
        """Stop it with all of its trials."""
        return actions.stop(study, by=self.request.user)

    @object_action(ParamsIn, status=202, once=True)
    def enqueue(self, study: Study, params: dict[str, Any]) -> Study:
        """Try these parameters next; the sampler adds what is missing."""
        return actions.put_next(study, params)

    @extend_schema(request=BestIn, responses={201: TrainingDetailOut})
    @action(detail=True, methods=["post"])
    @once_in_parts
    def best(self, request: ApiRequest, pk: str) -> Response:
        """Train with the best parameters once more, as an ordinary training."""
        study = self.get_object()
        data = parse_request(BestIn(data=request.data))
        training = actions.train_best(study, by=request.user, number=data["trial"], params=data["params"])
        return Response(TrainingDetailOut(training, context=self.get_serializer_context()).data, status=201)

    @extend_schema(responses=TrialOut(many=True))
    @action(detail=True)
    def trials(self, request: ApiRequest, pk: str) -> Response:
        """All its trials in the order of their numbers."""
        study = self.get_object()
        rows = presentation.trial_rows(study, list(study.trials.with_jobs().order_by("number")))
        return Response(TrialOut(rows, many=True).data)

    @extend_schema(responses=TrialCurveOut(many=True))
    @action(detail=True)
    def curves(self, request: ApiRequest, pk: str) -> Response:
        """The curve of the first objective of each trial, as (step, value)."""
        study = self.get_object()
        rows = presentation.curves_of(study, list(study.trials.with_jobs().order_by("number")))
        return Response(TrialCurveOut(rows, many=True).data)

    @extend_schema(
        responses=ImportanceOut,
        parameters=[
            OpenApiParameter("objective", str, description="Key of one; the first when left out."),
            OpenApiParameter("evaluator", str, enum=EVALUATORS),
        ],
    )
    @action(detail=True)
    def importance(self, request: ApiRequest, pk: str) -> Response:
        """How much each parameter mattered; empty while too few trials say so."""
        study = self.get_object()
        filters = queries.read_filters(request)
        keys = [objective["key"] for objective in study.objectives]
        key = filters.get("objective") or keys[0]
        if key not in keys:
            message = _("%(name)s must be one of %(words)s.") % {"name": "objective", "words": ", ".join(keys)}
            raise Invalid(message, field="objective")
        evaluator = queries.read_choice(filters, "evaluator", *EVALUATORS) or decider.PED_ANOVA
        importances = presentation.importance(study, objective=keys.index(key), evaluator=evaluator)
        return Response(ImportanceOut({"objective": key, "evaluator": evaluator, "importance": importances}).data)
