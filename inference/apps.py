from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = _("Inference")

    def ready(self) -> None:
        from accounts import fact_words, ownership, sharing
        from accounts.permissions import Action
        from accounts.services import audit, notify
        from aiplatform import navigation
        from aiplatform.lib import messages, search, sweeps
        from datasets import usage, ways
        from datasets.services import rewriting, sources
        from inference import kind, outputs_panel, searching, task_panel
        from inference.batch import completing, drafts, predictions
        from inference.batch import kind as batch_kind
        from inference.conversion import conversions, words
        from inference.conversion import kind as conversion_kind
        from inference.edge import words as edge_words
        from inference.edge.side_bar import entries as edge_entries
        from inference.edge.tables import EdgeGroup
        from inference.evaluation_sets.tables import EvaluationSet
        from inference.messages import register as register_messages
        from inference.models import Model, Service
        from inference.monitoring import telling as drift
        from inference.push import words as push_words
        from inference.push.side_bar import entries as push_entries
        from inference.push.tables import PushTarget
        from inference.services import evaluations, mending, publishing, starting_weights, trail
        from inference.sharing import kind as sharing_kind
        from inference.trying import panel as trial_panel
        from inference.video import events as video_events
        from inference.video import kind as video_kind
        from inference.video.tables import VideoFile
        from inference.views import figures
        from training import publishers
        from training import starting_weights as weights_of_trainings
        from workers import kinds
        from workers.jobs import job_page

        kinds.register(kind.EvaluationKind())
        kinds.register(kind.ModelTaskKind())
        kinds.register(kind.ServiceKind())
        kinds.register(sharing_kind.HostKind())
        kinds.register(conversion_kind.ConversionKind())
        kinds.register(video_kind.VideoKind())
        kinds.register(batch_kind.PredictionKind())
        register_messages()
        notify.KINDS.register(drift.KIND)
        notify.KINDS.register(video_events.KIND)
        push_words.register()
        job_page.PANELS.register(outputs_panel.PANEL)
        job_page.PANELS.register(task_panel.PANEL)
        job_page.PANELS.register(trial_panel.PANEL)
        audit.register_verbs(trail.VERBS)
        audit.register_verbs(edge_words.VERBS)
        audit.register_verbs(push_words.VERBS)
        navigation.register(navigation.Source("work", edge_entries))
        navigation.register(navigation.Source("work", push_entries))
        fact_words.register_names(trail.FACTS | push_words.FACTS)
        publishers.register(publishing.keep_model)
        publishers.register_address(publishing.model_page)
        weights_of_trainings.MODELS.register(starting_weights.MODELS)
        sweeps.register("inference.sweep")
        sweeps.register("inference.collect")
        usage.register(evaluations.using)
        usage.register(conversions.using)
        usage.register(predictions.using)
        rewriting.WAYS.register(drafts.WAY, completing.WAY)
        sources.SOURCES.register(drafts.SOURCE)
        sources.SOURCES.register(mending.SOURCE)
        ways.register(
            ways.Way(
                "evaluate",
                _("Evaluate a model on this"),
                "evaluation",
                needs=Action.EVALUATIONS_SUBMIT,
                url=lambda version: f"{reverse('inference:evaluation-new')}?version={version.pk}",
                fits=lambda version: version.annotated,
                rank=30,
            )
        )
        ways.register(
            ways.Way(
                "predict",
                _("Let a model answer this"),
                "predict",
                needs=Action.EVALUATIONS_SUBMIT,
                url=lambda version: f"{reverse('inference:prediction-new')}?version={version.pk}",
                fits=lambda version: True,
                rank=35,
            )
        )
        messages.register_texts(figures.texts)
        messages.register_texts(words.texts)
        sharing.register(
            sharing.Shareable(
                "model",
                _("Model"),
                Model,
                (sharing.VIEW, sharing.USE, sharing.MANAGE),
                needs=Action.MODELS_MANAGE,
                url=lambda row: reverse("inference:model-detail", args=[row.pk]),
            )
        )
        sharing.register(
            sharing.Shareable(
                "evaluation_parameters",
                _("Evaluation parameters"),
                EvaluationSet,
                (sharing.VIEW, sharing.USE, sharing.MANAGE),
                needs=Action.EVALUATIONS_SUBMIT,
                url=lambda row: reverse("inference:evaluation-set", args=[row.pk]),
            )
        )
        ownership.register(
            ownership.Owned("evaluation_sets", _("Evaluation parameter sets"), EvaluationSet),
            ownership.Owned("models", _("Models"), Model),
            ownership.Owned("services", _("Services"), Service),
            ownership.Owned("videos", _("Videos"), VideoFile, named=False),
            ownership.Owned("edge_groups", _("Groups of edge devices"), EdgeGroup),
            ownership.Owned("push_targets", _("Push targets"), PushTarget),
        )
        search.register("model", _("Model"), "models", needs=Action.MODELS_VIEW, find=searching.models)
