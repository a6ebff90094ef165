"""Tell people which of their pipelines name a secret of theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from django.db.models import F, Max, Q
from django.urls import reverse

from accounts.models import User
from accounts.services.named_secrets import Use
from aiplatform.lib.errors import DomainError
from inference.pipelines import graph, inlining
from inference.pipelines.kinds import KINDS
from inference.pipelines.models import PipelineVersion
from inference.pipelines.steps.secrets import names_of

MAX_PIPELINES = 500  # pipelines that are looked through, the newest first


def in_pipelines(user: User) -> dict[str, list[Use]]:
    """Return the newest versions of the user's pipelines, and of those run by the user's triggers, by secret name."""
    rows = PipelineVersion.objects.visible_to(user).annotate(newest=Max("pipeline__versions__number"))
    own = Q(pipeline__owner=user) | Q(pipeline__triggers__owner=user)
    uses: dict[str, list[Use]] = {}
    newest = rows.filter(own, number=F("newest")).select_related("pipeline").order_by("-pipeline").distinct()
    for version in newest[:MAX_PIPELINES]:
        use = Use(version.pipeline.name, reverse("pipelines:detail", args=[version.pipeline_id]))
        for name in names_in(version.spec):
            uses.setdefault(name, []).append(use)
    return uses


def lent(version: PipelineVersion, user: User) -> list[str]:
    """Return the user's secrets that a run of a version passes to its steps, inner pipelines included."""
    spec, authors = graph.parse(version.spec), frozenset(filter(None, [version.created_by_id]))
    with suppress(DomainError):  # which is reported when it starts
        params = inlining.parameters_of(spec, {})
        spec = inlining.inline(spec, user, params, within=version.pipeline_id, authors=authors)
    return names_in(graph.canonical(spec))


def names_in(spec: Mapping[str, Any]) -> list[str]:
    """The secrets that the steps of a specification name, as far as they say them without `${…}`."""
    return sorted(set(_names(spec)))


def _names(spec: Mapping[str, Any]) -> Iterator[str]:
    for step in spec.get("steps", {}).values():
        kind = KINDS.find(str(step.get("kind", "")))
        for param in kind.params if kind else ():
            if param.form in ("secret", "secrets"):
                yield from names_of(step.get("with", {}).get(param.name))
        request = step.get("with", {}).get("request")
        request_secrets = request.get("secrets") if isinstance(request, Mapping) else None
        yield from names_of(list(request_secrets)) if isinstance(request_secrets, Mapping) else ()
