"""The form of a new command."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from training.programs import layout, script
from training.programs.forms import CODE_LINES, OutputFields, ProgramForm
from training.programs.launchers import HELP, Launcher
from workers.jobs.forms.following import ArrayFields


class CommandForm(OutputFields, ArrayFields, ProgramForm):
    """A command in three blocks: what, on which data, where."""

    processes_apart = True  # they stand beside the way to start
    own = ("command", "output_path", "writes_checkpoints", "worker_command", "array")
    folded = ("output_path", "variables", "secrets", "writes_checkpoints")
    several = ("launcher", "processes", "worker_command")
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
        widget=forms.Textarea(attrs={"rows": 6, **CODE_LINES}),
        help_text=gettext_lazy(
            "A command or a bash script; it stops at the first line that fails. A script can name another "
            "interpreter in its first line."
        ),
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

    def request_fields(self) -> dict[str, Any]:
        data = self.cleaned_data
        defaults = {"launcher": data["launcher"] or Launcher.ONCE, "processes": data["processes"] or 0}
        return super().request_fields() | defaults | {"following": self.following()}
