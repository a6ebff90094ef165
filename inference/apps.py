from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = _("Endpoints")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from accounts.presentation import audit_facts
        from accounts.services import audit, notify
        from aiplatform.frame import navigation
        from aiplatform.lib import messages, palette, search, sweeps
        from aiplatform.pages.home import sections as home_sections
        from datasets.services import next_actions, related, rewriting, sources, usage
        from inference.batch import completion, drafts, predictions
        from inference.batch import kind as batch_kind
        from inference.conversion import conversions, labels
        from inference.conversion import kind as conversion_kind
        from inference.conversion.views import ConversionPages
        from inference.delivery.edge import labels as edge_words
        from inference.delivery.edge import sampling
        from inference.delivery.edge import speeds as edge_speeds
        from inference.delivery.edge.models import EdgeGroup
        from inference.delivery.edge.navigation import tabs as edge_tabs
        from inference.delivery.edge.views import EdgeGroupPages
        from inference.delivery.push import labels as push_words
        from inference.delivery.push.models import PushTarget
        from inference.delivery.push.navigation import tabs as push_tabs
        from inference.evaluation import error_datasets, evaluations
        from inference.evaluation import home as evaluation_home
        from inference.evaluation import kind as evaluation_kind
        from inference.evaluation.models import EvaluationSet
        from inference.evaluation.navigation import tabs as evaluation_tabs
        from inference.evaluation.views import EvaluationPages
        from inference.messages import register as register_messages
        from inference.registry import (
            hardware_speeds,
            history,
            metric_labels,
            model_page,
            outputs_panel,
            pretrained_weights,
            retention,
            task_panel,
            training_results,
            withdrawals,
        )
        from inference.registry import kind as model_kind
        from inference.registry import search as model_search
        from inference.registry.import_trials import panel as trial_panel
        from inference.registry.models import Model
        from inference.serving import kind as service_kind
        from inference.serving import views as service_views
        from inference.serving import withdrawal
        from inference.serving.feedback import samples
        from inference.serving.models import Service
        from inference.serving.monitoring import notices as drift
        from inference.serving.shared_hosts import kind as sharing_kind
        from inference.video import events as video_events
        from inference.video import kind as video_kind
        from inference.video.models import VideoFile
        from training.runs import pretrained_weights as weights_of_trainings
        from training.runs import publishers
        from workers.core import kinds
        from workers.jobs import job_page

        model_job_kinds = (
            evaluation_kind.EvaluationKind(),
            conversion_kind.ConversionKind(),
            video_kind.VideoKind(),
            batch_kind.PredictionKind(),
        )
        kinds.register(*model_job_kinds)
        kinds.register(model_kind.ModelTaskKind())
        kinds.register(service_kind.ServiceKind())
        kinds.register(sharing_kind.HostKind())
        register_messages()
        retention.HOLDERS.register(*service_kind.HOLDERS, *(kind.holder() for kind in model_job_kinds))
        withdrawals.USES.register(withdrawal.USE)
        model_page.SECTIONS.register(service_views.services_of_version)
        model_page.LISTS.register(EvaluationPages, ConversionPages, service_views.ServicePages, EdgeGroupPages)
        hardware_speeds.SOURCES.register(edge_speeds.of_devices)
        samples.HOLDERS.register(sampling.HOLDER)
        notify.KINDS.register(drift.KIND)
        notify.KINDS.register(video_events.KIND)
        push_words.register()
        edge_words.register()
        job_page.PANELS.register(outputs_panel.PANEL)
        job_page.PANELS.register(task_panel.PANEL)
        job_page.PANELS.register(trial_panel.PANEL)
        audit.register_verbs(history.VERBS)
        audit.register_verbs(edge_words.VERBS)
        audit.register_verbs(push_words.VERBS)
        navigation.register(edge_tabs, push_tabs, evaluation_tabs)
        audit_facts.register_names(history.FACTS | push_words.FACTS)
        publishers.register(training_results.keep_model)
        publishers.register_result(training_results.result)
        weights_of_trainings.MODELS.register(pretrained_weights.MODELS)
        home_sections.SECTIONS.register(evaluation_home.RESULTS, evaluation_home.BEST_MODELS)
        sweeps.register("inference.sweep")
        sweeps.register("inference.collect")
        usage.register(evaluations.using)
        related.register(
            related.Related("evaluations", _("Evaluations"), Action.EVALUATIONS_VIEW, evaluations.list_evaluations)
        )
        usage.register(conversions.using)
        usage.register(predictions.using)
        rewriting.REWRITES.register(drafts.REWRITE, completion.REWRITE)
        sources.SOURCES.register(drafts.SOURCE)
        sources.SOURCES.register(error_datasets.SOURCE)
        sources.SOURCES.register(samples.SOURCE)
        next_actions.register(
            next_actions.NextAction(
                "evaluate",
                _("Evaluate a model on this dataset"),
                "evaluation",
                needs=Action.EVALUATIONS_SUBMIT,
                url=lambda version: f"{reverse('inference:evaluation-new')}?version={version.pk}",
                fits=lambda version: version.annotated,
                rank=30,
            )
        )
        next_actions.register(
            next_actions.NextAction(
                "predict",
                _("Run predictions"),
                "predict",
                needs=Action.EVALUATIONS_SUBMIT,
                url=lambda version: f"{reverse('inference:prediction-new')}?version={version.pk}",
                fits=lambda version: True,
                rank=35,
            )
        )
        messages.register_texts(metric_labels.texts)
        messages.register_texts(labels.texts)
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
            ownership.Owned("services", _("Endpoints"), Service),
            ownership.Owned("videos", _("Video analytics"), VideoFile, named=False),
            ownership.Owned("edge_groups", _("Edge device groups"), EdgeGroup),
            ownership.Owned("push_targets", _("Export targets"), PushTarget),
        )
        palette.register(
            palette.Command(
                "models.import", _("Import a model"), "bring", Action.MODELS_MANAGE, "inference:model-upload"
            ),
            palette.Command(
                "evaluations.new", _("New evaluation"), "plus", Action.EVALUATIONS_SUBMIT, "inference:evaluation-new"
            ),
            palette.Command(
                "conversions.new", _("New conversion"), "plus", Action.EVALUATIONS_SUBMIT, "inference:conversion-new"
            ),
            palette.Command(
                "predictions.new",
                _("New batch prediction"),
                "plus",
                Action.EVALUATIONS_SUBMIT,
                "inference:prediction-new",
            ),
            palette.Command(
                "endpoints.new", _("New endpoint"), "plus", Action.SERVICES_MANAGE, "inference:service-new"
            ),
        )
        palette.register_on_objects(model_search.DEPLOY, model_search.EVALUATE)
        search.register("model", _("Model"), "models", needs=Action.MODELS_VIEW, find=model_search.models)
