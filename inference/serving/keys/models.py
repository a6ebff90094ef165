"""Table of the keys of services."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.timezone import now


class ServiceKey(models.Model):
    """Opens one service to who holds it, without an account. Only the digest of its secret is kept."""

    service = models.ForeignKey("inference.Service", models.CASCADE, related_name="keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)  # of the secret, by which users distinguish keys
    digest = models.CharField(max_length=64, unique=True)
    per_minute = models.PositiveIntegerField(null=True)  # most requests; None: as the service has it
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["service", "revoked_at"])]

    def __str__(self) -> str:
        return self.name

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= now()

    @property
    def opens(self) -> bool:
        """Whether it still opens its service."""
        return self.revoked_at is None and not self.is_expired
