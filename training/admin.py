from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from aiplatform.lib.admin import LookOnly
from aiplatform.lib.errors import DomainError
from training.programs.models import CodeSnapshot
from training.runs import drafts
from training.runs.models import ParameterSet, TrainingDefaults, TrainingJob


@admin.register(TrainingJob)
class TrainingJobAdmin(LookOnly):
    """For looking: a training is steered on its own page, where the rules are."""

    list_display = ["job", "owner", "state", "preset", "version_label", "created"]
    list_filter = ["preset", "job__state", "job__cluster"]
    list_select_related = ["job__owner"]
    search_fields = ["job__name", "description", "job__owner__username", "version_label"]
    list_per_page = 50

    @admin.display(ordering="job__owner__username")
    def owner(self, training: TrainingJob) -> str:
        return str(training.job.owner)

    @admin.display(ordering="job__state")
    def state(self, training: TrainingJob) -> str:
        return training.job.get_state_display()

    @admin.display(ordering="job__created_at")
    def created(self, training: TrainingJob) -> object:
        return training.job.created_at


@admin.register(ParameterSet)
class ParameterSetAdmin(LookOnly):
    """For looking: a set is changed on its own page, which keeps its versions."""

    list_display = ["name", "owner", "preset", "updated_at"]
    list_filter = ["preset"]
    search_fields = ["name", "owner__username"]


@admin.register(CodeSnapshot)
class CodeSnapshotAdmin(LookOnly):
    list_display = ["origin", "owner", "source", "files", "size_bytes", "created_at"]
    search_fields = ["origin", "owner__username"]


class DefaultsForm(forms.ModelForm):
    """Refuses what a training would refuse."""

    class Meta:
        model = TrainingDefaults
        fields = ("extra",)

    def clean_extra(self) -> str:
        line: str = self.cleaned_data["extra"].strip()
        try:
            drafts.check_standing(line)
        except DomainError as exc:
            raise forms.ValidationError(exc.message) from None
        return line


@admin.register(TrainingDefaults)
class TrainingDefaultsAdmin(ModelAdmin):
    """One row, never two."""

    form = DefaultsForm

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and not TrainingDefaults.objects.exists()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
