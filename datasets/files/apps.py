from urllib.parse import urlencode

from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class FilesConfig(AppConfig):
    name = "datasets.files"
    verbose_name = _("Files")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from aiplatform.lib import sweeps
        from datasets.files import datasets, usage
        from datasets.files.models import SharedFolder
        from datasets.files.ownership import HomeFolder
        from datasets.services import sources
        from workers.resources.monitoring import snapshot_reader

        sweeps.register("files.sweep")
        sources.SOURCES.register(datasets.SOURCE)
        ownership.register(HomeFolder())
        snapshot_reader.register_shares(usage.quota_shares)
        sharing.register(
            sharing.Shareable(
                "folder",
                _("Folder"),
                SharedFolder,
                (sharing.VIEW,),
                needs=Action.JOBS_SUBMIT,
                url=lambda row: f"{reverse('files:list')}?{urlencode({'path': row.path})}",
            )
        )
