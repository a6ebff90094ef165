"""The form of a new command."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib.titles import TITLE
from training.programs import layout, script
from training.programs.code_fields import CodeFields
from training.programs.input_fields import InputFields
from training.programs.launchers import HELP, Launcher
from workers.images.fields import ImageChoice
from workers.jobs.forms.following import ArrayFields
from workers.jobs.forms.resource_request import ResourceForm


class CommandForm(CodeFields, InputFields, ArrayFields, ResourceForm):
    """A command in three blocks: what, on which data, where."""

    processes_apart = True  # they stand beside the way to start
    offers_root = True
    field_order = (
        "command", "name", "image", "home_path", "variables", "secrets", "output_path", "writes_checkpoints",
        "datasets", "cluster", "gpus_per_node", "share", "cpus", "memory_gib", "max_disk_gib", "nodes", "launcher",
        "processes",
        "worker_command", "priority", "urgent", "preemptible", "root_inside", "max_runtime_min", "array", "after",
        "after_end", "outputs_of", "retries", "retry_pause_s",
    )  # fmt: skip

    command = forms.CharField(
        label=gettext_lazy("Command"),
        max_length=script.MAX_LENGTH,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono", "autocapitalize": "off"}),
        help_text=gettext_lazy(
            "A command or a bash script; it stops at the first line that fails. A script can name another "
            "interpreter in its first line."
        ),
    )
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        required=False,
        validators=[TITLE],
        help_text=gettext_lazy("Leave empty to derive it from the command."),
    )
    output_path = forms.CharField(
        label=gettext_lazy("Output path"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("The folder your code writes to, for example runs. Default: AIP_OUTPUT_DIR."),
    )
    image = ImageChoice()
    writes_checkpoints = forms.BooleanField(
        label=gettext_lazy("The program writes checkpoints to AIP_CHECKPOINT_DIR and resumes from AIP_RESUME_FROM"),
        required=False,
    )
    nodes = forms.IntegerField(label=gettext_lazy("Nodes"), min_value=1, max_value=64, initial=1)
    launcher = forms.ChoiceField(
        label=gettext_lazy("Launcher"),
        choices=Launcher,
        initial=Launcher.ONCE,
        required=False,
        help_text=HELP,
    )
    processes = forms.IntegerField(
        label=gettext_lazy("Processes per node"),
        min_value=0,
        max_value=layout.MAX_PROCESSES,
        initial=0,
        required=False,
        help_text=gettext_lazy("0: one per GPU."),
    )
    worker_command = forms.CharField(
        label=gettext_lazy("Command on the other nodes"),
        max_length=script.MAX_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono", "autocapitalize": "off"}),
        help_text=gettext_lazy("Only if they run something different than the first node."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.called = {**self.called, "code_upload": "code_archive"}
        self.offer_snapshots()
        self.offer_versions()
        self.fields["image"].offer(user)  # type: ignore[attr-defined]  # declared above

    @property
    def setting_is_wrong(self) -> bool:
        """Whether one of the folded fields of the first block has an error or something in it."""
        names = ("output_path", "variables", "secrets", "writes_checkpoints")
        return any(self.errors.get(name) or self[name].value() for name in names)

    @property
    def several_is_set(self) -> bool:
        """Whether one of the fields about several machines or processes has an error or something in it."""
        names = ("launcher", "processes", "worker_command")
        return any(self.errors.get(name) for name in names) or any(
            self[name].value() not in (None, "", 0, "0", Launcher.ONCE) for name in names
        )

    def total_devices(self) -> tuple[int, int]:
        """Return (nodes, devices in total) of the current form, even if it is incomplete."""
        nodes, cards = self.cleaned_data.get("nodes") or 1, self.cleaned_data.get("gpus_per_node") or 0
        return nodes, nodes * cards

    def request_fields(self) -> dict[str, Any]:
        """What `CommandRequest` takes, after `take_code`."""
        data = self.cleaned_data
        names = ("command", "name", "image", "output_path", "variables", "secrets", "writes_checkpoints", "array")
        own = {name: data[name] for name in (*names, "worker_command")} | {
            "launcher": data["launcher"] or Launcher.ONCE,
            "processes": data["processes"] or 0,
            "following": self.following(),
        }
        return own | {"code": data["snapshot"], "datasets": list(data["datasets"])} | self.resources()
