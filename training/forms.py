"""Forms of trainings: submit, restore, parameter sets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import User
from aiplatform.lib.titles import TITLE
from aiplatform.lib.units import Count
from datasets.models import DatasetVersion
from training.code_fields import CodeFields
from training.models import ParameterSet
from training.pairs import read_pairs
from training.param_fields import ParamFields
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.task_kinds import preset_for
from workers.jobs.forms.resource_request import ResourceForm

OWN = "own"


class VersionLabels:
    """Labels of a choice among versions: what each holds."""

    def label_from_instance(self, obj: Any) -> str:
        images, classes = obj.image_count, len(obj.classes)
        parts = (
            str(obj),
            ngettext("%(n)s image", "%(n)s images", images) % {"n": Count(images)},
            ngettext("%(n)s class", "%(n)s classes", classes) % {"n": Count(classes)},
            obj.get_task_display(),
        )
        return " · ".join(parts)


class VersionChoice(VersionLabels, forms.ModelChoiceField):
    """A choice of one version."""


class VersionSelect(forms.Select):
    """Options carry the preset that suits their data, so the page can pick it."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if getattr(value, "instance", None) is not None:
            option["attrs"]["data-preset"] = preset_for(value.instance)
        return option


class SubmitForm(ParamFields, CodeFields, ResourceForm):
    """A training in three blocks: what, on which data, on which cards."""

    required_where_shown = ("start_file",)
    keeps_files = ("code_archive",)  # as a snapshot, see `take_code`
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        required=False,
        validators=[TITLE],
        help_text=gettext_lazy("Empty: made of dataset and preset."),
    )
    description = forms.CharField(label=gettext_lazy("Description"), max_length=500, required=False)
    preset = forms.ChoiceField(label=gettext_lazy("What to train"), choices=[], widget=forms.RadioSelect)
    start_file = forms.CharField(
        label=gettext_lazy("Start file"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("A Python file in the code, for instance train.py."),
    )
    arguments = forms.CharField(
        label=gettext_lazy("Run parameters"),
        max_length=2000,
        required=False,
        help_text=gettext_lazy("Words after the start file. {data}, {output}, {params} and {resume} become paths."),
    )
    pairs = forms.CharField(
        label=gettext_lazy("Parameters"),
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        help_text=gettext_lazy("One name = value a line. Your code reads them from the file in AIP_PARAMS."),
    )
    output_path = forms.CharField(
        label=gettext_lazy("Output path"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("The folder your code writes to, for instance runs. Left empty: AIP_OUTPUT_DIR."),
    )
    writes_checkpoints = forms.BooleanField(
        label=gettext_lazy("It writes checkpoints to AIP_CHECKPOINT_DIR and goes on from AIP_RESUME_FROM"),
        required=False,
    )
    version = VersionChoice(
        DatasetVersion.objects.none(),
        label=gettext_lazy("Dataset"),
        widget=VersionSelect,
        empty_label=gettext_lazy("Choose a dataset"),
    )
    eval_version = VersionChoice(
        DatasetVersion.objects.none(),
        label=gettext_lazy("Second dataset"),
        help_text=gettext_lazy("To score on; your code finds it in AIP_DATASETS with the role eval."),
        required=False,
        widget=VersionSelect,
        empty_label=gettext_lazy("none"),
    )
    nodes = forms.IntegerField(label=gettext_lazy("Machines"), min_value=1, max_value=64, initial=1)
    processes = forms.IntegerField(
        label=gettext_lazy("Processes per machine"),
        min_value=0,
        max_value=64,
        initial=0,
        help_text=gettext_lazy(
            "0: presets start one per card, own code one. More are started by torchrun, which tells each its RANK."
        ),
    )
    extra = forms.CharField(
        label=gettext_lazy("Additional parameters"),
        max_length=1000,
        required=False,
        help_text=gettext_lazy("For instance -keep:100 -ShowStep."),
    )

    def __init__(self, *args: Any, user: User, given: dict[str, dict[str, Any]] | None = None, **kwargs: Any) -> None:
        """`given` maps a preset's name to the values its fields begin with."""
        super().__init__(*args, user=user, **kwargs)
        self.called = {**self.called, "code_upload": "code_archive"}
        choices = [(preset.name, _(preset.title)) for preset in PRESETS.values()] + [(OWN, _("Own code"))]
        self.fields["preset"].choices = choices  # type: ignore[attr-defined]  # a field of choices, declared above
        usable = DatasetVersion.objects.usable_by(user).filter(
            annotated=True, state=DatasetVersion.State.READY, dataset__deleting=False
        )
        usable = usable.select_related("dataset").order_by("dataset__name", "-number")
        self.fields["version"].queryset = usable  # type: ignore[attr-defined]  # a choice among rows, declared above
        self.fields["eval_version"].queryset = usable  # type: ignore[attr-defined]  # a choice among rows, declared above
        self.offer_snapshots()
        self.add_params(PRESETS.values(), given or {})

    def clean_pairs(self) -> dict[str, Any]:
        return read_pairs(self.cleaned_data["pairs"])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("preset") == OWN:
            if not (data.get("code_archive") or data.get("home_path") or data.get("snapshot")):
                self.add_error("code_archive", _("Choose an archive, or name a folder in your home."))
            if not data.get("start_file"):
                self.add_error("start_file", _("Say which file of the code is run."))
        elif data.get("preset") in PRESETS:
            self.check_params(PRESETS[data["preset"]])
        return data

    def brings_code(self) -> bool:
        return self.cleaned_data.get("preset") == OWN

    def request_fields(self) -> dict[str, Any]:
        """What `jobs.submit` takes, after `take_code`."""
        data = self.cleaned_data
        preset = PRESETS.get(data["preset"])
        names = ("name", "description", "version", "eval_version", "processes", "extra")
        fields = {name: data[name] for name in names} | self.resources()
        if preset:
            return fields | {"preset": preset.name, "params": self.params_of(preset), "eval_version": None}
        own = ("start_file", "arguments", "output_path", "writes_checkpoints")
        return (
            fields
            | {"preset": "", "params": data["pairs"], "code": data["snapshot"]}
            | {name: data[name] for name in own}
        )


class RestoreForm(ParamFields, forms.Form):
    """Restore from a checkpoint, with all settings filled in and open to change."""

    checkpoint = forms.ChoiceField(label=gettext_lazy("From checkpoint"), required=False)
    gpus_per_node = forms.IntegerField(label=gettext_lazy("Cards"), min_value=0, max_value=128)
    nodes = forms.IntegerField(label=gettext_lazy("Machines"), min_value=1, max_value=64)

    def __init__(self, *args: Any, preset: Preset | None, params: dict[str, Any], choices: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["checkpoint"].choices = choices  # type: ignore[attr-defined]  # a field of choices, declared above
        self.preset = preset
        if preset:
            self.add_params([preset], {preset.name: params})

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if self.preset:
            self.check_params(self.preset)
        return data


class ParameterSetForm(ParamFields, forms.Form):
    """A name for parameters of a preset."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=50,
        validators=[TITLE],
    )
    description = forms.CharField(label=gettext_lazy("Description"), max_length=200, required=False)

    def __init__(self, *args: Any, preset: Preset, existing: ParameterSet | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.preset = preset
        self.add_params([preset], {preset.name: existing.params if existing else {}})

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        self.check_params(self.preset)
        return data
