"""Forms that bring a model in: from where, and what a person says of it."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import errors_shown_on
from aiplatform.lib.titles import TITLE
from datasets.forms.version_choice import DatasetVersionChoice
from datasets.models import DatasetVersion
from inference.registry import task_labels
from inference.registry.formats import declared
from inference.registry.formats.declared import LAYOUTS, PIXEL_LABELS, Declared
from inference.registry.import_trials import trials
from inference.registry.models import Visibility
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


class BringForm(forms.Form):
    """The location of a model, and what its files do not say."""

    file = forms.FileField(
        label=_("File"),
        required=False,
        help_text=_(
            "A .onnx or .safetensors file, a .zip or .tar file of a model folder (also from Hugging Face), or "
            "a PyTorch archive (.pt, .pth, .pt2), which a job opens in its sandbox."
        ),
    )
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
    pictures = PicturesField(
        label=_("Images"),
        required=False,
        help_text=_("Up to six images on which correct predictions are recognizable."),
    )
    dataset = DatasetVersionChoice(
        label=_("Dataset"),
        queryset=DatasetVersion.objects.none(),
        required=False,
        empty_label=_("None"),
        help_text=_("Images with the most objects; annotations show which interpretation is correct."),
    )
    called: ClassVar[dict[str, str]] = {"version": "dataset"}
    DECLARED = ("task", "labels", "pixels", "layout", "width", "height", "resize")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        task_names = dict(task_labels.choices())
        tasks = [("", _("As defined in the files")), *((task, task_names[task]) for task in LAYOUTS)]
        self.fields["task"].choices = tasks  # type: ignore[attr-defined]  # a choice, declared above
        self.fields["layout"].choices = layout_choices()  # type: ignore[attr-defined]  # a choice, declared above
        self.fields["dataset"].queryset = (  # type: ignore[attr-defined]  # a choice among rows, declared above
            DatasetVersion.objects.usable_by(user).select_related("dataset")
        )
        self.user = user

    @property
    def is_trial(self) -> bool:
        """Whether the model is to be tried on pictures first."""
        return self.data.get("act") == TRY

    def clean_job(self) -> Job | None:
        number = self.cleaned_data["job"]
        if not number:
            return None
        row: Job | None = Job.objects.visible_to(self.user).filter(pk=ids.number(str(number)) or 0).first()
        if row is None:
            raise forms.ValidationError(_("Job not found."))
        return row

    def clean_labels(self) -> tuple[str, ...]:
        try:
            return declared.labels_of(self.cleaned_data["labels"])
        except DomainError as exc:
            raise forms.ValidationError(exc.message) from None

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        has_path = bool(values.get("path") or values.get("job"))
        if bool(values.get("file")) == has_path and not {"file", "path", "job"} & set(self.errors):
            # where nothing is said no field is wrong by itself
            self.add_error("file" if has_path else None, _("Choose a file, or enter the path of the model."))
        if self.is_trial and not {"pictures", "dataset"} & set(self.errors):
            with errors_shown_on(self):
                trials.check_pictures(len(values.get("pictures") or ()), values.get("dataset"))
        return values

    def about(self) -> dict[str, Any]:
        """What the model is called, and who may see it; nothing where it has a name."""
        return {}

    def declared(self) -> Declared:
        """Return what the user declares of the model."""
        values = {name: self.cleaned_data.get(name) for name in self.DECLARED}
        return Declared(**{name: value for name, value in values.items() if value})


class UploadForm(BringForm):
    """A new model."""

    name = forms.CharField(label=_("Name"), max_length=100, validators=[TITLE])
    description = forms.CharField(label=_("Description"), max_length=500, required=False, widget=TEXTAREA)
    visibility = forms.ChoiceField(label=_("Visible to"), choices=Visibility, initial=Visibility.PRIVATE)
    field_order = ("name", "file")

    def about(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("name", "description", "visibility")}


class VersionForm(BringForm):
    """A further version of a model."""
