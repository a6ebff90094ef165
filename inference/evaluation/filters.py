"""Filters and orders of the lists of evaluations and of parameter sets, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering, first_figure
from aiplatform.objects.filters import ObjectFilters, OfObject, Words
from inference.evaluation.jobs.pages import ModelJobFilters, job_orders
from inference.registry import metric_labels
from inference.registry.models import Model


class EvaluationFilters(ModelJobFilters):
    search = Words("job__name", "model_label", "version_label", label=_("Name, model or dataset"))
    model = OfObject(
        "model_version__model", Model, label=_("Model"), all_label=_("All models"),
        none_text=_("No evaluations of this model."),
    )  # fmt: skip
    orders = job_orders(
        dataset=Lower("version_label"),
        figure=first_figure("metrics", metric_labels.sort_keys()),
    )


class EvaluationSetFilters(ObjectFilters):
    search = Words("name", "description", "version_label", "task", label=_("Name, description, dataset or task"))
    orders = Ordering(
        "-created",
        created="pk",
        name=Lower("name"),
        task="task",
        owner=Lower("owner__username"),
        changed="updated_at",
    )
