"""The audit trail: who did what, to what. Rows are added and never changed."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import AuditQuerySet


class AppendOnly(RuntimeError):
    """A row of the audit trail cannot be changed or deleted."""


class AuditEntry(models.Model):
    """One act. It names people and things by number and by word, as both outlive the rows they name.

    The database itself refuses to change or delete rows, see accounts/services/audit_triggers.py.
    """

    at = models.DateTimeField(_("time"), default=now, editable=False, db_index=True)
    actor_id = models.BigIntegerField(null=True, editable=False, db_index=True)  # None: a stranger or the platform
    actor = models.CharField(_("actor"), max_length=100, blank=True, editable=False)  # the username then
    behind = models.CharField(_("on behalf of"), max_length=100, blank=True, editable=False)  # who took over
    verb = models.CharField(_("action"), max_length=50, editable=False, db_index=True)
    target_kind = models.CharField(max_length=50, blank=True, editable=False)  # "accounts.user"
    target_id = models.CharField(max_length=50, blank=True, editable=False)
    target = models.CharField(_("object"), max_length=200, blank=True, editable=False)  # its name then
    facts = models.JSONField(_("details"), default=dict, editable=False)
    address = models.CharField(_("address"), max_length=45, blank=True, editable=False)
    request_id = models.CharField(max_length=64, blank=True, editable=False)

    objects = AuditQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["target_kind", "target_id"], name="audit_of_a_thing")]

    def __str__(self) -> str:
        return f"{self.actor or '–'} {self.verb} {self.target}".strip()

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnly("An entry of the audit trail is not changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly("An entry of the audit trail is not deleted.")
