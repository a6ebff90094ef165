from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TrainingConfig(AppConfig):
    name = "training"
    verbose_name = _("Training")

    def ready(self) -> None:
        from accounts import ownership
        from aiplatform.lib import messages
        from datasets import usage as dataset_usage
        from training import usage
        from training.catalog_texts import texts
        from training.commands.kind import CommandKind
        from training.kind import TrainingKind
        from training.messages import register as register_messages
        from training.models import CodeSnapshot, ParameterSet
        from workers import kinds

        kinds.register(TrainingKind())
        kinds.register(CommandKind())
        dataset_usage.register(usage.trainings_on)
        messages.register_texts(texts)
        register_messages()
        ownership.register(
            ownership.Owned("parameter_sets", _("Parameter sets"), ParameterSet),
            ownership.Owned("code", _("Uploaded code"), CodeSnapshot, named=False),
        )
