"""Delete what no container image needs any more: copies in this machine's engine, blobs in the data folder."""

from __future__ import annotations

import logging
import time

from django.db.models import Q

from workers.core.states import FINAL
from workers.images.containers import committing, copies
from workers.images.containers.reference import OWN
from workers.images.models import Image, ImageUse, NodeCopy, State
from workers.images.store import paths

log = logging.getLogger(__name__)
MIN_AGE_S = 24 * 3600.0  # blobs serve machines that come later, and retries


def wanted() -> set[str]:
    """Names in an engine of images with a row now, or used by a job that has not ended."""
    rows = Image.objects.filter(kind=Image.Kind.CONTAINER)
    fetched = rows.exclude(source=Image.Source.SAVED)
    named = fetched.exclude(digest="").values_list("reference", "digest")
    live = ImageUse.objects.filter(~Q(job__state__in=FINAL), ~Q(digest=""), image__in=fetched)
    names = {copies.name_of(*each) for each in (*named, *live.values_list("image__reference", "digest"))}
    saved = rows.filter(source=Image.Source.SAVED, state__in=[State.SAVING, State.READY])  # a failed one is made anew
    return names | set(saved.values_list("reference", flat=True))


def tidy_engine() -> int:
    """Delete unneeded copies from this node's engine; return how many. Running containers keep their image."""
    own = copies.engine(5.0)
    if own is None:
        return 0
    keep, forgotten = wanted(), 0
    try:
        names = [name for row in own.images() for name in row.get("RepoTags") or [] if name.startswith(f"{OWN}:")]
        saved = Image.objects.filter(state=State.SAVING).values_list("pk", flat=True)
        busy = {committing.helper(pk) for pk in saved}
        for name in own.named(committing.helpers()):
            if name not in busy:
                own.remove(name)
        for name in names:
            if name not in keep:
                own.remove_image(name)
                forgotten += 1
    except OSError as exc:
        log.info("engine=%s images not looked through: %s", own.path, exc)
    return forgotten


def tidy_blobs() -> int:
    """Delete old blobs whose image is on all nodes that requested it, or deleted; return how many.

    A blob is only a copy of what the registry has: whoever misses one fetches it again.
    """
    folder = paths.all_blobs()
    if not folder.is_dir() or NodeCopy.objects.filter(state=State.NEW).exists():
        return 0
    removed = 0
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if time.time() - path.stat().st_mtime > MIN_AGE_S:
            path.unlink(missing_ok=True)
            removed += 1
    return removed
