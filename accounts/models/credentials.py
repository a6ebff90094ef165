"""Models of credentials: sessions, SSH keys, second factors, external identities and the registration policy."""

from __future__ import annotations

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import OwnRowsQuerySet
from accounts.models.people import User


class UserSession(models.Model):
    """A signed-in browser session, shown to its user in the list of sessions."""

    user = models.ForeignKey(User, models.CASCADE, related_name="signed_in_sessions")
    session_key = models.CharField(max_length=40, unique=True)
    device = models.CharField(max_length=100, blank=True)  # "Firefox on Linux"
    address = models.CharField(max_length=45, blank=True)  # IPv4 or IPv6
    created_at = models.DateTimeField(default=now)
    seen_at = models.DateTimeField(default=now)  # last request; updated at most once a minute

    objects = OwnRowsQuerySet.as_manager()

    class Meta:
        ordering = ["-seen_at"]

    def __str__(self) -> str:
        return self.device


class SshKey(models.Model):
    """A public key with which a user signs in over SSH."""

    user = models.ForeignKey(User, models.CASCADE, related_name="ssh_keys")
    name = models.CharField(_("name"), max_length=50)
    kind = models.CharField(max_length=50)  # "ssh-ed25519"
    line = models.TextField()  # "ssh-ed25519 AAAA…", without comment
    fingerprint = models.CharField(max_length=60, unique=True)  # "SHA256:…"; unique: a key identifies one user
    created_at = models.DateTimeField(default=now)

    objects = OwnRowsQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.fingerprint})"


class SecondFactor(models.Model):
    """Time-based one-time codes (TOTP) of a user. The secret is derived from the platform's key and `nonce`."""

    user = models.OneToOneField(User, models.CASCADE, related_name="second_factor")
    nonce = models.CharField(max_length=64)
    confirmed_at = models.DateTimeField(null=True)  # None: set up, but no code was entered yet
    last_step = models.BigIntegerField(default=0)  # TOTP time step of the last accepted code; a code is accepted once

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
    """A user's account at an identity provider, identified by the provider's permanent id, never by name or e-mail."""

    user = models.ForeignKey(User, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=300)  # address of the OpenID Connect provider or of the directory
    subject = models.CharField(max_length=300)  # id of the account at the issuer
    created_at = models.DateTimeField(default=now)
    used_at = models.DateTimeField(default=now)  # last sign-in

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="identity_names_one_person")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class RegistrationPolicy(models.Model):
    """Who may register. The table has at most one row; without it the setting AIP_REGISTRATION applies."""

    class Registration(models.TextChoices):
        CLOSED = "closed", _("Closed: administrators create accounts")
        OPEN = "open", _("Open: new users can sign in and wait for a role")
        APPROVAL = "approval", _("With approval: an administrator approves each new account")

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    registration = models.CharField(_("registration"), max_length=8, choices=Registration)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_registration_policy")]

    def __str__(self) -> str:
        return self.registration
