"""Global search over models, and commands of the palette on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.palette import ObjectCommand, Target
from aiplatform.lib.search import Hit, filter_by_text
from inference.registry.models import Model, ModelVersion

MAX_VERSIONS = 50  # newest matching versions, among which the newest of each model is looked up


def models(user: User, terms: str, limit: int) -> Iterator[Hit]:
    """Find models by name."""
    for model in filter_by_text(Model.objects.visible_to(user), terms, "name")[:limit]:
        yield Hit(model.name, reverse("inference:model-detail", args=[model.pk]))


def newest_versions(page: str, fits: Callable[[ModelVersion], bool]) -> Callable[[User, str, int], Iterator[Target]]:
    """Return a function that yields the newest version of each matching model, with the form `page` filled in.

    Args:
        fits: whether the form accepts the version; older versions are not offered instead.
    """

    def find(user: User, text: str, limit: int) -> Iterator[Target]:
        versions = filter_by_text(ModelVersion.objects.visible_to(user), text, "model__name")
        newest: dict[int, ModelVersion] = {}
        for version in versions.select_related("model").order_by("-pk")[:MAX_VERSIONS]:
            newest.setdefault(version.model_id, version)
        for version in [version for version in newest.values() if fits(version)][:limit]:
            yield Target(version.model.name, f"{reverse(page)}?model_version={version.pk}")

    return find


def can_be_deployed(version: ModelVersion) -> bool:
    """Return whether an endpoint can serve the version."""
    return version.can_serve and not version.is_archived


DEPLOY = ObjectCommand(
    "models.deploy",
    _("Deploy model %(name)s"),
    "rocket",
    Action.SERVICES_MANAGE,
    find=newest_versions("inference:service-new", can_be_deployed),
    is_next_step=True,
)
EVALUATE = ObjectCommand(
    "models.evaluate",
    _("Evaluate model %(name)s"),
    "evaluation",
    Action.EVALUATIONS_SUBMIT,
    find=newest_versions("inference:evaluation-new", lambda version: version.can_be_evaluated),
)
