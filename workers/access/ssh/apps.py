from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

#: Acts at the SSH gateway, for the audit trail.
VERBS = {
    "ssh_entered": _("connected by SSH to"),
    "ssh_refused": _("was denied access by SSH to"),
    "ssh_jumped": _("used the SSH gateway as a jump host:"),
    "ssh_password_made": _("created a one-time SSH password for"),
    "ssh_session_ended": _("ended an SSH session in"),
}


class SshConfig(AppConfig):
    name = "workers.access.ssh"
    verbose_name = _("SSH")

    def ready(self) -> None:
        from accounts.services import audit
        from workers.access.ssh import panel
        from workers.jobs import job_page

        audit.register_verbs(VERBS)
        job_page.PANELS.register(panel.PANEL)
