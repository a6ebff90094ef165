"""Disk usage and quota of home folders.

A measurement walks all files, so its result is stored in `HomeUsage` and reused. A page measures for at most two
seconds; the periodic sweep completes measurements that took longer and measures again where the usage may have changed.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Iterator
from datetime import timedelta

from django.db.models import F, Q
from django.urls import reverse
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform import env
from aiplatform.lib import trees
from aiplatform.lib.errors import DomainError
from datasets.files import homes
from datasets.files.models import HomeUsage
from workers.core.models import AlarmRule, Job
from workers.resources.monitoring.snapshot import Share

MAX_AGE = timedelta(seconds=60)
"""Older measurements are repeated when a page needs the usage."""
MAX_DURATION_S = 2.0
"""Time limit of a measurement while a page waits; the sweep repeats an incomplete one without this limit."""
SWEEP_LIMIT_S = 300.0
"""Time limit of the one incomplete measurement that a sweep repeats."""
REMEASURE_AFTER = 10 * MAX_AGE
"""Age after which a sweep measures a home again if jobs may write to it or it is nearly full."""
REMEASURE_LIMIT_S = 15.0
"""Time limit of all measurements that a sweep repeats; a home that is not finished becomes an incomplete one."""
NEARLY_FULL_SHARE = 0.8
"""Share of the quota from which a home counts as nearly full, unless an alert has a lower threshold."""
ALERT_KEYS = ("home_low", "home_full")
MAX_BYTES = 1 << 60
"""Upper bound of the stored size, because sparse files can report any size."""


class HomeFull(DomainError, code="home_full", status=413):
    """The quota of a home is, or would be, exceeded."""


def for_user(user: User) -> HomeUsage:
    """Return the usage of a user's home.

    A complete measurement older than `MAX_AGE` is repeated for up to `MAX_DURATION_S`; an incomplete one (`whole` is
    False) is returned as it is, because only a sweep has time to complete it.
    """
    row = HomeUsage.objects.filter(user=user).first()
    if row is not None and (row.measured_at > now() - MAX_AGE or not row.whole):
        return row
    return measure(user, at_most_s=MAX_DURATION_S)


def measure(user: User, *, at_most_s: float) -> HomeUsage:
    """Measure the home of a user and store the result.

    After the time limit the larger of the counted part and the last complete result is stored, as a lower bound.
    """
    size = files = 0
    is_complete = True
    deadline = time.monotonic() + at_most_s
    with trees.opened(homes.home_of(user)) as home:
        try:
            for _folder, _name, info in trees.walk(home, until=deadline):
                files += 1
                if stat.S_ISREG(info.st_mode):
                    size += info.st_size
        except trees.TooLong:
            is_complete = False
    values = {"size_bytes": min(size, MAX_BYTES), "files": files, "whole": is_complete, "measured_at": now()}
    last_complete = HomeUsage.objects.filter(user=user, whole=True).first()
    if not is_complete and last_complete is not None and last_complete.size_bytes > size:
        values |= {"size_bytes": last_complete.size_bytes, "files": last_complete.files}
    return HomeUsage.objects.update_or_create(user=user, defaults=values)[0]


def require_room(user: User, size_bytes: int) -> None:
    """Check that `size_bytes` more fit into the quota of a home.

    Raises:
        HomeFull: they do not fit.
    """
    if not env.HOME_QUOTA_BYTES:
        return
    used = for_user(user).size_bytes
    if used + size_bytes > env.HOME_QUOTA_BYTES:
        raise HomeFull(
            _("Your storage quota has %(room)s bytes left. Delete what you no longer need, then try again.")
            % {"room": f"{max(env.HOME_QUOTA_BYTES - used, 0):,}"},
            quota=env.HOME_QUOTA_BYTES,
            used=used,
        )


def require_within_quota(user: User) -> None:
    """Check that a home does not exceed its quota, before a job starts that writes to it.

    The file system does not enforce the quota, so running jobs can exceed it.

    Raises:
        HomeFull: the home exceeds its quota.
    """
    used = for_user(user).size_bytes if env.HOME_QUOTA_BYTES else 0
    if used > env.HOME_QUOTA_BYTES:
        raise HomeFull(
            _("Your files use %(used)s of %(quota)s bytes. Delete some of them on the page Files, then try again.")
            % {"used": f"{used:,}", "quota": f"{env.HOME_QUOTA_BYTES:,}"},
            quota=env.HOME_QUOTA_BYTES,
            used=used,
        )


def count_file(user: User, size_bytes: int) -> None:
    """Add a file that the platform stored in a home to the last measurement."""
    HomeUsage.objects.filter(user=user).update(size_bytes=F("size_bytes") + size_bytes, files=F("files") + 1)


def mark_outdated(user: User) -> None:
    """Mark the last measurement as outdated after files were deleted; the next reader measures again."""
    HomeUsage.objects.filter(user=user).update(measured_at=now() - MAX_AGE, whole=True)


def find_over_quota(user: User) -> HomeUsage | None:
    """Return the last measurement if it exceeds the quota, otherwise None. Does not read the disk."""
    if not env.HOME_QUOTA_BYTES:
        return None
    return HomeUsage.objects.filter(user=user, size_bytes__gt=env.HOME_QUOTA_BYTES).first()


def quota_shares() -> Iterator[Share]:
    """Yield the used share of the quota in percent, for alerts: one per active user whose home is nearly full."""
    if not env.HOME_QUOTA_BYTES:
        return
    rows = HomeUsage.objects.filter(size_bytes__gte=_nearly_full_bytes(), user__is_active=True)
    for pk, name, used in rows.order_by("user").values_list("user", "user__username", "size_bytes"):
        yield Share(name, 100 * used / env.HOME_QUOTA_BYTES, user=pk, of="home", page=reverse("files:list"))


def _nearly_full_bytes() -> float:
    """Return the size from which a home counts as nearly full: below it no alert can fire."""
    percents = AlarmRule.objects.filter(key__in=ALERT_KEYS).values_list("threshold", flat=True)
    return min([NEARLY_FULL_SHARE, *(percent / 100 for percent in percents)]) * env.HOME_QUOTA_BYTES


def sweep() -> None:
    """Complete the oldest incomplete measurement, then measure homes again that may exceed the quota."""
    incomplete = HomeUsage.objects.filter(whole=False, measured_at__lt=now() - REMEASURE_AFTER).order_by("measured_at")
    for row in incomplete.select_related("user")[:1]:
        if not measure(row.user, at_most_s=SWEEP_LIMIT_S).whole:
            HomeUsage.objects.filter(pk=row.pk).update(measured_at=now())
    if env.HOME_QUOTA_BYTES:
        _remeasure()


def _remeasure() -> None:
    """Measure homes whose usage may have changed unnoticed: those of owners of live jobs, and nearly full ones."""
    deadline = time.monotonic() + REMEASURE_LIMIT_S
    never_measured = Q(home_usage=None, pk__in=Job.objects.live().values("owner"))
    changing = Q(pk__in=Job.objects.live().values("owner")) | Q(home_usage__size_bytes__gte=_nearly_full_bytes())
    old = Q(home_usage__whole=True, home_usage__measured_at__lt=now() - REMEASURE_AFTER)
    due = User.objects.filter(never_measured | (changing & old)).order_by(
        F("home_usage__measured_at").asc(nulls_first=True)
    )
    for user in due:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            return
        measure(user, at_most_s=remaining_s)
