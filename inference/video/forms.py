"""The form of an analysis of a video."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.errors import Invalid
from aiplatform.lib.row_choices import offer
from inference.evaluation.jobs.forms import ModelJobForm, name_field
from inference.registry.fields import ModelVersionChoice
from inference.registry.models import ModelVersion
from inference.video import analyses, streams, zones
from inference.video.models import VideoFile

SOURCES = [("file", _("Upload a file")), ("video", _("Uploaded video")), ("url", _("Stream"))]
MISSING = {
    "file": _("Choose a video file."),
    "video": _("Choose an uploaded video."),
    "url": _("Enter a stream address."),
}


class VideoFileForm(forms.Form):
    """A video to upload."""

    file = forms.FileField(label=_("Video file"), help_text=_("MP4, MOV, MKV, WebM, AVI, MPEG and others."))


class VideoForm(ModelJobForm):
    """Model, source, what is counted, and resources."""

    required_where_shown = ("video", "file", "url")
    model_version = ModelVersionChoice(
        label=_("Model"), queryset=ModelVersion.objects.none(), empty_label=_("Choose a detector")
    )
    source = forms.ChoiceField(label=_("Source"), choices=SOURCES, required=False, widget=forms.RadioSelect)
    video = forms.ModelChoiceField(
        label=_("Uploaded video"),
        queryset=VideoFile.objects.none(),
        required=False,
        empty_label="–",
    )
    file = forms.FileField(
        label=_("Video file"),
        required=False,
        help_text=_("MP4, MOV, MKV, WebM, AVI, MPEG and others. Opened in the sandbox of a job."),
    )
    url = forms.CharField(
        label=_("Stream address"),
        required=False,
        max_length=streams.MAX_LENGTH,
        widget=forms.TextInput(attrs={"class": "mono", "placeholder": "rtsp://", "autocomplete": "off"}),
        help_text=_("rtsp, rtsps, http or https, with username and password if required; stored as secrets."),
    )
    classes = forms.CharField(
        label=_("Classes"),
        required=False,
        max_length=1000,
        help_text=_("Class names separated by commas. Default: all classes of the model."),
    )
    min_score = forms.FloatField(
        label=_("Minimum confidence"),
        required=False,
        min_value=0.01,
        max_value=1,
        help_text=_(
            "Minimum confidence of tracked objects. Default: the best threshold of the newest evaluation, "
            "otherwise that of the model."
        ),
    )
    places = forms.CharField(
        label=_("Lines and zones"),
        required=False,
        max_length=100_000,
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "class": "mono",
                "spellcheck": "false",
                "placeholder": '{"lines": [{"name": "Door", "points": [[0.5, 0], [0.5, 1]]}]}',
            }
        ),
        help_text=_(
            "Drawn on the first frame on the page of an analysis; here as JSON, with points relative to the "
            "image size from 0 to 1."
        ),
    )
    film = forms.BooleanField(label=_("Create annotated video"), required=False, initial=True)
    max_rate = forms.FloatField(
        label=_("Frames per second"),
        required=False,
        min_value=0.01,
        max_value=analyses.MAX_RATE,
        help_text=_("Maximum frames per second that are analyzed. Default: all."),
    )
    interval_s = forms.FloatField(label=_("Interval (s)"), min_value=1, max_value=86_400, initial=analyses.INTERVAL_S)
    still_s = forms.FloatField(
        label=_("Seconds without a new image"),
        required=False,
        min_value=0,
        max_value=86_400,
        initial=analyses.STILL_S,
        help_text=_("Reports a stream that shows the same or a black image for this long. 0: never."),
    )
    webhook_url = forms.CharField(
        label=_("Webhook"),
        required=False,
        max_length=500,
        help_text=_("Receives each event as JSON, with retries."),
    )
    name = name_field(_("Leave empty to derive it from the video."))

    MAIN = ("model_version", "source", "file", "video", "url")
    ADVANCED = ("classes", "min_score", "places", "film", "max_rate", "interval_s", "still_s", "webhook_url", "name")
    more_title = _("Advanced")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        models = ModelVersion.objects.usable_by(user).filter(task__in=analyses.WATCHING).in_use()
        offer(models.select_related("model"), self.fields["model_version"])
        videos = VideoFile.objects.usable_by(user)
        offer(videos, self.fields["video"])
        if not videos.exists():
            self.fields["source"].choices = [choice for choice in SOURCES if choice[0] != "video"]  # type: ignore[attr-defined]  # a field of choices, declared above
        self.fields["source"].initial = "video" if self.initial.get("video") else "file"

    def clean_classes(self) -> list[str]:
        return [name for part in self.cleaned_data["classes"].split(",") if (name := part.strip())]

    def clean_still_s(self) -> float:
        seconds: float | None = self.cleaned_data["still_s"]
        return analyses.STILL_S if seconds is None else seconds

    def clean_places(self) -> dict[str, Any]:
        text = self.cleaned_data["places"].strip()
        try:
            return zones.checked(json.loads(text)) if text else {}
        except (ValueError, RecursionError):
            raise forms.ValidationError(_("Expected JSON with lines and zones.")) from None
        except Invalid as exc:
            raise forms.ValidationError(exc.message) from None

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        source = values.get("source")
        if source:
            for name in MISSING.keys() - {source}:  # hidden fields keep what was entered before
                values[name] = "" if name == "url" else None
                self.errors.pop(name, None)
            if not values.get(source) and source not in self.errors:
                self.add_error(source, MISSING[source])
            return values
        chosen = [name for name in ("video", "file", "url") if values.get(name)]
        if len(chosen) != 1 and not {"video", "file", "url"} & set(self.errors):
            self.add_error("source", _("Choose a video, upload one, or enter a stream address: exactly one."))
        return values

    def submission(self) -> dict[str, Any]:
        """Arguments of `analyses.submit`, all but the video."""
        return {name: self.cleaned_data[name] for name in ("model_version", "url", *self.ADVANCED)} | self.resources()
