"""The form of a new study: a preset or own code, and for each parameter one value or a range."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib.errors import DomainError
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from training.catalog import param_labels
from training.catalog.task_kinds import TASKS
from training.catalog.version_fields import VersionChoice
from training.presets.preset import Param, Preset
from training.programs import request_body
from training.programs.code_fields import CodeFields
from training.programs.pairs import read_pairs
from training.runs import parameters
from training.runs.param_fields import ParamFields
from training.studies import objectives, space
from training.studies.creating import NOT_SEARCHED, StudyRequest
from training.studies.limits import Limits
from training.studies.models import Study
from workers.jobs.forms.resource_request import ResourceForm

DIRECTIONS = [
    (objectives.MAXIMIZE, gettext_lazy("maximize")),
    (objectives.MINIMIZE, gettext_lazy("minimize")),
]
TAKES = [(objectives.LAST, gettext_lazy("the last value")), (objectives.BEST, gettext_lazy("the best value"))]
PRUNERS = [
    ("", gettext_lazy("None: every trial runs to its end")),
    (objectives.MEDIAN, gettext_lazy("Median: prune trials that are worse than half of the others")),
    (objectives.ASHA, gettext_lazy("Successive halving (ASHA): only the best continue")),
]
LINES = {"rows": 4, "spellcheck": "false", "class": "mono", "autocapitalize": "off"}
EXAMPLES = {"lr": "0.001 .. 0.1 log", "batch_size": "16 .. 256 log", "width": "64 .. 256 step 32"}
SHOWN_FIRST = ("lr", "weight_decay", "batch_size", "architecture", "width", "height")


class StudyForm(ParamFields, CodeFields, ResourceForm):
    """What is searched, what is wanted, by whom it is chosen, and how much it may use."""

    keeps_files = ("code_archive",)
    name = forms.CharField(label=gettext_lazy("Name"), max_length=80, validators=[TITLE])
    description = forms.CharField(label=gettext_lazy("Description"), max_length=500, required=False)
    version = VersionChoice(
        DatasetVersion.objects.none(),
        label=gettext_lazy("Dataset"),
        required=False,
        empty_label=gettext_lazy("Choose a dataset"),
    )
    start_file = forms.CharField(
        label=gettext_lazy("Entry point"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("A Python file in the code, for example train.py."),
    )
    command = forms.CharField(
        label=gettext_lazy("or a command line"),
        max_length=32_768,
        required=False,
        widget=forms.Textarea(attrs=LINES),
        help_text=gettext_lazy("A command or a bash script. It reads its parameters from the JSON file in AIP_PARAMS."),
    )
    pairs = forms.CharField(
        label=gettext_lazy("Fixed parameters"),
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs=LINES),
        help_text=gettext_lazy("One name = value per line."),
    )
    ranges = forms.CharField(
        label=gettext_lazy("Search space"),
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs=LINES),
        help_text=gettext_lazy("One range per line: lr = 0.0001 .. 0.1 log, layers = 1 .. 8, mode = a, b"),
    )
    key = forms.CharField(
        label=gettext_lazy("Metric"),
        max_length=60,
        help_text=gettext_lazy("The name used by the program to report it, for example val/accuracy."),
        widget=forms.TextInput(attrs={"list": "study-curves", "spellcheck": "false"}),
    )
    direction = forms.ChoiceField(label=gettext_lazy("Objective"), choices=DIRECTIONS)
    take = forms.ChoiceField(label=gettext_lazy("Value"), choices=TAKES)
    key2 = forms.CharField(
        label=gettext_lazy("Second metric"),
        max_length=60,
        required=False,
        help_text=gettext_lazy("For two objectives, such as accuracy and size. Optional."),
        widget=forms.TextInput(attrs={"list": "study-curves", "spellcheck": "false"}),
    )
    direction2 = forms.ChoiceField(label=gettext_lazy("Objective"), choices=DIRECTIONS, required=False)
    sampler = forms.ChoiceField(label=gettext_lazy("Sampler"), choices=Study.Sampler)
    pruner = forms.ChoiceField(
        label=gettext_lazy("Pruner"),
        choices=PRUNERS,
        required=False,
        help_text=gettext_lazy("Presets report more points when a larger share of their time is used for evaluation."),
    )
    warmup = forms.IntegerField(
        label=gettext_lazy("Warm-up points per trial"), min_value=1, max_value=1000, initial=1, required=False
    )
    max_trials = forms.IntegerField(label=gettext_lazy("Trials"), min_value=1, max_value=1000, initial=20)
    at_once = forms.IntegerField(
        label=gettext_lazy("Parallel trials"),
        min_value=1,
        max_value=100,
        initial=2,
        help_text=gettext_lazy("Trials without free GPUs wait in the queue."),
    )
    time_limit_h = forms.FloatField(
        label=gettext_lazy("Maximum time"),
        min_value=0.01,
        max_value=8760,
        required=False,
        help_text=gettext_lazy("No new trial starts afterwards. Leave empty for no limit."),
    )
    hours_limit = forms.FloatField(
        label=gettext_lazy("GPU-hours in total"),
        min_value=0.001,
        required=False,
        help_text=gettext_lazy("Core-hours, for trials without GPUs. Leave empty for no limit."),
    )
    target = forms.FloatField(
        label=gettext_lazy("Target value"),
        required=False,
        help_text=gettext_lazy("Metric value at which the study ends. Leave empty to continue."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        help_text=gettext_lazy("The same seed makes the same choices for the same results."),
    )
    warm_start = forms.ModelMultipleChoiceField(
        Study.objects.none(),
        label=gettext_lazy("Start with the trials of"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Studies of the same parameters and the same metric."),
    )
    first = forms.CharField(
        label=gettext_lazy("First trials"),
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs=LINES),
        help_text=gettext_lazy("One set per line: lr = 0.01, batch_size = 64. Missing parameters are chosen."),
    )
    visibility = forms.ChoiceField(label=gettext_lazy("Visible to"), choices=Study.Visibility)
    called: Mapping[str, str] = {
        **ResourceForm.called, "objectives": "key", "space": "ranges", "time_limit_s": "time_limit_h",
        "enqueue": "first", "code_upload": "code_archive", "training": "command",
    }  # fmt: skip

    def __init__(self, *args: Any, user: User, preset: Preset | None, **kwargs: Any) -> None:
        """`preset` None is own code."""
        super().__init__(*args, user=user, **kwargs)
        self.preset = preset
        usable = DatasetVersion.objects.usable_by(user).for_choice().order_by("dataset__name", "-number")
        self.fields["version"].queryset = usable.filter(annotated=True) if preset else usable  # type: ignore[attr-defined]  # a choice among rows, declared above
        self.fields["version"].required = preset is not None
        earlier = Study.objects.visible_to(user).filter(preset=preset.name if preset else "")
        self.fields["warm_start"].queryset = earlier  # type: ignore[attr-defined]  # a choice among rows, declared above
        self.offer_snapshots()
        self.searched: list[Param] = []
        if preset is None:
            return
        for name in ("start_file", "command", "pairs", "ranges", "code_archive", "home_path", "snapshot"):
            del self.fields[name]
        self.add_params([preset], {})
        for param in preset.parameters:
            if param.kind == "text" or param.name in NOT_SEARCHED:
                continue
            label = _("Range of %(name)s") % {"name": param_labels.label(param.name)}
            widget = forms.TextInput(attrs={"placeholder": _example(param), "spellcheck": "false", "class": "mono"})
            self.fields[f"range__{param.name}"] = forms.CharField(
                label=label, max_length=2000, required=False, widget=widget
            )
            self.searched.append(param)
            for field in (self.fields[f"{preset.name}__{param.name}"], self.fields[f"range__{param.name}"]):
                if not isinstance(field.widget, forms.CheckboxInput):
                    field.widget.attrs["class"] = f"{field.widget.attrs.get('class', '')} input".strip()
        if not preset.finish:
            self.fields["pruner"].choices = PRUNERS[:1]  # type: ignore[attr-defined]  # a field of choices

    def brings_code(self) -> bool:
        return self.preset is None

    def rows(self) -> list[dict[str, Any]]:
        """For the template: each parameter with its value and its range, those that are searched most first."""
        if self.preset is None:
            return []
        rows = [
            {
                "name": param.name,
                "label": param_labels.label(param.name),
                "value": self[f"{self.preset.name}__{param.name}"],
                "range": self[f"range__{param.name}"],
                "advanced": param.advanced,
                "about": f"{_(param.help)} {parameters.bounds(param)}",
            }
            for param in self.searched
        ]
        return sorted(rows, key=lambda row: SHOWN_FIRST.index(row["name"]) if row["name"] in SHOWN_FIRST else 99)

    def clean_pairs(self) -> dict[str, Any]:
        return read_pairs(self.cleaned_data["pairs"])

    def clean_first(self) -> list[dict[str, Any]]:
        lines = [line for line in self.cleaned_data["first"].splitlines() if line.strip()]
        return [read_pairs(line.replace(",", "\n")) for line in lines]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if self.preset:
            self.check_params(self.preset)
            for name in [param.name for param in self.searched if data.get(f"range__{param.name}")]:
                self.errors.pop(f"{self.preset.name}__{name}", None)  # its value does not count
                try:
                    space.read([f"{name} = {data[f'range__{name}']}"])
                except DomainError as exc:
                    self.add_error(f"range__{name}", exc.message)
        return data

    def study_request(self) -> StudyRequest:
        """What `creating.create` takes, after `take_code`."""
        data = self.cleaned_data
        goals = [{"key": data["key"], "direction": data["direction"], "take": data["take"]}]
        if data.get("key2"):
            goals.append(
                {"key": data["key2"], "direction": data["direction2"] or objectives.MAXIMIZE, "take": data["take"]}
            )
        pruner = {"name": data["pruner"], "warmup": data.get("warmup") or 1} if data.get("pruner") else None
        hours = data.get("time_limit_h")
        return StudyRequest(
            name=data["name"], description=data["description"], training=self._training(), space=self._space(),
            objectives=goals, sampler=data["sampler"], pruner=pruner, seed=data.get("seed"),
            visibility=data["visibility"], warm_start=list(data["warm_start"]), enqueue=data["first"],
            limits=Limits(
                max_trials=data["max_trials"], at_once=data["at_once"], hours_limit=data.get("hours_limit"),
                time_limit=timedelta(hours=hours) if hours else None, target=data.get("target"),
            ),
        )  # fmt: skip

    def _training(self) -> dict[str, Any]:
        """Return the body of the training API that corresponds to this form."""
        data = self.cleaned_data
        fields = request_body.of_form(self, data, ("gpus_per_node", "cpus", "share", "preemptible"))
        for name in ("datasets", "image", "secrets", "variables"):
            fields.pop(name, None)
        body = {name: value for name, value in fields.items() if value is not None}
        body["version"] = request_body.number_of(data.get("version"))
        if self.preset:
            searched = {param.name for param in self.searched if data.get(f"range__{param.name}")}
            changed = parameters.changed(self.preset, _typed(self.preset, self.params_of(self.preset)))
            fixed = {name: value for name, value in changed.items() if name not in searched}
            return body | {"preset": self.preset.name, "params": fixed}
        return body | {"params": data["pairs"], "start_file": data["start_file"], "command": data["command"]}

    def _space(self) -> list[str]:
        data = self.cleaned_data
        if self.preset is None:
            return [line for line in data["ranges"].splitlines() if line.strip()]
        named = [(param.name, data.get(f"range__{param.name}")) for param in self.searched]
        return [f"{name} = {text}" for name, text in named if text]


def _typed(preset: Preset, values: Mapping[str, Any]) -> dict[str, Any]:
    params = {param.name: param for param in preset.parameters}
    return {name: parameters.read_one(params[name], value) for name, value in values.items()}


def _example(param: Param) -> str:
    """A range as one could search it."""
    if example := EXAMPLES.get("width" if param.name == "height" else param.name):
        return example
    if param.kind == "bool":
        return "true, false"
    if param.kind == "str":
        return ", ".join(param.choices[:2]) or "a, b"
    default = param.default
    if not isinstance(default, int | float) or not default:
        return "1 .. 8" if param.kind == "int" else "0 .. 0.5"
    low, high = default / 4, default * 4
    low, high = max(low, param.minimum or low), min(high, param.maximum or high)
    if param.kind == "int":
        return f"{max(1, int(low))} .. {int(high)} log"
    return f"{low:.3g} .. {high:.3g} log"


def figure_of(preset: Preset | None) -> str:
    """The curve that one would usually want of a preset."""
    task = TASKS.find(preset.task) if preset else None
    return task.figure[0] if task else "loss"
