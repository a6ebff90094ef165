"""Context of every page: version, theme, side bar, cluster, rights."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts.access.permissions import Action
from accounts.services import notify
from aiplatform import __version__, env
from aiplatform.frame import badges
from aiplatform.frame.navigation import current_entry, navigation, side_key, tab_strip
from aiplatform.lib import disk
from aiplatform.lib.header_sources import ClusterGlance, cluster_glance, troubles


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return version, theme, side bar, cluster, and rights: `{% if may.training_submit %}`."""
    user = getattr(request, "user", None)
    is_signed_in = user is not None and user.is_authenticated
    actions = user.actions() if user is not None and is_signed_in else frozenset()

    def cluster() -> ClusterGlance:
        return cluster_glance(user) if actions else ClusterGlance()

    counts = badges.counts_for(user) if user is not None and is_signed_in else {}
    groups = navigation(getattr(request, "navigation_path", request.path), actions, counts)
    strip = tab_strip(request.path, groups)
    return {
        "version": __version__,
        "theme": user.theme if user is not None and is_signed_in else "",
        "may": {action.name.lower(): action in actions for action in Action},
        "navigation": groups,
        "side_key": side_key(request.path, groups),
        "side_folded": " ".join(group["key"] for group in groups if group["folded"]),
        "section": current_entry(groups),
        "section_tabs": strip,
        "tab_label": next((tab["label"] for tab in strip if tab["current"]), ""),
        "cluster": SimpleLazyObject(cluster),  # read by pages with a top bar only
        "bell": SimpleLazyObject(lambda: notify.unread_of(user) if user and actions else notify.Unread()),
        "behind": getattr(request, "behind", None),  # the administrator who acts for `user`
        "disk_full": SimpleLazyObject(lambda: is_signed_in and disk.has_no_room(env.DATA_ROOT)),
        "troubles": SimpleLazyObject(lambda: troubles() if is_signed_in else []),
        "simulated_gpus": env.FAKE_GPUS,
        "request_id": getattr(request, "request_id", ""),
    }
