"""Tables of signing in: sessions, SSH keys, second factors, identities, and who may register."""

from __future__ import annotations

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import OwnRowsQuerySet
from accounts.models.people import User


class UserSession(models.Model):
    """A signed-in browser, as its owner recognises it."""

    user = models.ForeignKey(User, models.CASCADE, related_name="signed_in_sessions")
    session_key = models.CharField(max_length=40, unique=True)
    device = models.CharField(max_length=100, blank=True)  # "Firefox on Linux"
    address = models.CharField(max_length=45, blank=True)
    created_at = models.DateTimeField(default=now)
    seen_at = models.DateTimeField(default=now)

    objects = OwnRowsQuerySet.as_manager()

    class Meta:
        ordering = ["-seen_at"]

    def __str__(self) -> str:
        return self.device


class SshKey(models.Model):
    """A public key a person signs in with where SSH is offered."""

    user = models.ForeignKey(User, models.CASCADE, related_name="ssh_keys")
    name = models.CharField(_("name"), max_length=50)
    kind = models.CharField(max_length=50)  # "ssh-ed25519"
    line = models.TextField()  # "ssh-ed25519 AAAA…", without comment
    fingerprint = models.CharField(max_length=60, unique=True)  # "SHA256:…"; a key names one person
    created_at = models.DateTimeField(default=now)

    objects = OwnRowsQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.fingerprint})"


class SecondFactor(models.Model):
    """A time-based code on a person's phone. Its secret follows from the platform's key and `nonce`."""

    user = models.OneToOneField(User, models.CASCADE, related_name="second_factor")
    nonce = models.CharField(max_length=64)
    confirmed_at = models.DateTimeField(null=True)  # None: shown, not yet proved
    last_step = models.BigIntegerField(default=0)  # of the last code taken; a code counts once

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class RecoveryCode(models.Model):
    """A one-time code that replaces the second factor when the phone is lost."""

    user = models.ForeignKey(User, models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64)  # sha256; the code has 80 random bits
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "digest"], name="recovery_code_once")]

    def __str__(self) -> str:
        return f"recovery code of {self.user_id}"


class Identity(models.Model):
    """A person's account at an identity provider, by the provider's own unchanging id, never by a name or an e-mail."""

    user = models.ForeignKey(User, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=300)  # address of the OpenID Connect provider or of the directory
    subject = models.CharField(max_length=300)
    created_at = models.DateTimeField(default=now)
    used_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="identity_names_one_person")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class RegistrationPolicy(models.Model):
    """Who may register: a single row; without it AIP_REGISTRATION decides."""

    class Registration(models.TextChoices):
        CLOSED = "closed", _("Closed: administrators make accounts")
        OPEN = "open", _("Open: who registers may sign in and waits for a role")
        APPROVAL = "approval", _("With approval: who registers waits until an administrator lets them in")

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    registration = models.CharField(_("registration"), max_length=8, choices=Registration)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_registration_policy")]

    def __str__(self) -> str:
        return self.registration
