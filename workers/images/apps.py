from django.apps import AppConfig
from django.utils.translation import pgettext_lazy


class ImagesConfig(AppConfig):
    name = "workers.images"
    verbose_name = pgettext_lazy("container", "Images")

    def ready(self) -> None:
        from django.urls import reverse

        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from accounts.presentation import audit_sentences
        from accounts.services import audit
        from aiplatform.lib import search, sweeps
        from workers.core import kinds, pins, placement
        from workers.execution import launch
        from workers.images import messages, panel, searching
        from workers.images.containers.launch import arrive
        from workers.images.kind import EngineKind
        from workers.images.models import Image, RegistryLogin
        from workers.images.services import uses
        from workers.images.store import below, boxes
        from workers.jobs import job_page

        kinds.register(EngineKind())
        messages.register()
        pins.register(pins.Source("images", boxes.machines, boxes.count_by_node))
        job_page.PANELS.register(job_page.Panel("image", "images/_panel.html", panel.shown, order=60))
        placement.SOURCES.register(uses.tiers_of_waiting)
        launch.ARRIVALS.register(arrive)
        sweeps.register("images.sweep")
        audit.register_verbs(messages.VERBS)
        audit_sentences.register(audit_sentences.Page(Image, "images:detail"))
        label = pgettext_lazy("container", "Images")
        sharing.register(
            sharing.Shareable(
                "image",
                pgettext_lazy("container", "Image"),
                Image,
                (sharing.VIEW, sharing.USE, sharing.MANAGE),
                needs=Action.JOBS_SUBMIT,
                url=lambda row: reverse("images:detail", args=[row.pk]),
                check=below.check_share,
            )
        )
        ownership.register(ownership.Owned("images", label, Image))
        ownership.register(
            ownership.Owned(
                "registry_logins", pgettext_lazy("registry", "Registry credentials"), RegistryLogin, named=False
            )
        )
        search.register("image", label, "images", needs=Action.JOBS_VIEW, find=searching.images)
