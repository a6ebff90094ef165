"""Claims with a time-out: one process works on a row until it says otherwise or falls silent.

    EXPORTS = Claims(ttl=timedelta(seconds=60), epoch="tries")

    claim = EXPORTS.acquire(Export.objects.filter(pk=7, state__in=LIVE), state=CONVERTING)
    if claim is None:
        return                                   # another holder works on it
    claim.write(done=500)                        # renews; raises ClaimLost after a takeover
    claim.release(state=SUCCESS)

Works on every model with the columns `holder` (text, "" while free), `renewed_at` (time of the holder's last sign of
life) and a number that counts the takes. Every step is one UPDATE that names what it expects to find, so it means the
same on SQLite and PostgreSQL, and of two who come at once one wins. A claim that ran out still belongs to its holder
until it is taken over: the holder may go on, and the other one is refused, but never both. With `ends_with_process`
processes of the same host do not wait for one that has ended; of other hosts only silence is known.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.db.models import F, Q, QuerySet
from django.utils import timezone

Rows = TypeVar("Rows", bound=QuerySet[Any])


class ClaimLost(Exception):
    """The row was taken over or withdrawn: stop, and write nothing more."""


def new_holder() -> str:
    """Return a unique name that identifies the process: "host:machine:process:start:random"."""
    pid = os.getpid()
    host = socket.gethostname().replace(":", "-")[:32]
    return f"{host}:{_machine()}:{pid}:{_start_time(pid)}:{secrets.token_hex(8)}"


def is_gone(holder: str) -> bool:
    """Whether a holder's process has ended; False for one that cannot be seen from here."""
    machine, pid, begin = (holder.split(":") + [""] * 4)[1:4]
    return machine == _machine() and pid.isdecimal() and begin != _start_time(int(pid))


@cache
def _machine() -> str:
    """Name this run of the machine and this space of process ids; a fork keeps both."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"


def _start_time(pid: int) -> str:
    """Return when a process started, in ticks since the boot; "" for an unknown process and for a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


@dataclass(frozen=True)
class Claims:
    """The rules by which rows of a model are claimed.

    Attributes:
        ttl: a holder silent for longer may be replaced.
        epoch: column that counts the takes; a holder that was replaced meanwhile has another count.
        clock: the present; nodes that share rows pass the platform's clock, which is the database server's.
        ends_with_process: a claim is worth nothing once the process that took it is gone, however young it is. Not
            for claims that one process takes and another carries on.
    """

    ttl: timedelta
    epoch: str = "epoch"
    clock: Callable[[], datetime] = timezone.now
    ends_with_process: bool = False

    def free(self, rows: Rows) -> Rows:
        """Return those of `rows` that may be taken: never claimed, released, or held by one who fell silent."""
        return rows.filter(Q(holder="") | Q(renewed_at=None) | Q(renewed_at__lt=self.clock() - self.ttl))

    def is_free(self, row: Any) -> bool:
        """Whether this row, as it was read, may be taken."""
        return not row.holder or row.renewed_at is None or row.renewed_at < self.clock() - self.ttl

    def acquire(self, rows: QuerySet[Any], *, holder: str = "", **columns: object) -> Claim | None:
        """Become the holder of a row, or stay it.

        Args:
            rows: narrows to the one row, and to the states in which it may be taken.
            holder: who takes it; "" invents a name. The same name again renews and keeps the epoch.
            columns: what else changes with a take.

        Returns:
            None while another holder has it, and if `rows` is empty.
        """
        pk = rows.values_list("pk", flat=True).first()
        if pk is None:
            return None
        row, moment = rows.filter(pk=pk), self.clock()
        if not holder or not row.filter(holder=holder).update(renewed_at=moment, **columns):
            holder = holder or new_holder()
            taken: dict[str, Any] = {self.epoch: F(self.epoch) + 1, **columns}
            taken |= {"holder": holder, "renewed_at": moment}
            if not (self.free(row).update(**taken) or self._of_ended_process(row).update(**taken)):
                return None
        row = rows.model._default_manager.filter(pk=pk)
        epoch = row.filter(holder=holder).values_list(self.epoch, flat=True).first()
        return None if epoch is None else Claim(self, row, holder, epoch)

    def _of_ended_process(self, row: QuerySet[Any]) -> QuerySet[Any]:
        """Return the row if the process that holds it has ended, else none."""
        holder = row.values_list("holder", flat=True).first() if self.ends_with_process else None
        return row.filter(holder=holder) if holder and is_gone(holder) else row.none()


@dataclass(frozen=True)
class Claim:
    """The right of one holder to write one row, which is what `row` narrows to."""

    rules: Claims
    row: QuerySet[Any]
    holder: str
    epoch: int

    def renew(self) -> None:
        """Give a sign of life. Inside a transaction this also keeps others from taking over until it ends.

        Raises:
            ClaimLost: another holder took over.
        """
        self.write()

    def write(self, **columns: object) -> None:
        """Change the row and give a sign of life.

        Raises:
            ClaimLost: another holder took over; nothing was changed.
        """
        if not self._mine().update(renewed_at=self.rules.clock(), **columns):
            raise ClaimLost(f"A row of {self.row.model._meta.label} is no longer held by {self.holder}.")

    def release(self, **columns: object) -> bool:
        """Change the row and let the next holder take it at once; False if another holder took it over before."""
        return bool(self._mine().update(holder="", **columns))

    def delete(self) -> bool:
        """Delete the row; False if another holder took it over before."""
        return bool(self._mine().delete()[0])

    def _mine(self) -> QuerySet[Any]:
        return self.row.filter(holder=self.holder, **{self.rules.epoch: self.epoch})
