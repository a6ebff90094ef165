from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class TrainingConfig(AppConfig):
    name = "training"
    verbose_name = _("Training")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from aiplatform.frame import navigation as side_bar
        from aiplatform.lib import messages, palette, preloads, sweeps
        from datasets.services import next_actions, related, sources
        from datasets.services import usage as dataset_usage
        from training.catalog.preset_texts import texts
        from training.catalog.task_kinds import preset_for
        from training.experiments.visualisation import panel as visualisation_panel
        from training.experiments.visualisation.navigation import tabs as visualisation_tabs
        from training.programs import request_schemas, starting_points
        from training.programs.models import CodeSnapshot
        from training.runs import folds_panel, output_datasets, output_panel, searching, usage
        from training.runs.kind import TrainingKind
        from training.runs.messages import register as register_messages
        from training.runs.models import ParameterSet
        from training.runs.navigation import tabs as run_tabs
        from training.runs.request_schema import SCHEMA
        from training.runs.starting_points import SOURCE
        from workers.core import kinds
        from workers.jobs import job_page

        kinds.register(TrainingKind())
        sources.SOURCES.register(output_datasets.SOURCE)
        job_page.PANELS.register(output_panel.PANEL)
        job_page.PANELS.register(folds_panel.PANEL)
        job_page.PANELS.register(visualisation_panel.PANEL)
        side_bar.register(run_tabs, visualisation_tabs)
        palette.register(
            palette.Command("training.new", _("New training"), "plus", Action.TRAINING_SUBMIT, "training:job-submit")
        )
        palette.register_on_objects(searching.NEW_TRAINING)
        sweeps.register("training.begin_planned")
        preloads.PRELOADS.register("training.runs.param_fields.preload")
        request_schemas.register(SCHEMA)
        starting_points.SOURCES.register(SOURCE)
        dataset_usage.register(usage.trainings_on)
        related.register(related.Related("trainings", _("Training"), Action.TRAINING_VIEW, usage.list_trainings))
        next_actions.register(
            next_actions.NextAction(
                "train",
                _("Train on this dataset"),
                "training",
                needs=Action.TRAINING_SUBMIT,
                url=lambda version: f"{reverse('training:job-submit')}?version={version.pk}",
                fits=lambda version: bool(preset_for(version)),
                rank=10,
            )
        )
        messages.register_texts(texts)
        register_messages()
        sharing.register(
            sharing.Shareable(
                "parameters",
                _("Parameter set"),
                ParameterSet,
                (sharing.VIEW, sharing.USE, sharing.MANAGE),
                needs=Action.TRAINING_SUBMIT,
                url=lambda row: reverse("training:params-detail", args=[row.pk]),
            )
        )
        ownership.register(
            ownership.Owned("parameter_sets", _("Parameter sets"), ParameterSet),
            ownership.Owned("code", _("Uploaded code"), CodeSnapshot, named=False),
        )
