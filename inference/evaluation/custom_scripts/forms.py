"""Form fields of an evaluation by a custom script."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from training.programs.code_fields import CodeFields
from training.programs.models import CodeSnapshot
from training.programs.pairs import read_pairs, written_pairs
from workers.images.fields import ImageChoice

CALLED = {"code": "code_archive", "code_upload": "code_archive", "params": "pairs"}


class ScriptFields(CodeFields):
    """The code and how it is run; without a start file the platform evaluates. `saved_code` replaces an upload."""

    keeps_files = ("code_archive",)  # as a snapshot, see `take_code`
    saved_code: CodeSnapshot | None = None
    start_file = forms.CharField(
        label=gettext_lazy("Entry point"),
        max_length=255,
        required=False,
        help_text=gettext_lazy(
            "A Python file in the code, for example evaluate.py. Leave empty for the built-in evaluation."
        ),
    )
    arguments = forms.CharField(
        label=gettext_lazy("Arguments"),
        max_length=2000,
        required=False,
        help_text=gettext_lazy(
            "Arguments after the entry point. {model}, {data}, {output} and {params} are replaced by paths."
        ),
    )
    pairs = forms.CharField(
        label=gettext_lazy("Parameter file"),
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
        help_text=gettext_lazy("One name = value per line. Your code reads them from the file in AIP_PARAMS."),
    )
    output_path = forms.CharField(
        label=gettext_lazy("Output path"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("The folder your code writes to, for example runs. Default: AIP_OUTPUT_DIR."),
    )
    image = ImageChoice()
    SCRIPT = ("code_archive", "home_path", "start_file", "arguments", "pairs", "output_path", "image")

    def clean_pairs(self) -> dict[str, Any]:
        return read_pairs(self.cleaned_data["pairs"])

    def check_script(self, data: dict[str, Any]) -> None:
        """Say at their fields that code or start file are missing, where one of them is there."""
        brought = data.get("code_archive") or data.get("home_path")
        if brought and not data.get("start_file") and not self.errors.get("start_file"):
            self.add_error("start_file", _("Specify the evaluation file of your code, for example evaluate.py."))
        wrong = self.errors.get("code_archive") or self.errors.get("home_path")
        if data.get("start_file") and not (brought or data.get("snapshot") or self.saved_code or wrong):
            self.add_error("code_archive", _("Choose an archive, or a folder in your home."))

    def kept_code(self) -> CodeSnapshot | None:
        return super().kept_code() or self.saved_code

    def script(self) -> dict[str, Any]:
        """Return the fields of `scripts.ScriptRequest`, after `take_code`; empty if the platform evaluates."""
        data = self.cleaned_data
        if not data.get("start_file"):
            return {}
        texts = {name: data[name] for name in ("start_file", "arguments", "output_path", "image")}
        return texts | {"code": data.get("snapshot") or self.saved_code, "params": data["pairs"]}

    @property
    def has_script(self) -> bool:
        """Whether one of its fields has an error or something in it."""
        return any(self.errors.get(name) or self[name].value() for name in self.SCRIPT)


def initial_values(values: dict[str, Any]) -> dict[str, Any]:
    """Return the initial values of the fields for a script and its parameters; empty without a script."""
    if not values.get("start_file"):
        return {}
    texts = {name: values[name] for name in ("start_file", "arguments", "output_path")}
    return texts | {"image": values["image"], "snapshot": values["code"], "pairs": written_pairs(values["params"])}
