from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

#: Acts on ports of jobs, for the audit trail.
VERBS = {
    "port_published": _("published a port of the job"),
    "port_withdrawn": _("unpublished a port of the job"),
    "port_opened": _("opened a port of the job"),
}


class PortsConfig(AppConfig):
    name = "workers.access.proxy"
    label = "ports"
    verbose_name = _("Ports")

    def ready(self) -> None:
        from accounts.access import sharing
        from accounts.access.permissions import Action
        from accounts.services import audit
        from workers.access.proxy import panel
        from workers.access.proxy.models import PublishedPort
        from workers.jobs import job_page, job_tabs

        audit.register_verbs(VERBS)
        sharing.register(
            sharing.Shareable(
                "port",
                _("Port"),
                PublishedPort,
                (sharing.VIEW,),
                Action.JOBS_CONTROL,
                panel.page_of,
                help_text=_("Users with view access to a port can open it and do everything its program allows."),
            )
        )
        job_page.PANELS.register(job_page.Panel("ports", "ports/_panel.html", panel.shown, 20, job_tabs.PORTS))
