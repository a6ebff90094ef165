"""What all jobs on a model version check when they are submitted."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from inference.kit.samples.ground_truth import UNSEEN
from inference.registry import training_data
from inference.registry.models import ModelVersion
from workers.jobs import submission
from workers.jobs.resource_request import Resources, cluster_for

DEFAULT_CPUS = 2.0
MAX_NAME = 100


def check_name(name: str) -> None:
    """Refuse odd characters and names that are too long."""
    if not re.fullmatch(TITLE.regex, name) or len(name) > MAX_NAME:
        raise Invalid(TITLE.message, field="name")


def check_split(version: DatasetVersion, split: str) -> None:
    """Check that the version has the split.

    Raises:
        Invalid: names those that it has.
    """
    if split not in ("", UNSEEN) and not version.splits.get(split):
        available = ", ".join(sorted(name for name, count in version.splits.items() if name and count))
        facts = {"version": version, "split": split, "known": available or _("none")}
        raise Invalid(_("%(version)s has no split “%(split)s”. Available splits: %(known)s.") % facts, field="split")


def check_unseen(model: ModelVersion, split: str, user: User) -> None:
    """Check that the training images are known where the others are requested.

    Raises:
        Invalid.
    """
    if split == UNSEEN and training_data.for_model(model, owner=user) is None:
        message = _("The training images of %(model)s are unknown. Choose another split.")
        raise Invalid(message % {"model": model}, field="split")


def finish_checks(refusals: Refusals, *, user: User, kind: str, name: str, resources: Resources) -> Resources:
    """Check the name and the resources, and raise all refusals; returns the resources with what was left out.

    Raises:
        Invalid: a value is out of range.
        NotAMember: the user is not a member of the cluster.
    """
    with refusals:
        check_name(name)
    with refusals:
        cluster = cluster_for(user, resources.get("cluster"))
        resources = {**resources, "cluster": cluster, "cpus": resources.get("cpus") or DEFAULT_CPUS}
        if refusals:  # also report resources that no node has
            submission.check(user, kind, **resources)
    refusals.end()
    return resources
