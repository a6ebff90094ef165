"""Forms of the registry, evaluations and services."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.row_choices import RowChoice
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from inference.evaluation_sets.tables import EvaluationSet
from inference.formats.folder import WEIGHTS
from inference.model_choice import ModelVersionChoice
from inference.models import SPLIT_WORDS, Model, ModelVersion, Service, Stage, Visibility
from inference.scripted.forms import CALLED, ScriptFields
from inference.services import evaluations, learning, serving
from inference.services.limits import LIMITS
from inference.task_kinds import TASKS
from workers.jobs.forms.resource_request import ResourceForm

SPLITS = [(learning.AUTO, _("Automatic")), *SPLIT_WORDS.items()]
LONG = forms.Textarea(attrs={"rows": 3})


class ModelEditForm(forms.ModelForm):
    class Meta:
        model = Model
        fields = ["description", "visibility", "packages_pictures"]
        widgets = {"description": LONG}


class DataChoice(RowChoice):
    """A choice of a dataset version; what only an own script can use says so."""

    columns = ("dataset__name", "number", "annotated")

    def text_of(self, name: str, number: int, annotated: bool) -> str:
        return f"{name} v{number}" if annotated else f"{name} v{number} · {gettext('not annotated')}"


class EvaluationForm(ScriptFields, ResourceForm):
    """Model, data and resources of an evaluation, and an own script where one judges in place of ours."""

    device_kinds = ("gpu", "cpu")

    model_version = ModelVersionChoice(
        label=_("Model"), queryset=ModelVersion.objects.none(), empty_label=_("Choose a model")
    )
    version = DataChoice(label=_("Dataset"), queryset=DatasetVersion.objects.none(), empty_label=_("Choose a dataset"))
    parameter_set = forms.ModelChoiceField(
        label=_("Parameter set"), queryset=EvaluationSet.objects.none(), required=False, empty_label=_("None")
    )
    split = forms.ChoiceField(
        label=_("Split"),
        choices=SPLITS,
        required=False,
        initial=learning.AUTO,
        help_text=_("Automatic: test, else validation, else the images that the model did not learn from."),
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        required=False,
        validators=[TITLE],
        help_text=_("Empty: made of model and dataset."),
    )
    gpus_per_node = forms.IntegerField(
        label=_("Cards"), min_value=0, max_value=128, initial=0, help_text=_("0 uses the processor.")
    )
    score_threshold = forms.FloatField(
        label=_("Lowest score kept"), min_value=0.0001, max_value=1, initial=0.01, required=False
    )
    iou_threshold = forms.FloatField(
        label=_("Overlap at which one box stays"), min_value=0.05, max_value=1, initial=0.5, required=False
    )
    max_detections = forms.IntegerField(
        label=_("Boxes per image"), min_value=1, max_value=1000, initial=100, required=False
    )
    cpus = forms.FloatField(
        label=_("Processor cores"), min_value=0.1, max_value=256, initial=evaluations.DEFAULT_CPUS, required=False
    )
    batch = forms.IntegerField(label=_("Images per batch"), min_value=1, max_value=256, initial=8, required=False)

    altered_images = forms.IntegerField(
        label=_("Images judged in altered copies"),
        min_value=0,
        max_value=5000,
        initial=0,
        required=False,
        help_text=_(
            "Shows how much worse it does on blurred, noisy, hard compressed and too bright images. Each takes the "
            "time of 12 more, of 15 where it may be rotated too. 0: none."
        ),
    )

    ADVANCED = ("score_threshold", "iou_threshold", "max_detections", "batch", "altered_images")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.called = {**self.called, **CALLED}
        code = self.initial.get("snapshot")  # a row, or its number as it was sent
        if getattr(code, "owner_id", user.pk) != user.pk:  # it goes by `kept`: nobody names code of others
            self.initial = {name: value for name, value in self.initial.items() if name != "snapshot"}
        self.offer_snapshots()
        self.fields["image"].offer(user)  # type: ignore[attr-defined]  # declared above
        models, versions = self.fields["model_version"], self.fields["version"]
        models.queryset = (  # type: ignore[attr-defined]  # a choice among rows, declared above
            ModelVersion.objects.usable_by(user).filter(task__in=[*TASKS, WEIGHTS]).select_related("model")
        )
        versions.queryset = (  # type: ignore[attr-defined]  # a choice among rows, declared above
            DatasetVersion.objects.usable_by(user).order_by("-annotated", "-pk").for_choice()
        )
        sets = EvaluationSet.objects.usable_by(user).only("name")
        self.fields["parameter_set"].queryset = sets  # type: ignore[attr-defined]  # a choice among rows, declared above

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        self.check_script(data)
        return data

    def submission(self) -> dict[str, Any]:
        """Arguments of `evaluations.submit`, after `take_code`."""
        fields = {name: self.cleaned_data[name] for name in ("model_version", "version", "split", "name")}
        fields["params"] = {name: self.cleaned_data[name] for name in self.ADVANCED}
        return fields | self.script() | self.resources()


class ServiceForm(ResourceForm):
    """A service to make and start."""

    device_kinds = ("gpu", "cpu")
    name = forms.CharField(
        label=_("Name"),
        max_length=50,
        required=False,
        validators=[TITLE],
        help_text=_("Empty: the model's name."),
    )
    model_version = ModelVersionChoice(
        label=_("Model"), queryset=ModelVersion.objects.none(), empty_label=_("Choose a model")
    )
    description = forms.CharField(label=_("Description"), max_length=200, required=False)
    visibility = forms.ChoiceField(
        label=_("Who may call it"),
        choices=[(Visibility.PRIVATE, _("Only you")), (Visibility.PUBLIC, _("Everyone with an account"))],
        initial=Visibility.PRIVATE,
    )
    gpus_per_node = forms.IntegerField(
        label=_("Cards"), min_value=0, max_value=1, initial=0, help_text=_("0 uses the processor.")
    )
    cpus = forms.FloatField(label=_("Processor cores"), min_value=0.1, max_value=256, initial=serving.DEFAULT_CPUS)
    share_process = forms.BooleanField(
        label=_("Share a process with my other services"),
        required=False,
        help_text=_(
            "Takes far less memory for small models (multi-model serving). On the processor, with services that ask "
            "the same of the machines; they share what is asked."
        ),
    )
    max_batch = forms.IntegerField(
        label=_("Largest batch"),
        min_value=1,
        max_value=256,
        initial=8,
        help_text=_("Images of different callers answered in one run of the model."),
    )
    max_delay_ms = forms.FloatField(
        label=_("Longest wait for a batch"),
        min_value=0,
        max_value=1000,
        initial=2,
        help_text=_("A lone caller never waits."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        del self.fields["max_runtime_min"]  # a service runs until it is stopped
        own = ModelVersion.objects.usable_by(user).in_use().exclude(task=WEIGHTS).select_related("model")
        self.fields["model_version"].queryset = own  # type: ignore[attr-defined]  # a choice among rows, declared above

    def submission(self) -> dict[str, Any]:
        """Arguments of `serving.create`."""
        names = ("name", "model_version", "description", "visibility", "max_batch", "max_delay_ms", "share_process")
        fields = {name: self.cleaned_data[name] for name in names} | self.resources()
        del fields["max_runtime"]
        return fields


class ServiceModelForm(forms.Form):
    """Which version a service is to answer with."""

    model_version = ModelVersionChoice(
        label=_("Model"),
        queryset=ModelVersion.objects.none(),
        empty_label=_("Choose a model"),
        help_text=_("It is started beside the one that answers, and takes over once it answers itself."),
    )

    def __init__(self, *args: Any, service: Service, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        usable = ModelVersion.objects.usable_by(service.owner).exclude(task=WEIGHTS).select_related("model")
        own = usable.filter(~Q(stage=Stage.ARCHIVED) | Q(pk=service.model_version_id))  # back to what answers, always
        self.fields["model_version"].queryset = own  # type: ignore[attr-defined]  # a choice among rows, declared above


def _limit(name: str, label: Any, help_text: Any) -> forms.IntegerField:
    limit = LIMITS[name]
    return forms.IntegerField(
        label=label, min_value=limit.least, max_value=limit.most, required=False, help_text=help_text
    )


class ServiceEditForm(forms.Form):
    """What can be changed of a service while it runs; limits beside `per_minute` hold from its next start."""

    description = forms.CharField(label=_("Description"), max_length=200, required=False)
    visibility = forms.ChoiceField(label=_("Who may call it"), choices=ServiceForm.base_fields["visibility"].choices)  # type: ignore[attr-defined]  # a field of choices, declared above
    share_process = forms.BooleanField(
        label=_("Share a process with my other services"), required=False, help_text=_("Holds from the next start.")
    )
    per_minute = _limit(
        "per_minute",
        _("Requests a minute of one caller"),
        _("0: as often as they like. A key may have a number of its own. Holds at once."),
    )
    max_body_mib = _limit("max_body_mib", _("Largest request"), _("Holds from the next start."))
    request_batch = _limit("request_batch", _("Pictures in one request"), _("Holds from the next start."))
    max_answer_mib = _limit("max_answer_mib", _("Largest answer"), _("Holds from the next start."))
    keep_percent = _limit(
        "keep_percent", _("Pictures kept by chance"), _("Holds from the next start. 0: none. Tell your callers.")
    )
    keep_below = _limit(
        "keep_below", _("Pictures kept with an answer below this score"), _("Holds from the next start. 0: none.")
    )
    keep_differing = _limit(
        "keep_differing",
        _("Pictures kept where two models agree less"),
        _("While another model gets copies of the requests. 100: where they differ at all. 0: none. Holds at once."),
    )
    keep_days = _limit("keep_days", _("Days until kept pictures go"), _("Where no dataset was made of them."))
    min_replicas = _limit(
        "min_replicas",
        _("Servers always"),
        _("0: none while nobody asks. The next request starts one."),
    )
    max_replicas = _limit("max_replicas", _("Servers at most"), _("Each takes what the service asks of the machines."))
    queue_ms = _limit(
        "queue_ms",
        _("Longest usual wait in the queue"),
        _("One more is started where 1 of 20 requests waits longer."),
    )
    idle_minutes = _limit("idle_minutes", _("Minutes without a request"), _("Until it has no server, if 0 is allowed."))
    deadline_s = _limit(
        "deadline_s", _("Longest wait for an answer"), _("Holds from the next start. A caller may ask for less.")
    )

    def change(self) -> dict[str, Any]:
        """Arguments of `serving.edit`; limits that were not sent stay."""
        given = dict(self.cleaned_data)
        limits = {name: given.pop(name) for name in LIMITS}
        return {"limits": {name: value for name, value in limits.items() if value is not None}, **given}
