from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

#: Sentences with facts that stand in Job, Attempt and JobEvent, as their `gettext` calls say them.
WRITTEN = (
    "It could not be started: %(e)s",
    "It could not be started: preparing it took longer than %(seconds)s s.",
    "The program was ended by %(signal)s (%(words)s).",
    "The program was ended by signal %(signal)s.",
    "The program ended with exit code %(code)s. Its log says more.",
    "The part on its node %(rank)s ended.",
    "%(why)s It starts again in %(seconds)s s.",
    "Machine %(node)s stopped answering.",
    "Makes room for job %(job)s, which is urgent.",
    "Makes room for job %(job)s: these devices were borrowed from its cluster.",
    "Makes room for job %(job)s: these machines are kept for such work now.",
    "Joined from %(address)s.",
    "Silent for %(seconds)s s.",
    ("Placed on %(nodes)s.", "Placed together on %(nodes)s."),
)


#: Acts of operators, for the audit trail.
VERBS = {
    "node_token_made": _("made a token for a machine:"),
    "node_joined": _("let the machine join:"),
    "node_drained": _("drained the machine"),
    "node_undrained": _("gave work again to the machine"),
    "node_removed": _("removed the machine"),
}


class WorkersConfig(AppConfig):
    name = "workers"
    verbose_name = _("Machines and jobs")

    def ready(self) -> None:
        from accounts.services import audit
        from aiplatform.lib import sentences
        from workers import kinds
        from workers.kind import CommandKind

        kinds.register(CommandKind())
        audit.register_verbs(VERBS)
        sentences.register_sentences(WRITTEN)
