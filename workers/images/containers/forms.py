"""Forms of container images and of credentials of registries."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from workers.images.containers.logins import MAX_CA_LENGTH
from workers.images.forms import NameFields
from workers.images.models import Image, RegistryLogin, Visibility

USABLE_BY = [choice for choice in Visibility.choices if choice[0] != Visibility.PUBLIC]


class ContainerForm(NameFields):
    """A container image by its name in a registry."""

    source = forms.ChoiceField(label=_("Source"), choices=Image.Source, initial=Image.Source.HUB)
    reference = forms.CharField(
        label=_("Container image"),
        max_length=300,
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false", "autocapitalize": "off"}),
        help_text=_("For example pytorch/pytorch:2.1.0, or registry.example.org/lab/torch:2.1. HTTPS only."),
    )
    login = forms.ModelChoiceField(
        RegistryLogin.objects.none(),
        label=_("Credentials"),
        required=False,
        empty_label=_("None: public image"),
        help_text=_("See Images, Registry credentials."),
    )
    policy = forms.ChoiceField(label=_("Version policy"), choices=Image.Policy, initial=Image.Policy.PINNED)
    field_order = ["name", "tag", "source", "reference", "login", "policy", "description", "visibility"]

    def __init__(self, *args: object, user: User, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]  # whatever a form takes
        field = self.fields["login"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = RegistryLogin.objects.usable_by(user).order_by("host", "username")


class _SecretFields(forms.Form):
    password = forms.CharField(
        label=_("Password or token"),
        max_length=4000,
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and never shown again. Prefer a read-only token."),
    )
    ca = forms.CharField(
        label=_("Certificate authority"),
        max_length=MAX_CA_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
        help_text=_("For registries with an internal certificate authority: its certificate, in PEM."),
    )
    visibility = forms.ChoiceField(label=_("Visible to"), choices=USABLE_BY, initial=Visibility.PRIVATE)


class LoginForm(_SecretFields):
    """New credentials."""

    host = forms.CharField(
        label=_("Registry"),
        max_length=255,
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false", "autocapitalize": "off"}),
        help_text=_("registry.example.org:5000, or docker.io for Docker Hub."),
    )
    username = forms.CharField(
        label=_("Username"), max_length=200, required=False, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    field_order = ["host", "username", "password", "ca", "visibility"]


class LoginEditForm(_SecretFields):
    """Changed credentials; an empty password leaves the one that is there."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]  # whatever a form takes
        self.fields["password"].label = _("New password or token")
        self.fields["password"].help_text = _("Leave empty to keep the current value.")
