from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

#: Sentences with facts that stand in Job, Attempt and JobEvent, as their `gettext` calls say them.
WRITTEN = (
    "It could not be started: %(e)s",
    "The program was ended by %(signal)s (%(words)s).",
    "The program was ended by signal %(signal)s.",
    "The program ended with exit code %(code)s. Its log says more.",
    "The part on its node %(rank)s ended.",
    "%(why)s It starts again in %(seconds)s s.",
    "Machine %(node)s stopped answering.",
    "Makes room for job %(job)s, which is urgent.",
    "Makes room for job %(job)s: these devices were borrowed from its cluster.",
    "Makes room for job %(job)s: these machines are kept for such work now.",
    ("Placed on %(nodes)s.", "Placed together on %(nodes)s."),
)


class WorkersConfig(AppConfig):
    name = "workers"
    verbose_name = _("Machines and jobs")

    def ready(self) -> None:
        from aiplatform.lib import sentences
        from workers import kinds
        from workers.kind import CommandKind

        kinds.register(CommandKind())
        sentences.register_sentences(WRITTEN)
