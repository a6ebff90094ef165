"""The guide of each page: a declaration by path, read by the help link of the frame."""

from __future__ import annotations

from typing import Final

from django.utils.translation import get_language

PREFIX: Final = "/help/"

#: Beginning of a path → page of the help site. The longest beginning applies.
GUIDES: Final[dict[str, str]] = {
    "/": "",
    "/datasets/": "how-to/datasets/",
    "/annotation/": "how-to/annotate/",
    "/files/": "how-to/files/",
    "/training/": "how-to/train/",
    "/training/compare/": "how-to/experiments/",
    "/commands/": "how-to/custom-jobs/",
    "/studies/": "how-to/hyperparameter-search/",
    "/experiments/": "how-to/experiments/",
    "/reports/": "how-to/experiments/",
    "/training/visualisation/": "how-to/experiments/",
    "/environments/": "how-to/workspaces/",
    "/ports/": "how-to/ssh-and-ports/",
    "/images/": "how-to/environment-images/",
    "/templates/": "how-to/job-templates/",
    "/expert/": "how-to/job-templates/",
    "/models/": "how-to/models/",
    "/evaluations/": "how-to/evaluate/",
    "/conversions/": "how-to/convert/",
    "/services/": "how-to/endpoints/",
    "/predictions/": "how-to/batch-predictions/",
    "/videos/": "how-to/video/",
    "/edge/": "how-to/edge-devices/",
    "/push/": "how-to/export-targets/",
    "/pipelines/": "how-to/pipelines/",
    "/queue/": "how-to/jobs/",
    "/jobs/": "how-to/jobs/",
    "/tasks/": "how-to/jobs/",
    "/arrays/": "how-to/jobs/",
    "/account/": "how-to/account/",
    "/client/": "how-to/command-line/",
    "/notifications/": "how-to/account/",
    "/cluster/": "operator/nodes/",
    "/clusters/": "operator/clusters/",
    "/resource-groups/": "operator/clusters/",
    "/usage/": "operator/clusters/",
    "/people/": "operator/users/",
    "/alarms/": "operator/monitoring/",
}
#: Parts of the site that exist in Chinese.
TRANSLATED: Final = ("", "tutorials/", "how-to/", "glossary/")


def guide_of(path: str) -> str:
    """Return the page of the help site for a page of the product, as `how-to/train/`; "" is the start page."""
    return GUIDES[max((start for start in GUIDES if path.startswith(start)), key=len, default="/")]


def site_url(page: str) -> str:
    """Return the address of a page of the help site, in Chinese if the user reads Chinese and the page exists in it."""
    translated = page == "" or page.startswith(TRANSLATED[1:])
    return f"{PREFIX}zh/{page}" if translated and (get_language() or "").startswith("zh") else f"{PREFIX}{page}"


def help_url(path: str) -> str:
    """Return the address of the guide for a page of the product."""
    return site_url(guide_of(path))
