"""Forms of a person's own account, of signing in and of registering. They check shape; rules live in services."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.models import ApiToken, RegistrationPolicy, User
from aiplatform.lib.row_choices import RowSelect

MAX_PASSWORD = 128  # characters; hashing more is work for nothing


def password_field(label: Any, *, new: bool = True, **more: Any) -> forms.CharField:
    """A password box that password managers understand and that can be pasted into."""
    attrs = {"autocomplete": "new-password" if new else "current-password"}
    widget = forms.PasswordInput(attrs=attrs, render_value=False)
    return forms.CharField(label=label, widget=widget, strip=False, max_length=MAX_PASSWORD, **more)


class SignInForm(AuthenticationForm):
    """Name and password. An error never says which of the two is wrong."""

    error_messages = {
        "invalid_login": _("Unknown username or wrong password."),
        "inactive": _("Unknown username or wrong password."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = _("Username")
        password: Any = self.fields["password"]
        password.max_length = MAX_PASSWORD

    def get_invalid_login_error(self) -> forms.ValidationError:
        """The identity provider's own message where it sent one; else that name and password do not match."""
        message = getattr(self.request, "provider_message", "")
        return forms.ValidationError(message, code="provider_message") if message else super().get_invalid_login_error()


class NewPasswordForm(forms.Form):
    """A password chosen by its owner."""

    password = password_field(
        _("New password"), help_text=_("At least 8 characters. A passphrase of several words works best.")
    )
    again = password_field(_("Repeat new password"))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("password") and cleaned.get("password") != cleaned.get("again"):
            self.add_error("again", _("The passwords do not match."))
        return cleaned


class OwnForm(forms.Form):
    """A form about the account of `user`, who sends it."""

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user


class PasswordForm(OwnForm):
    """The current password, as a proof that the account's owner is here."""

    current = password_field(_("Current password"), new=False)

    def clean_current(self) -> str:
        current: str = self.cleaned_data["current"]
        if not self.user.check_password(current):
            raise forms.ValidationError(_("The current password is wrong."))
        return current


class ChangePasswordForm(PasswordForm, NewPasswordForm):
    """A new password for a signed-in user, who confirms the current one first."""

    field_order = ["current", "password", "again"]


class FirstPasswordForm(OwnForm):
    """A user's own password in place of the temporary one, which the session has proved."""

    password = password_field(
        _("New password"), help_text=_("At least 8 characters. A passphrase of several words works best.")
    )

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if self.user.check_password(password):
            raise forms.ValidationError(_("This is the temporary password. Choose another one."))
        return password


class LaterFirstPasswordForm(PasswordForm, FirstPasswordForm):
    """The same in a session that has not proved the temporary password, or too long ago."""

    field_order = ["current", "password"]


class CodeForm(forms.Form):
    """A code from the phone, or a recovery code."""

    code = forms.CharField(
        label=pgettext_lazy("second factor", "Code"),
        max_length=40,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "text", "spellcheck": "false"}),
    )


class SshKeyForm(forms.Form):
    """A public SSH key."""

    name = forms.CharField(
        label=_("Name"),
        max_length=50,
        required=False,
        help_text=_("Where the private key is stored, e.g. “laptop”. Leave empty to use the comment of the key."),
    )
    line = forms.CharField(
        label=_("Public key"),
        max_length=8000,
        help_text=_("The line from the .pub file, such as “ssh-ed25519 AAAA… me@laptop”."),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
    )


class RegistrationPolicyForm(forms.Form):
    """Who may register."""

    registration = forms.ChoiceField(
        label=_("Registration"), choices=RegistrationPolicy.Registration, widget=forms.RadioSelect
    )


class RegisterForm(forms.Form):
    """A request for an account."""

    username = forms.CharField(
        label=_("Username"), max_length=50, help_text=_("Letters, digits and . @ + - _"), widget=forms.TextInput
    )
    nickname = forms.CharField(label=_("Display name"), max_length=50, help_text=_("Shown to other users."))
    password = password_field(
        _("Password"), help_text=_("At least 8 characters. A passphrase of several words works best.")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs.update({"autocomplete": "username", "autocapitalize": "none"})
        self.fields["nickname"].widget.attrs["autocomplete"] = "nickname"


class FirstAdminForm(NewPasswordForm):
    """The first administrator's account, from the link on the console."""

    field_order = ["username", "password", "again"]
    username = forms.CharField(label=_("Username"), max_length=50, help_text=_("Letters, digits and . @ + - _"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs.update({"autocomplete": "username", "autocapitalize": "none"})
        self.fields["password"].label, self.fields["again"].label = _("Password"), _("Repeat password")


@cache
def _zones() -> list[tuple[str, str]]:
    """Time zones and their words; the machine's folder of them is read once."""
    zones = sorted(zone for zone in available_timezones() if "/" in zone or zone == "UTC")
    return [(zone, zone.replace("_", " ")) for zone in zones]


class SettingsForm(forms.ModelForm):
    """What a person decides about their own account."""

    language = forms.ChoiceField(label=_("Language"), required=False)
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False, widget=RowSelect)
    theme = forms.ChoiceField(
        label=_("Theme"),
        required=False,
        choices=[("", _("System")), ("light", _("Light")), ("dark", _("Dark"))],
    )
    refresh_s = forms.IntegerField(
        label=_("Refresh interval of lists"), min_value=1, max_value=300, help_text=_("1 to 300 seconds.")
    )

    root_inside = forms.BooleanField(
        label=_("Root in the sandbox"),
        required=False,
        help_text=_(
            "Forms of custom jobs and workspaces then offer it: programs are root in the job and your own user outside."
        ),
    )

    class Meta:
        model = User
        fields = ["nickname", "email", "phone", "language", "time_zone", "theme", "refresh_s"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["language"].choices = [("", _("Browser default")), *settings.LANGUAGES]  # type: ignore[attr-defined]  # a field of choices, declared above
        self.fields["time_zone"].choices = [  # type: ignore[attr-defined]  # a field of choices, declared above
            ("", _("Platform default (%(zone)s)") % {"zone": settings.TIME_ZONE}),
            *_zones(),
        ]
        if self.instance.root_allowed:
            self.fields["root_inside"].initial = self.instance.root_inside
        else:
            del self.fields["root_inside"]
        for name, kind in (("nickname", "nickname"), ("email", "email"), ("phone", "tel")):
            self.fields[name].widget.attrs["autocomplete"] = kind


LIVES = {"30": _("30 days"), "90": _("90 days"), "365": _("1 year"), "": _("Never")}


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(label=_("Name"), max_length=50, help_text=_("Where it is used, such as “laptop”."))
    scope = forms.ChoiceField(label=pgettext_lazy("rights", "Access"), choices=ApiToken.Scope)
    days = forms.ChoiceField(label=_("Expires after"), choices=list(LIVES.items()), required=False, initial="90")

    @property
    def expires_in(self) -> timedelta | None:
        days = self.cleaned_data["days"]
        return timedelta(days=int(days)) if days else None
