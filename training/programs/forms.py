"""The form of a job that runs a user's program."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib.titles import TITLE
from training.programs import script
from training.programs.code_fields import CodeFields
from training.programs.input_fields import InputFields
from workers.images.fields import ImageChoice
from workers.jobs.forms.resource_request import ResourceForm

CODE_LINES = {"spellcheck": "false", "class": "mono", "autocapitalize": "off"}


class OutputFields(forms.Form):
    """Where a program writes its results, and what the other nodes run."""

    output_path = forms.CharField(
        label=gettext_lazy("Output path"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("The folder your code writes to, for example runs. Default: AIP_OUTPUT_DIR."),
    )
    writes_checkpoints = forms.BooleanField(
        label=gettext_lazy("The program writes checkpoints to AIP_CHECKPOINT_DIR and resumes from AIP_RESUME_FROM"),
        required=False,
    )
    worker_command = forms.CharField(
        label=gettext_lazy("Command on the other nodes"),
        max_length=script.MAX_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, **CODE_LINES}),
        help_text=gettext_lazy("Only if they run something different than the first node."),
    )


class ProgramForm(CodeFields, InputFields, ResourceForm):
    """The fields of `ProgramRequest`, in three blocks: program, datasets, resources."""

    offers_root = True
    own: ClassVar[tuple[str, ...]] = ()  # fields of the kind's request that are in the form as they are
    folded: ClassVar[tuple[str, ...]] = ()  # folded fields of the first block
    several: ClassVar[
        tuple[str, ...]
    ] = ()  # folded fields about several nodes and processes, with their initial values

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        required=False,
        validators=[TITLE],
        help_text=gettext_lazy("Leave empty to derive a name."),
    )
    image = ImageChoice()

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.called = {**self.called, "code_upload": "code_archive"}
        self.fields["image"].offer(user)  # type: ignore[attr-defined]  # declared above
        self.offer_snapshots()
        self.offer_versions()

    @property
    def setting_is_wrong(self) -> bool:
        """Whether one of the folded fields of the first block has an error or something in it."""
        return any(self.errors.get(name) or self[name].value() for name in self.folded)

    @property
    def several_is_set(self) -> bool:
        """Whether one of the fields about several nodes or processes has an error or differs from its initial value."""
        return any(
            self.errors.get(name) or str(self[name].value() or "") not in ("", "0", self.fields[name].initial)
            for name in self.several
        )

    def total_devices(self) -> tuple[int, int]:
        """Return (nodes, devices in total) of the current form, even if it is incomplete."""
        nodes, devices = self.cleaned_data.get("nodes") or 1, self.cleaned_data.get("gpus_per_node") or 0
        return nodes, nodes * devices

    def request_fields(self) -> dict[str, Any]:
        """What the kind's request takes, after `take_code`."""
        data = self.cleaned_data
        fields = {name: data[name] for name in ("name", "image", "variables", "secrets", *self.own)}
        return fields | {"code": data["snapshot"], "datasets": list(data["datasets"])} | self.resources()
