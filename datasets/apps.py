"""Datasets: images, versions, imports and uploads."""

from __future__ import annotations

from django.apps import AppConfig
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class DatasetsConfig(AppConfig):
    name = "datasets"
    verbose_name = _("Datasets")

    def ready(self) -> None:
        from accounts.access import ownership, sharing
        from accounts.access.permissions import Action
        from aiplatform.lib import palette, search, sweeps
        from aiplatform.pages.home import sections as home_sections
        from datasets import searching
        from datasets.messages import register as register_messages
        from datasets.models import Dataset
        from datasets.services import choosing, home, merging, rewriting, usage

        palette.register(
            palette.Command("datasets.new", _("New dataset"), "plus", Action.DATASETS_CREATE, "datasets:create")
        )
        search.register("dataset", _("Dataset"), "datasets", needs=Action.DATASETS_VIEW, find=searching.datasets)
        sweeps.register("datasets.sweep")
        home_sections.SECTIONS.register(home.STORAGE)
        register_messages()
        rewriting.REWRITES.register(choosing.REWRITE, merging.REWRITE)
        usage.register(merging.using)
        sharing.register(
            sharing.Shareable(
                "dataset",
                _("Dataset"),
                Dataset,
                (sharing.VIEW, sharing.USE, sharing.MANAGE),
                needs=Action.DATASETS_EDIT,
                url=lambda row: reverse("datasets:detail", args=[row.pk]),
            )
        )
        ownership.register(ownership.Owned("datasets", _("Datasets"), Dataset))
