"""Forms that bring a model in: from where, and what a person says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import errors_shown_on
from aiplatform.lib.titles import TITLE
from datasets.forms.version_choice import DatasetVersionChoice
from datasets.models import DatasetVersion, Upload
from inference.registry import task_labels
from inference.registry.formats import declared
from inference.registry.formats.declared import LAYOUTS, PIXEL_LABELS, Declared
from inference.registry.import_trials import trials
from inference.registry.models import Model, Visibility
from workers.core.models import Job

TEXTAREA = forms.Textarea(attrs={"rows": 3})
TRY = "try"  # what the button of a trial is called
RESIZE_LABELS = {"stretch": _("Stretched to the input size"), "letterbox": _("Letterbox with gray padding")}


def layout_choices() -> list[tuple[str, Any]]:
    """Return all layouts of all tasks; the empty choice leaves it to the shapes of the file."""
    task_names = dict(task_labels.choices())
    groups = [
        (task_names[task], [(layout.name, _(layout.label)) for layout in layouts.values()])
        for task, layouts in LAYOUTS.items()
    ]
    return [("", _("Detect from the shapes")), *groups]


class PicturesField(forms.FileField):
    """Any number of files of one input; its value is a list."""

    widget = type("Files", (forms.FileInput,), {"allow_multiple_selected": True})

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        return [super(PicturesField, self).clean(upload, initial) for upload in data or ()]


class UserForm(forms.Form):
    """A form whose choices depend on its user."""

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user


class DetailsForm(UserForm):
    """How a model is read, as far as its files do not define it."""

    task = forms.ChoiceField(
        label=_("Task"), required=False, help_text=_("Leave empty if the files contain a description.")
    )
    labels = forms.CharField(
        label=_("Labels"),
        required=False,
        max_length=2_000_000,
        help_text=_("One per line, in the order of the model outputs; or a JSON list or id2label."),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )
    pixels = forms.ChoiceField(
        label=_("Pixel normalization"),
        required=False,
        choices=[("", _("As defined in the files")), *PIXEL_LABELS.items()],
        help_text=_("Must match the training of the model; other values give other predictions."),
    )
    layout = forms.ChoiceField(label=_("Outputs"), required=False)
    width = forms.IntegerField(label=_("Input width"), required=False, min_value=1, max_value=8192)
    height = forms.IntegerField(label=_("Input height"), required=False, min_value=1, max_value=8192)
    resize = forms.ChoiceField(
        label=_("Images are"), required=False, choices=[("", _("Default for such models")), *RESIZE_LABELS.items()]
    )
    DECLARED = ("task", "labels", "pixels", "layout", "width", "height", "resize")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        task_names = dict(task_labels.choices())
        tasks = [("", _("As defined in the files")), *((task, task_names[task]) for task in LAYOUTS)]
        self.fields["task"].choices = tasks  # type: ignore[attr-defined]  # a choice, declared above
        self.fields["layout"].choices = layout_choices()  # type: ignore[attr-defined]  # a choice, declared above

    def clean_labels(self) -> tuple[str, ...]:
        try:
            return declared.labels_of(self.cleaned_data["labels"])
        except DomainError as exc:
            raise forms.ValidationError(exc.message) from None

    def name_detected(self, texts: Mapping[str, str]) -> None:
        """Show detected values where a field is left empty."""
        for name, text in texts.items():
            field = self.fields.get(name)
            if isinstance(field, forms.ChoiceField):
                others = list(cast(Iterable[Any], field.choices))[1:]
                field.choices = [("", _("Detected: %(value)s") % {"value": text}), *others]
            elif field is not None:
                field.widget.attrs["placeholder"] = text

    def declared(self) -> Declared:
        """Return what the user declares of the model."""
        values = {name: self.cleaned_data.get(name) for name in self.DECLARED}
        return Declared(**{name: value for name, value in values.items() if value})


class ExamplesForm(UserForm):
    """Images that a model is tried on."""

    pictures = PicturesField(
        label=_("Images"),
        required=False,
        help_text=_("Drop up to six images here, or choose them."),
    )
    dataset = DatasetVersionChoice(
        label=_("Dataset"),
        queryset=DatasetVersion.objects.none(),
        required=False,
        empty_label=_("None"),
        help_text=_("Images with the most objects; annotations show which interpretation is correct."),
    )
    called: ClassVar[dict[str, str]] = {"version": "dataset"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["dataset"].queryset = (  # type: ignore[attr-defined]  # a choice among rows, declared above
            DatasetVersion.objects.usable_by(self.user).select_related("dataset")
        )


class BringForm(DetailsForm, ExamplesForm):
    """The location of a model. Scripts send the details in the same request; the page asks for them afterwards."""

    file = forms.FileField(label=_("File"), required=False)
    upload_id = forms.CharField(label=_("File"), required=False, max_length=32, widget=forms.HiddenInput)
    path = forms.CharField(
        label=_("Path"),
        max_length=1000,
        required=False,
        help_text=_("File or folder in your home, or in the outputs of the job below."),
        widget=forms.TextInput(attrs={"class": "mono", "placeholder": "models/resnet50.onnx", "autocomplete": "off"}),
    )
    job = forms.IntegerField(
        label=_("Job"),
        required=False,
        min_value=1,
        help_text=_("Number of a finished job whose outputs contain the model. Default path: its model folder."),
    )
    called: ClassVar[dict[str, str]] = {"version": "dataset"}
    required_where_shown = ("upload_id",)

    @property
    def is_trial(self) -> bool:
        """Whether the model is to be tried on pictures first."""
        return self.data.get("act") == TRY

    @property
    def is_complete(self) -> bool:
        """Whether the request names everything, as scripts do, so that no import waits for a confirmation."""
        return self.is_trial or bool(self.cleaned_data.get("file")) or bool(self.declared())

    def errors_of_hidden_fields(self) -> list[str]:
        """Return the errors of fields that only scripts send, each after the label of its field."""
        shown = {"name", "upload_id", "path", "job", NON_FIELD_ERRORS}
        return [
            f"{self.fields[name].label}: {text}"
            for name, texts in self.errors.items()
            if name not in shown
            for text in texts
        ]

    def kept_upload(self) -> Upload | None:
        """Return the upload of a refused form, if it still exists."""
        upload_id = str(self["upload_id"].value() or "")
        row: Upload | None = Upload.objects.visible_to(self.user).filter(pk=upload_id).first() if upload_id else None
        return row

    def clean_upload_id(self) -> Upload | None:
        if not self.cleaned_data["upload_id"]:
            return None
        row = self.kept_upload()
        if row is None or row.state == Upload.State.OPEN:
            raise forms.ValidationError(_("The upload is not complete. Choose the file again."))
        return row

    def clean_job(self) -> Job | None:
        number = self.cleaned_data["job"]
        if not number:
            return None
        row: Job | None = Job.objects.visible_to(self.user).filter(pk=ids.number(str(number)) or 0).first()
        if row is None:
            raise forms.ValidationError(_("Job not found."))
        return row

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        sources = [values.get("file"), values.get("upload_id"), values.get("path") or values.get("job")]
        if sum(map(bool, sources)) != 1 and not {"file", "upload_id", "path", "job"} & set(self.errors):
            self.add_error(
                "file" if values.get("file") else "upload_id", _("Choose a file, or enter the path of the model.")
            )
        if self.is_trial and not {"pictures", "dataset"} & set(self.errors):
            with errors_shown_on(self):
                trials.check_pictures(len(values.get("pictures") or ()), values.get("dataset"))
        return values

    def about(self) -> dict[str, Any]:
        """What the model is called, and who may see it; nothing where it has a name."""
        return {}


class UploadForm(BringForm):
    """A new model."""

    name = forms.CharField(label=_("Name"), max_length=100, validators=[TITLE])
    description = forms.CharField(label=_("Description"), max_length=500, required=False, widget=TEXTAREA)
    visibility = forms.ChoiceField(
        label=_("Visible to"), choices=Visibility, initial=Visibility.PRIVATE, required=False
    )
    field_order = ("upload_id", "name")

    def clean_visibility(self) -> str:
        return self.cleaned_data["visibility"] or Visibility.PRIVATE

    def about(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("name", "description", "visibility")}


class VersionForm(BringForm):
    """A further version of a model."""


class ConfirmForm(forms.Form):
    """What a new model is called, and who sees it; a further version has both from its model."""

    name = forms.CharField(label=_("Name"), max_length=100, validators=[TITLE])
    description = forms.CharField(label=_("Description"), max_length=500, required=False, widget=TEXTAREA)
    visibility = forms.ChoiceField(label=_("Visible to"), choices=Visibility, initial=Visibility.PRIVATE)

    def __init__(self, *args: Any, model: Model | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if model is not None:
            self.fields.clear()
