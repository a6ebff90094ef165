"""How much a home holds, and how much it may hold."""

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
MAX_DURATION_S = 2.0
"""Time limit while a page waits; an incomplete measurement is continued by a sweep."""
SWEEP_S = 300.0
LOOK_AGAIN = 10 * MAX_AGE
"""How old may be what is known of a home that programs write to, or that is nearly full."""
ROUND_S = 15.0
"""For all that a sweep looks at again; a home that takes longer has a sweep of its own."""
NEARLY = 0.8
ALARMS = ("home_low", "home_full")
MAX_BYTES = 1 << 60
"""Larger than any home; sparse files report any size."""


class HomeFull(DomainError, code="home_full", status=413):
    """A home would hold more than one person may keep."""


def for_user(user: User) -> HomeUsage:
    """Return the usage of a user's home, at most a minute old if it can be measured in two seconds."""
    row = HomeUsage.objects.filter(user=user).first()
    if row is not None and (row.measured_at > now() - MAX_AGE or not row.whole):
        return row
    return measure(user, at_most_s=MAX_DURATION_S)


def measure(user: User, *, at_most_s: float) -> HomeUsage:
    """Measure the home of a user; after the time limit the counted part is stored as lower bound."""
    size = files = 0
    is_complete = True
    until = time.monotonic() + at_most_s
    with trees.opened(homes.home_of(user)) as home:
        try:
            for _folder, _name, info in trees.walk(home, until=until):
                files += 1
                if stat.S_ISREG(info.st_mode):
                    size += info.st_size
        except trees.TooLong:
            is_complete = False
    counted = {"size_bytes": min(size, MAX_BYTES), "files": files, "whole": is_complete, "measured_at": now()}
    before = HomeUsage.objects.filter(user=user, whole=True).first()
    if not is_complete and before is not None and before.size_bytes > size:
        counted |= {"size_bytes": before.size_bytes, "files": before.files}
    return HomeUsage.objects.update_or_create(user=user, defaults=counted)[0]


def require_room(user: User, size_bytes: int) -> None:
    """Refuse what would pass the quota of a home.

    Raises:
        HomeFull: with what to do.
    """
    if not env.HOME_QUOTA_BYTES:
        return
    used = for_user(user).size_bytes
    if used + size_bytes > env.HOME_QUOTA_BYTES:
        raise HomeFull(
            _("Your files have room for %(room)s more bytes. Delete what you no longer need, then try again.")
            % {"room": f"{max(env.HOME_QUOTA_BYTES - used, 0):,}"},
            quota=env.HOME_QUOTA_BYTES,
            used=used,
        )


def refuse_full(user: User) -> None:
    """Refuse to start what writes to a home that holds more than it may; the disk itself knows no such bound.

    Raises:
        HomeFull: with what to do.
    """
    used = for_user(user).size_bytes if env.HOME_QUOTA_BYTES else 0
    if used > env.HOME_QUOTA_BYTES:
        raise HomeFull(
            _("Your files hold %(used)s of %(quota)s bytes. Delete some of them on the page Files, then try again.")
            % {"used": f"{used:,}", "quota": f"{env.HOME_QUOTA_BYTES:,}"},
            quota=env.HOME_QUOTA_BYTES,
            used=used,
        )


def came(user: User, size_bytes: int) -> None:
    """Count what the platform itself put into a home, until it is measured again."""
    HomeUsage.objects.filter(user=user).update(size_bytes=F("size_bytes") + size_bytes, files=F("files") + 1)


def went(user: User) -> None:
    """Something was deleted: what was measured holds no longer."""
    HomeUsage.objects.filter(user=user).update(measured_at=now() - MAX_AGE, whole=True)


def is_full(user: User) -> HomeUsage | None:
    """What is known of a home that holds more than it may; None for any other. Looks at no file."""
    if not env.HOME_QUOTA_BYTES:
        return None
    return HomeUsage.objects.filter(user=user, size_bytes__gt=env.HOME_QUOTA_BYTES).first()


def quota_shares() -> Iterator[Share]:
    """Yield the used share of the home quota per user, for alerts."""
    if not env.HOME_QUOTA_BYTES:
        return
    rows = HomeUsage.objects.filter(size_bytes__gte=_nearly_bytes(), user__is_active=True)
    for pk, name, used in rows.order_by("user").values_list("user", "user__username", "size_bytes"):
        yield Share(name, 100 * used / env.HOME_QUOTA_BYTES, user=pk, of="home", page=reverse("files:list"))


def _nearly_bytes() -> float:
    """How much a home holds at least that an alarm may be about, as operators have set the alarms."""
    limits = AlarmRule.objects.filter(key__in=ALARMS).values_list("threshold", flat=True)
    return min([NEARLY, *(limit / 100 for limit in limits)]) * env.HOME_QUOTA_BYTES


def sweep() -> None:
    """Measure one home to its end that was too large for the time a page has, and look again where a quota may pass."""
    late = HomeUsage.objects.filter(whole=False, measured_at__lt=now() - LOOK_AGAIN).order_by("measured_at")
    for row in late.select_related("user")[:1]:
        if not measure(row.user, at_most_s=SWEEP_S).whole:
            HomeUsage.objects.filter(pk=row.pk).update(measured_at=now())
    if env.HOME_QUOTA_BYTES:
        _look_again()


def _look_again() -> None:
    """Measure homes that change without the platform's knowledge: those of people with live jobs, and full ones."""
    until = time.monotonic() + ROUND_S
    unknown = Q(home_usage=None, pk__in=Job.objects.live().values("owner"))
    changing = Q(pk__in=Job.objects.live().values("owner")) | Q(home_usage__size_bytes__gte=_nearly_bytes())
    old = Q(home_usage__whole=True, home_usage__measured_at__lt=now() - LOOK_AGAIN)
    due = User.objects.filter(unknown | (changing & old)).order_by(F("home_usage__measured_at").asc(nulls_first=True))
    for user in due:
        left = until - time.monotonic()
        if left <= 0:
            return
        measure(user, at_most_s=left)
