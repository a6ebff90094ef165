from django.contrib import admin
from unfold.admin import ModelAdmin

from aiplatform.lib.admin import LookOnly
from training.models import CodeSnapshot, ParameterSet, TrainingJob


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
class ParameterSetAdmin(ModelAdmin):
    list_display = ["name", "owner", "preset", "updated_at"]
    list_filter = ["preset"]
    search_fields = ["name", "owner__username"]


@admin.register(CodeSnapshot)
class CodeSnapshotAdmin(LookOnly):
    list_display = ["origin", "owner", "source", "files", "size_bytes", "created_at"]
    search_fields = ["origin", "owner__username"]
