"""The choice of an image in forms of jobs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from accounts.models import User
from workers.images.models import Image
from workers.images.services import catalog


class ImageChoice(forms.ModelChoiceField):
    """One of the images that a person may use; `offer` says which."""

    def __init__(self, **more: Any) -> None:
        given = {
            "label": pgettext_lazy("container", "Image"),
            "required": False,
            "empty_label": gettext_lazy("The platform's own programs"),
            "help_text": gettext_lazy("Where python and other programs come from."),
        }
        super().__init__(Image.objects.none(), **{**given, **more})

    def offer(self, user: User) -> None:
        """Let the field name what this person may use."""
        catalog.all_there()
        self.queryset = Image.objects.usable_by(user).startable().for_list().order_by("kind", "name", "tag")

    def label_from_instance(self, obj: Image) -> str:
        if obj.built_in:
            return f"{obj} – {catalog.about(obj)}"
        return _("%(name)s of %(owner)s") % {"name": obj, "owner": obj.owner}
