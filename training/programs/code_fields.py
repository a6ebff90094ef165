"""The fields of a form by which somebody brings code along."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from training.programs import snapshots
from training.programs.models import CodeSnapshot

MAX_ARCHIVE_BYTES = 200 << 20  # larger code comes by a resumable upload (API, CLI)


class CodeFields(forms.Form):
    """Code from an archive or a folder of the home, and the snapshot taken of it; requires `self.user`."""

    user: User
    code_archive = forms.FileField(
        label=gettext_lazy("Code"),
        required=False,
        help_text=gettext_lazy("A zip or tar archive of your folder, up to 200 MiB."),
    )
    home_path = forms.CharField(
        label=gettext_lazy("or a folder in your home"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("The folder is copied now; later changes do not affect this job."),
    )
    snapshot = forms.ModelChoiceField(CodeSnapshot.objects.none(), required=False, widget=forms.HiddenInput)

    def offer_snapshots(self) -> None:
        """Let the form name code that this person brought before."""
        self.fields["snapshot"].queryset = CodeSnapshot.objects.visible_to(self.user)  # type: ignore[attr-defined]  # a choice among rows, declared above

    def brings_code(self) -> bool:
        """Whether what is filled in here counts."""
        return True

    def clean_code_archive(self) -> Any:
        archive = self.cleaned_data.get("code_archive")
        if archive and archive.size > MAX_ARCHIVE_BYTES:
            raise forms.ValidationError(
                _("Larger than 200 MiB. Use the command-line client, which can resume uploads.")
            )
        return archive

    def take_code(self) -> None:
        """Take the code that came along as a snapshot, so that a refusal of anything else does not lose it.

        A folder stays where it is, so it is copied only when all else is right.

        Raises:
            BadCode, ArchiveRefused.
        """
        right, data = self.is_valid(), self.cleaned_data
        if not self.brings_code():
            return
        if archive := data.get("code_archive"):
            taken = snapshots.from_sent_file(archive, self.user)
        elif right and data.get("home_path"):
            taken = snapshots.from_home(owner=self.user, folder=data["home_path"])
        else:
            return
        self.cleaned_data["snapshot"] = taken
        sent: Any = self.data
        changed = sent.copy()
        changed["snapshot"] = taken.pk
        self.data = changed

    def kept_code(self) -> CodeSnapshot | None:
        """Return the code used if no other is uploaded: that of the cloned job, or of a refused form."""
        value = self["snapshot"].value()
        mine: CodeSnapshot | None = (
            CodeSnapshot.objects.visible_to(self.user).filter(pk=getattr(value, "pk", value)).first() if value else None
        )
        return mine
