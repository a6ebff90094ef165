"""Forms of trainings: submit, restore, parameter sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib import ids, row_choices
from aiplatform.lib.pages import errors_shown_on
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion, Upload
from training.catalog.version_fields import VersionChoice, VersionChoices
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.programs import script
from training.programs.forms import CODE_LINES, OutputFields, ProgramForm
from training.programs.launchers import HELP, Launcher
from training.programs.pairs import read_pairs
from training.runs import explicit_mode, parameter_sets
from training.runs.models import ParameterSet, ParameterSetVersion
from training.runs.param_fields import ParamFields
from workers.jobs.forms.following import FollowingFields
from workers.jobs.forms.resource_request import ResourceForm

OWN = "own"


#: Fields of own code as they stand in a request.
OWN_FIELDS = (
    "start_file", "command", "worker_command", "launcher", "image", "variables", "secrets", "arguments", "output_path",
    "writes_checkpoints", "eval_version",
)  # fmt: skip

#: Fields that the page shows for own code alone.
SHOWN_FOR_OWN = (*OWN_FIELDS, "pairs", "datasets", "code_archive", "home_path", "snapshot")

#: Fields that the page shows for presets alone.
SHOWN_FOR_PRESETS = ("upload_id", "set_version")


class SubmitForm(ParamFields, OutputFields, FollowingFields, ProgramForm):
    """A training in three blocks: what, on which data, on which cards."""

    keeps_files = ("code_archive",)  # as a snapshot, see `take_code`
    shares_usual_fields = True
    folded = ("variables", "secrets", "output_path", "writes_checkpoints", "pairs")
    several = ("launcher", "worker_command")
    root_of = OWN  # it stands there for own code alone
    description = forms.CharField(label=gettext_lazy("Description"), max_length=500, required=False)
    preset = forms.ChoiceField(label=gettext_lazy("Program"), choices=[], widget=forms.RadioSelect)
    start_file = forms.CharField(
        label=gettext_lazy("Entry point"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("A Python file in the code, for example train.py."),
    )
    arguments = forms.CharField(
        label=gettext_lazy("Arguments"),
        max_length=2000,
        required=False,
        help_text=gettext_lazy(
            "Arguments after the entry point. {data}, {output}, {params} and {resume} are replaced by paths."
        ),
    )
    command = forms.CharField(
        label=gettext_lazy("or a command line"),
        max_length=script.MAX_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, **CODE_LINES}),
        help_text=gettext_lazy(
            "A command or a bash script, for example python -m cells.train --lr 0.1. No code upload is needed."
        ),
    )
    launcher = forms.ChoiceField(
        label=gettext_lazy("Launcher"),
        choices=[("", gettext_lazy("Automatic")), *Launcher.choices],
        required=False,
        help_text=HELP,
    )
    pairs = forms.CharField(
        label=gettext_lazy("Parameters"),
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        help_text=gettext_lazy("One name = value per line. Your code reads them from the file in AIP_PARAMS."),
    )
    version = VersionChoice(
        DatasetVersion.objects.none(),
        label=gettext_lazy("Dataset"),
        required=False,
        empty_label=gettext_lazy("Choose a dataset"),
    )
    upload_id = forms.CharField(max_length=32, required=False, widget=forms.HiddenInput)  # data that comes with it
    eval_version = VersionChoice(
        DatasetVersion.objects.none(),
        label=gettext_lazy("Second dataset"),
        help_text=gettext_lazy("For evaluation; your code finds it in AIP_DATASETS with the role eval."),
        required=False,
        empty_label=gettext_lazy("none"),
    )
    datasets = VersionChoices(
        DatasetVersion.objects.none(),
        label=gettext_lazy("Additional datasets"),
        required=False,
        help_text=gettext_lazy("All datasets are listed in AIP_DATASETS, with their names and folders."),
    )
    nodes = forms.IntegerField(label=gettext_lazy("Nodes"), min_value=1, max_value=64, initial=1)
    min_nodes = forms.IntegerField(
        label=gettext_lazy("Minimum nodes"),
        min_value=1,
        max_value=64,
        required=False,
        help_text=gettext_lazy(
            "The job then starts with as many as are free, and continues with as many after one is lost. Leave "
            "empty for all or none."
        ),
    )
    processes = forms.IntegerField(
        label=gettext_lazy("Processes per node"),
        min_value=0,
        max_value=64,
        initial=0,
        help_text=gettext_lazy(
            "0: presets start one process per GPU, custom code starts one. More processes are started by "
            "torchrun, which sets RANK."
        ),
    )
    explicit = forms.BooleanField(required=False, widget=forms.HiddenInput)  # large-scale mode, for presets
    set_version = forms.ModelChoiceField(
        ParameterSetVersion.objects.none(), required=False, widget=forms.HiddenInput
    )  # what the parameters were begun from
    extra = forms.CharField(
        label=gettext_lazy("Additional parameters"),
        max_length=1000,
        required=False,
        help_text=gettext_lazy("For example -keep:100 -ShowStep."),
    )

    def __init__(
        self, *args: Any, user: User, initial_params: dict[str, dict[str, Any]] | None = None, **kwargs: Any
    ) -> None:
        """Create the form; `initial_params` maps a preset's name to the initial values of its fields."""
        super().__init__(*args, user=user, **kwargs)
        self.called = {**self.called, "upload": "upload_id"}
        choices = [(preset.name, _(preset.title)) for preset in self.presets()] + [(OWN, _("Custom code"))]
        self.fields["preset"].choices = choices  # type: ignore[attr-defined]  # a field of choices, declared above
        self.fields["set_version"].queryset = parameter_sets.versions_for(user)  # type: ignore[attr-defined]  # a choice among rows, declared above
        self.is_explicit = bool(self["explicit"].value())
        self.add_params(self.presets(), initial_params or {})

    def offer_versions(self) -> None:
        usable = DatasetVersion.objects.usable_by(self.user).for_choice().order_by("dataset__name", "-number")
        row_choices.offer(usable, *(self.fields[name] for name in ("version", "eval_version", "datasets")))

    def presets(self) -> Sequence[Preset]:
        """Return the presets that can be chosen, besides custom code."""
        return list(PRESETS.values())

    def clean_pairs(self) -> dict[str, Any]:
        return read_pairs(self.cleaned_data["pairs"])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        self._forget_hidden(data)
        self.errors.pop(
            "set_version", None
        )  # a note in a hidden field: a set that is gone or no longer shared is left out
        if data.get("preset") == OWN:
            brought = data.get("code_archive") or data.get("home_path") or data.get("snapshot")
            if not brought and not data.get("command") and not self.errors.get("command"):
                where = "code_archive" if "code_archive" in self.fields else "home_path"  # a text says no file
                self.add_error(where, _("Choose an archive, a folder in your home, or a command."))
            if not data.get("start_file") and not data.get("command") and not self.errors.get("command"):
                self.add_error("start_file", _("Specify the entry point of the code, or a command line."))
        elif data.get("preset") in PRESETS:
            if data.get("upload_id"):  # it is what the person did last, see upload.js
                data["version"] = None
            self.check_params(PRESETS[data["preset"]])
        if self.is_explicit and data.get("preset"):
            preset = PRESETS.get(data["preset"])
            with errors_shown_on(self):
                params = self.params_of(preset) if preset else {}
                explicit_mode.check(preset, params, data_comes=bool(data.get("upload_id")))
        return data

    def _forget_hidden(self, data: dict[str, Any]) -> None:
        """Drop values in hidden fields of another choice, which the user could not correct."""
        chosen = data.get("preset")
        others = [preset for preset in PRESETS.values() if preset.name != chosen]
        hidden = [f"{preset.name}__{param.name}" for preset in others for param in preset.parameters]
        of_others = SHOWN_FOR_PRESETS if chosen == OWN else SHOWN_FOR_OWN
        for name in (*hidden, *of_others) if chosen else ():
            self.errors.pop(name, None)
            data.pop(name, None)

    def brings_code(self) -> bool:
        return self.cleaned_data.get("preset") == OWN

    @property
    def resources_open(self) -> bool:
        """Whether the folded resources show: one of them has an error, or something else than devices is requested."""
        names = (*ResourceForm.base_fields, "nodes", "min_nodes", "processes", "extra")
        is_wrong = any(self.errors.get(name) for name in names)
        return is_wrong or self.several_is_set or self.following_is_set or bool(self["extra"].value())

    def request_fields(self) -> dict[str, Any]:
        """What `jobs.submit` takes, after `take_code`."""
        data = self.cleaned_data
        preset = PRESETS.get(data["preset"])
        names = ("name", "description", "version", "processes", "extra", "explicit")
        fields = {name: data[name] for name in names} | {"following": self.following()} | self.resources()
        if preset:
            fields.pop("root_inside", None)  # its box is for own code alone, and not shown
            return fields | {"preset": preset.name, "params": self.params_of(preset), "set_version": self._set(preset)}
        own = {name: data[name] for name in OWN_FIELDS} | {"datasets": list(data["datasets"])}
        return fields | own | {"preset": "", "params": data["pairs"], "code": data["snapshot"]}

    def _set(self, preset: Preset) -> ParameterSetVersion | None:
        """The parameter set that was begun from, unless another preset was chosen since."""
        begun: ParameterSetVersion | None = self.cleaned_data.get("set_version")
        return begun if begun and begun.parameter_set.preset == preset.name else None

    def begun_from(self) -> ParameterSetVersion | None:
        """Return the parameter set that the page was started from."""
        number = ids.number(str(self["set_version"].value() or ""))
        rows = self.fields["set_version"].queryset.select_related("parameter_set")  # type: ignore[attr-defined]  # a choice among rows, declared above
        version: ParameterSetVersion | None = rows.filter(pk=number).first() if number else None
        return version

    def kept_upload(self, user: User) -> Upload | None:
        """Return the file uploaded with a refused form, if it still exists."""
        upload_id = str(self["upload_id"].value() or "")
        upload: Upload | None = Upload.objects.visible_to(user).filter(pk=upload_id).first() if upload_id else None
        return upload


class OwnCodeForm(SubmitForm):
    """A training with custom code, without a choice of presets.

    `from_preset` keeps the preset of a request that the YAML editor shows; its parameters are then in `pairs`.
    """

    from_preset = forms.ChoiceField(
        choices=[(name, name) for name in PRESETS], required=False, widget=forms.HiddenInput
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.fields["preset"].widget = forms.HiddenInput()
        self.fields["preset"].required = False
        self.fields["preset"].initial = OWN
        del self.fields["min_nodes"]

    def presets(self) -> Sequence[Preset]:
        return ()

    def clean_preset(self) -> str:
        return OWN

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        for name in ("code_archive", "home_path", "start_file") if data.get("from_preset") else ():
            self.errors.pop(name, None)
        return data


class RestoreForm(ParamFields, forms.Form):
    """Restore from a checkpoint, with all settings filled in and open to change."""

    checkpoint = forms.ChoiceField(label=gettext_lazy("From checkpoint"), required=False)
    gpus_per_node = forms.IntegerField(label=gettext_lazy("GPUs"), min_value=0, max_value=128)
    nodes = forms.IntegerField(label=gettext_lazy("Nodes"), min_value=1, max_value=64)

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
    visibility = forms.ChoiceField(
        label=gettext_lazy("Visible to"), choices=ParameterSet.Visibility, initial=ParameterSet.Visibility.PRIVATE
    )

    def __init__(self, *args: Any, preset: Preset, params: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """`params` are what the fields begin with, in place of the preset's defaults."""
        super().__init__(*args, **kwargs)
        self.preset = preset
        self.add_params([preset], {preset.name: dict(params or {})})

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        self.check_params(self.preset)
        return data

    def values(self) -> dict[str, Any]:
        """What `parameter_sets.save` takes."""
        named = {name: self.cleaned_data[name] for name in ("name", "description", "visibility")}
        return named | {"preset": self.preset.name, "params": self.params_of(self.preset)}
