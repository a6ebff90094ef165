"""Template tags of the sample project: the chip of its rows, and the button that loads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template
from django.template.context import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from aiplatform.pages.sample import progress
from aiplatform.pages.sample.models import SampleProject

register = template.Library()

KINDS = ("dataset", "job", "model", "service")
MAX_PROJECTS = 1000  # that an operator sees marked


@register.simple_tag(takes_context=True)
def sample_chip(context: Context, kind: str, pk: int) -> SafeString | str:
    """Mark a row of a list that belongs to a sample project; the page reads the projects once.

    Args:
        kind: dataset, job, model or service.
    """
    if pk not in _ids(context)[kind]:
        return ""
    title = _("Part of the sample project")
    return format_html('<span class="tag sample-chip" title="{}">{}</span>', title, _("Sample"))


def _ids(context: Context) -> Mapping[str, set[int]]:
    request = context.get("request")
    user = getattr(request, "user", None)
    if request is None or user is None or not user.is_authenticated:
        return {kind: set() for kind in KINDS}
    if not hasattr(request, "sample_ids"):
        projects = SampleProject.objects.all() if user.sees_everything else SampleProject.objects.visible_to(user)
        rows = list(projects.order_by("-pk").values_list(*(f"{kind}_id" for kind in KINDS))[:MAX_PROJECTS])
        request.sample_ids = {kind: {row[index] for row in rows} - {None} for index, kind in enumerate(KINDS)}
    ids: Mapping[str, set[int]] = request.sample_ids
    return ids


@register.inclusion_tag("sample/_load.html", takes_context=True)
def load_sample(context: Context, style: str = "") -> dict[str, Any]:
    """Button that loads the sample project, for users who may create datasets and have none.

    Args:
        style: further class of the button.
    """
    user = context["user"]
    is_offered = user.can(Action.DATASETS_CREATE) and progress.find(user) is None
    return {"is_offered": is_offered, "style": style, "csrf_token": context.get("csrf_token")}
