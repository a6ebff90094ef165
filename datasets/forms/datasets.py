"""Forms of datasets. They check shape; rules are in the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform import env
from aiplatform.lib import search
from datasets.formats.neutral import NO_SPLIT
from datasets.models import Asset, Dataset, DatasetVersion, Import, Upload
from datasets.services.datasets import INTRO_MAX, NAME_MAX
from datasets.services.splitting import Wish

YES_NO = [("no", _("No")), ("yes", _("Yes"))]
ANNOTATED = {"auto": None, "yes": True, "no": False}


SPLITS = [
    ("", _("Use splits in the data")),
    ("80/10/10", _("New splits: 80 % train, 10 % val, 10 % test")),
    ("90/10/0", _("New splits: 90 % train, 10 % val")),
]
VISIBILITY = [
    ("private", _("Private: only me")),
    ("group", _("My groups: members of my groups")),
    ("public", _("Public: all signed-in users")),
]


COMMIT_FORM = "commit-import"  # id of the form that confirms an import


def to_split(shares: str) -> dict[str, Any]:
    """Return the fields of a `Wish` for a choice of SPLITS; {} keeps the splits in the data."""
    if not shares:
        return {}
    train, val, test = map(int, shares.split("/"))
    return Wish(train, val, test).as_dict()


def from_split(fields: Mapping[str, Any]) -> str:
    """Return the choice of SPLITS that `to_split` turned into `fields`; "custom" for other splits."""
    matches = (shares for shares, _label in SPLITS if to_split(shares) == dict(fields))
    return next(matches, "custom")


class SourceForm(forms.Form):
    """The source of data: a file from the browser, or a folder on the server.

    The page shows the source alone. Scripts send the other fields too, which users change on the import report.
    """

    annotated = forms.ChoiceField(choices=[(name, name) for name in ANNOTATED], required=False)
    source = forms.ChoiceField(choices=Dataset.Source, required=False)
    upload_id = forms.CharField(label=_("Data"), required=False, max_length=32, widget=forms.HiddenInput)
    server_path = forms.CharField(
        label=_("Path on the server"),
        required=False,
        max_length=500,
        help_text=_('An absolute path ending with "/". The data is not copied or moved.'),
        widget=forms.TextInput(attrs={"class": "mono", "placeholder": "/data/cells/"}),
    )
    split = forms.ChoiceField(choices=SPLITS, required=False)

    #: Fields of the service that have another name here.
    called: ClassVar[dict[str, str]] = {"upload": "upload_id"}
    required_where_shown = ("upload_id",)

    def clean_split(self) -> dict[str, Any]:
        return to_split(self.cleaned_data["split"])

    def clean_annotated(self) -> bool | None:
        return ANNOTATED[self.cleaned_data["annotated"] or "auto"]

    @property
    def is_empty(self) -> bool:
        """Whether the dataset is created without data."""
        return False

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("source") and "source" not in self.errors:
            cleaned["source"] = Dataset.Source.SERVER if cleaned.get("server_path") else Dataset.Source.UPLOAD
        if cleaned.get("source") == Dataset.Source.SERVER:
            cleaned["upload_id"] = ""
            if not cleaned.get("server_path"):
                self.add_error("server_path", _("Enter the path of the data on the server."))
        elif cleaned.get("source") == Dataset.Source.UPLOAD:
            cleaned["server_path"] = ""
            if not cleaned.get("upload_id") and not self.is_empty:
                self.add_error(
                    "upload_id", _("Choose images, a folder or an archive, and wait for the upload to complete.")
                )
        return cleaned

    def kept_upload(self, user: User) -> Upload | None:
        """Return the upload of a refused form, if it still exists."""
        upload_id = str(self["upload_id"].value() or "")
        upload: Upload | None = Upload.objects.visible_to(user).filter(pk=upload_id).first() if upload_id else None
        return upload

    @property
    def offers_server(self) -> bool:
        return bool(env.SERVER_PATHS)


class CreateForm(SourceForm):
    """A new dataset. The page shows its source and its name."""

    name = forms.CharField(label=_("Name"), max_length=NAME_MAX, help_text=_("This cannot be changed later."))
    intro = forms.CharField(max_length=INTRO_MAX, required=False)
    visibility = forms.ChoiceField(choices=VISIBILITY, required=False)

    def clean_visibility(self) -> str:
        return self.cleaned_data["visibility"] or Dataset.Visibility.PRIVATE

    @property
    def is_empty(self) -> bool:
        return "empty" in self.data


class ImportSettingsForm(forms.Form):
    """What is decided on the import report about a dataset and its splits."""

    split = forms.ChoiceField(
        label=_("Splits"),
        choices=SPLITS,
        required=False,
        help_text=_("New splits balance every class and keep identical files together."),
    )
    visibility = forms.ChoiceField(
        label=_("Visible to"), choices=VISIBILITY, required=False, help_text=_("Cannot be changed after the import.")
    )
    intro = forms.CharField(label=_("Description"), max_length=INTRO_MAX, required=False)

    def __init__(self, *args: Any, row: Import, **kwargs: Any) -> None:
        dataset, split = row.dataset, from_split(row.split)
        kwargs["initial"] = {"split": split, "visibility": dataset.visibility, "intro": dataset.intro}
        super().__init__(*args, **kwargs)
        if split == "custom":  # as a script defined it
            self.fields["split"].choices = [("custom", _("As requested")), *SPLITS]  # type: ignore[attr-defined]  # a choice, declared above
        if row.source_version_id:
            del self.fields["split"]
        if dataset.is_locked:
            del self.fields["visibility"]
        for field in self.fields.values():
            field.widget.attrs["form"] = COMMIT_FORM  # the confirmation applies them too

    def new_split(self) -> dict[str, Any] | None:
        """Return the new fields of a `Wish`; None where the choice is unchanged."""
        choice = self.cleaned_data.get("split", "custom")
        return None if choice == self.initial["split"] or choice == "custom" else to_split(choice)


class EditForm(forms.Form):
    """What may change: the introduction and, before data was imported, the visibility."""

    intro = forms.CharField(
        label=_("Description"), max_length=INTRO_MAX, required=False, widget=forms.Textarea(attrs={"rows": 3})
    )
    visibility = forms.ChoiceField(
        label=_("Visible to"), choices=Dataset.Visibility, required=False, widget=forms.RadioSelect
    )

    def __init__(self, *args: Any, dataset: Dataset, **kwargs: Any) -> None:
        kwargs["initial"] = {"intro": dataset.intro, "visibility": dataset.visibility}
        super().__init__(*args, **kwargs)
        if dataset.is_locked:
            self.fields["visibility"].disabled = True
            self.fields["visibility"].help_text = _("Cannot be changed after data was uploaded.")


class FilterForm(forms.Form):
    """The filter bar of the list; values are optional and unknown ones are ignored."""

    q = forms.CharField(required=False, max_length=50)
    annotated = forms.ChoiceField(required=False, choices=[("", _("Annotated or not")), *YES_NO[::-1]])
    visibility = forms.ChoiceField(
        required=False, choices=[("", _("All visible to me")), ("mine", _("Mine")), *Dataset.Visibility.choices]
    )
    state = forms.ChoiceField(
        required=False,
        choices=[("", _("All states")), ("ready", _("Ready")), ("open", _("Import open")), ("empty", _("No data yet"))],
    )

    def chosen(self, name: str) -> str:
        self.is_valid()
        return str(self.cleaned_data.get(name) or "")


class GalleryForm(forms.Form):
    """The filter bar of a version's images; unknown values are no filter."""

    #: Word in the address → column of `Asset`.
    ORDERS: ClassVar[dict[str, str]] = {
        "": "pk",
        "name": "path",
        "-objects": "-object_count",
        "objects": "object_count",
    }
    ORDER_WORDS: ClassVar[list[tuple[str, Any]]] = [
        ("", _("Original order")),
        ("name", _("Name A to Z")),
        ("-objects", _("Most objects first")),
        ("objects", _("Fewest objects first")),
    ]

    q = forms.CharField(required=False, max_length=search.MAX_QUERY_LENGTH)
    annotated = forms.ChoiceField(
        required=False,
        choices=[
            ("", _("Labeled or not")),
            ("yes", Asset.Content.OBJECTS.label),
            ("empty", Asset.Content.EMPTY.label),
            ("no", Asset.Content.UNSEEN.label),
        ],
    )
    ordering = forms.ChoiceField(required=False, choices=ORDER_WORDS)

    def __init__(self, *args: Any, version: DatasetVersion, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        splits = [(name or NO_SPLIT, name or _("no split"), count) for name, count in version.splits.items()]
        named = [(value, f"{name} ({count:,})") for value, name, count in splits]
        self.fields["split"] = forms.ChoiceField(required=False, choices=[("", _("All splits")), *named])
        classes = [(str(number), name) for number, name in version.class_names.items()]
        self.fields["class"] = forms.ChoiceField(required=False, choices=[("", _("All classes")), *classes])
        if not classes:  # nothing is drawn on any image
            orders = [pair for pair in self.ORDER_WORDS if "objects" not in pair[0]]
            self.fields["ordering"] = forms.ChoiceField(required=False, choices=orders)

    def chosen(self, name: str) -> str:
        self.is_valid()
        return str(self.cleaned_data.get(name) or "")

    def wanted(self) -> dict[str, Any]:
        """Arguments of `AssetQuerySet.of_version`."""
        split, class_id = self.chosen("split"), self.chosen("class")
        content = {"yes": Asset.Content.OBJECTS, "empty": Asset.Content.EMPTY, "no": Asset.Content.UNSEEN}
        return {
            "split": "" if split == NO_SPLIT else split or None,
            "class_id": int(class_id) if class_id else None,
            "content": content.get(self.chosen("annotated")),
            "text": self.chosen("q"),
        }

    @property
    def order(self) -> str:
        return self.ORDERS[self.chosen("ordering")]


def may_change(dataset: Dataset, user: User) -> bool:
    """Whether this person sees the buttons that change the dataset."""
    if dataset.owner_id == user.pk:
        return True
    return bool(Dataset.objects.editable_by(user).filter(pk=dataset.pk).exists())
