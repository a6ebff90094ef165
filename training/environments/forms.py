"""The form of a new environment."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform import env
from aiplatform.lib import units
from training.programs.forms import ProgramForm
from workers.images.fields import ImageChoice


class TaskType(models.TextChoices):
    """Whether an environment is for one machine or for programs that run over several."""

    REGULAR = "regular", gettext_lazy("Regular: one node")
    DISTRIBUTED = "distributed", gettext_lazy("Distributed: multiple nodes")


class EnvironmentForm(ProgramForm):
    """An environment in three blocks: what, on which data, where."""

    own = ("description", "folder", "idle_hours")
    folded = ("description", "variables", "secrets", "idle_hours")
    home_path = None  # type: ignore[assignment]  # taken out: the home itself is there
    image = ImageChoice(
        empty_label=gettext_lazy("JupyterLab, with PyTorch of the platform"),
        help_text=gettext_lazy("Installed packages are kept; another image must contain JupyterLab."),
    )
    description = forms.CharField(label=gettext_lazy("Description"), max_length=300, required=False)
    folder = forms.CharField(
        label=gettext_lazy("Folder"),
        max_length=255,
        required=False,
        help_text=gettext_lazy(
            "In your home, where JupyterLab opens; created if it does not exist. Default: your home."
        ),
    )
    task_type = forms.ChoiceField(
        label=gettext_lazy("Task type"), choices=TaskType, initial=TaskType.REGULAR, required=False
    )
    nodes = forms.IntegerField(
        label=gettext_lazy("Nodes"),
        min_value=2,
        max_value=64,
        required=False,
        help_text=gettext_lazy(
            "JupyterLab runs on the first node; a terminal there reaches the others with aip-rsh 1, aip-rsh 2, …"
        ),
    )
    idle_hours = forms.FloatField(
        label=gettext_lazy("Stop after inactivity of"),
        min_value=0.01,
        required=False,
        help_text=gettext_lazy("Hours. Default: as configured on the platform."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        self.fields["code_archive"].help_text = gettext_lazy(
            "A zip or tar archive, up to 200 MiB, unpacked into the folder. Existing files are kept."
        )
        self.fields["gpus_per_node"].help_text = gettext_lazy("Per node. 0 runs on the CPU.")
        self.fields["max_runtime_min"].help_text = gettext_lazy("Default: the limit of the cluster.")
        if env.ENVIRONMENT_IDLE_HOURS:
            self.fields["idle_hours"].widget.attrs["placeholder"] = units.number(env.ENVIRONMENT_IDLE_HOURS)
        image: Any = self.fields["image"]
        image.queryset = image.queryset.filter(built_in="")

    @property
    def is_distributed(self) -> bool:
        """Whether the current form describes a distributed workspace."""
        return bool(self["task_type"].value() == TaskType.DISTRIBUTED)

    @property
    def total_cards(self) -> int | None:
        """Devices on all nodes in the current form; None while unknown."""
        try:
            return int(self["nodes"].value()) * int(self["gpus_per_node"].value())
        except (TypeError, ValueError):
            return None

    def clean(self) -> dict[str, Any]:
        """Require the number of nodes for distributed workspaces, and ignore it for others."""
        data = super().clean() or self.cleaned_data
        if data.get("task_type") != TaskType.DISTRIBUTED:
            self.errors.pop("nodes", None)
            data["nodes"] = 1
        elif data.get("nodes") is None and "nodes" not in self.errors:
            self.add_error("nodes", _("Enter the number of nodes: 2 or more."))
        return data
