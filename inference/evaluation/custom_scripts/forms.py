"""The fields of a form by which somebody's own script judges."""

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
    """Code and what is run of it; without a start file ours judges. `kept` is used where no code is brought."""

    keeps_files = ("code_archive",)  # as a snapshot, see `take_code`
    kept: CodeSnapshot | None = None
    start_file = forms.CharField(
        label=gettext_lazy("Start file"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("A Python file in the code, for instance evaluate.py. Left empty: no own script."),
    )
    arguments = forms.CharField(
        label=gettext_lazy("Run parameters"),
        max_length=2000,
        required=False,
        help_text=gettext_lazy("Words after the start file. {model}, {data}, {output} and {params} become paths."),
    )
    pairs = forms.CharField(
        label=gettext_lazy("Parameter file"),
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
    image = ImageChoice()
    SCRIPT = ("code_archive", "home_path", "start_file", "arguments", "pairs", "output_path", "image")

    def clean_pairs(self) -> dict[str, Any]:
        return read_pairs(self.cleaned_data["pairs"])

    def check_script(self, data: dict[str, Any]) -> None:
        """Say at their fields that code or start file are missing, where one of them is there."""
        brought = data.get("code_archive") or data.get("home_path")
        if brought and not data.get("start_file") and not self.errors.get("start_file"):
            self.add_error("start_file", _("Say which file of your code judges, for instance evaluate.py."))
        wrong = self.errors.get("code_archive") or self.errors.get("home_path")
        if data.get("start_file") and not (brought or data.get("snapshot") or self.kept or wrong):
            self.add_error("code_archive", _("Choose an archive, or name a folder in your home."))

    def kept_code(self) -> CodeSnapshot | None:
        return super().kept_code() or self.kept

    def script(self) -> dict[str, Any]:
        """The fields of `scripts.ScriptRequest`, after `take_code`; nothing where ours judges."""
        data = self.cleaned_data
        if not data.get("start_file"):
            return {}
        words = {name: data[name] for name in ("start_file", "arguments", "output_path", "image")}
        return words | {"code": data.get("snapshot") or self.kept, "params": data["pairs"]}

    @property
    def has_script(self) -> bool:
        """Whether one of its fields has an error or something in it."""
        return any(self.errors.get(name) or self[name].value() for name in self.SCRIPT)


def begun(given: dict[str, Any]) -> dict[str, Any]:
    """Initial values of the fields for what `scripts.of` and its parameters say; nothing where ours judged."""
    if not given.get("start_file"):
        return {}
    words = {name: given[name] for name in ("start_file", "arguments", "output_path")}
    return words | {"image": given["image"], "snapshot": given["code"], "pairs": written_pairs(given["params"])}
