"""Pages of watched videos."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.downloads import send_file
from aiplatform.objects import bulk
from aiplatform.objects.pages import ObjectPages, action, page
from aiplatform.objects.tables import Column, Table
from inference.evaluation.jobs.pages import CREATED, MODEL, NAME, OWNER, STATE, ModelJobPages
from inference.registry.uploads import on_disk
from inference.video import analyses, files, presentation, results
from inference.video.filters import VideoFileFilters, VideoFilters
from inference.video.forms import VideoFileForm, VideoForm
from inference.video.models import VideoAnalysis, VideoFile
from inference.video.watcher import pyav

CARRIED = ("min_score", "max_rate", "film", "interval_s", "still_s")  # to an analysis that is made anew


class VideoPages(ModelJobPages[VideoAnalysis]):
    """The pages of video analyses."""

    model, filters, form_class = VideoAnalysis, VideoFilters, VideoForm
    basename, path = "video", "videos/"
    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    check = staticmethod(analyses.check)
    prefilled = ("model_version", "video")
    source = Column(_("Video"), "row.source_label", sort="source", css="wrap-any")
    event_count = Column(_("Events"), 'row.summary.events|default_if_none:"–"|default:"–"', kind="num")
    stop_text = _("Counts so far are kept.")
    table = Table(
        NAME, STATE, source, MODEL, event_count, OWNER, CREATED,
        bulk=(bulk.stop("/api/v1/videos/0/stop/", stop_text),), row_name="row.job.name",
    )  # fmt: skip
    region, art, title = "videos", "video", _("Video analytics")
    lead = _("A detector analyzes a video: it tracks moving objects and counts those that cross lines and enter zones.")
    filter_label, no_match_text = _("Filter videos"), _("No video matches.")
    empty_text = _("No videos yet. Upload one and choose a detector to track objects.")
    new_title, list_template = _("Analyze video"), "inference/video_list.html"
    form_lead = _("Tracks objects, counts them in lines and zones, and reports events.")
    form_template = "inference/video_new.html"
    detail_template, live_template = "inference/video_detail.html", "inference/_video_counts.html"

    def initial(self, request: SignedInRequest) -> dict[str, Any]:
        """What the address says, and with `?again=` all of an analysis."""
        again, values = request.GET.get("again", ""), super().initial(request)
        if not (again.isascii() and again.isdigit() and len(again) < 10):
            return values
        earlier = get_object_or_404(self.rows(request), pk=int(again))
        params = earlier.params
        places = {name: params.get(name, []) for name in ("lines", "zones")}
        return {
            "model_version": earlier.version_id,
            "video": earlier.video_id,
            "places": json.dumps(places, ensure_ascii=False) if any(places.values()) else "",
            "classes": ", ".join(params.get("class_names", {}).get(str(kind), "") for kind in params["classes"]),
            **{name: params[name] for name in CARRIED if name in params},
        } | values

    def form_context(self, request: SignedInRequest, form: Any, row: VideoAnalysis | None) -> dict[str, Any]:
        context = super().form_context(request, form, row)
        return context | {"no_decoder": pyav.HOW if pyav.is_missing() else ""}

    def create(self, request: SignedInRequest, form: VideoForm) -> VideoAnalysis:
        analyses.check_decoder()
        return analyses.submit(user=request.user, video=_video(request, form), **form.submission())

    def is_outdated(self, request: SignedInRequest, row: VideoAnalysis) -> bool:
        has_started = row.is_stream and request.GET.get("shown") != row.job.state  # now there is something to see
        return has_started or super().is_outdated(request, row)

    def details(self, request: SignedInRequest, row: VideoAnalysis, is_own: bool) -> dict[str, Any]:
        """The film with its timeline, counts and events."""
        return {"can_again": bool(row.video_id or row.is_stream), **presentation.build_context(row)}

    @page(path="<int:pk>/file/<str:name>")
    def file(self, request: SignedInRequest, row: VideoAnalysis, name: str) -> HttpResponseBase:
        """The film, or one of the pictures, for the page; parts of it where `Range` asks for them."""
        opened = results.opened(row, name) if name in results.SHOWN else None
        if opened is None:
            raise Http404
        return send_file(request, opened, name, inline=True)

    @page(path="<int:pk>/events/<slug:kind>/")
    def events(self, request: SignedInRequest, row: VideoAnalysis, kind: str) -> HttpResponseBase:
        """All events as CSV or JSON lines."""
        if kind == "csv":
            return presentation.csv_of(row)
        opened = results.opened(row, results.EVENTS)
        if opened is None:
            raise Http404
        return send_file(request, opened, f"{row.job.name}_events.jsonl")

    @action()
    def again(self, request: SignedInRequest, row: VideoAnalysis) -> HttpResponse:
        """Watch the same video once more, with the lines and zones that were drawn on the page."""
        places = presentation.parsed(request.POST.get("places", ""))
        return redirect(self.names.detail, analyses.again(before=row, by=request.user, places=places).pk)


class VideoFilePages(ObjectPages[VideoFile]):
    """Uploaded videos: the list, the upload, and their end."""

    model, filters, form_class = VideoFile, VideoFileFilters, VideoFileForm
    namespace, basename, path = "inference", "video-file", "videos/files/"
    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    table = Table(
        Column(_("Name"), "row.name", sort="name", css="main-cell"),
        Column(_("Size"), "row.size_bytes|bytes", sort="size", kind="num"),
        Column(_("Owner"), "row.owner", sort="owner"),
        Column(_("Created"), "row.created_at|ago", sort="created", kind="time"),
        Column(_("Actions"), template="inference/_video_file_buttons.html", kind="actions"),
        bulk=(
            bulk.delete(
                "/api/v1/video-files/0/", _("Analyses of these videos are kept."), needs=Action.EVALUATIONS_SUBMIT
            ),
        ),
    )
    region, art, confirms_name = "video-files", "video", False
    title, lead = _("Uploaded videos"), _("Videos are kept until they are deleted, so that they can be analyzed again.")
    filter_label, no_match_text = _("Filter videos"), _("No video matches.")
    empty_text = _("No videos yet. Upload one to analyze it with a detector.")
    new_title = save_label = _("Upload video")
    new_icon = "upload"
    list_template = "inference/video_file_list.html"

    def form(self, request: SignedInRequest, row: VideoFile | None = None) -> VideoFileForm:
        return VideoFileForm(request.POST, request.FILES) if request.method == "POST" else VideoFileForm()

    def create(self, request: SignedInRequest, form: VideoFileForm) -> VideoFile:
        with on_disk(form.cleaned_data["file"]) as (source, filename):
            return files.store(user=request.user, source=source, filename=filename)

    def remove(self, request: SignedInRequest, row: VideoFile) -> None:
        files.delete(video=row)


def _video(request: SignedInRequest, form: VideoForm) -> VideoFile | None:
    """Return the chosen video, or the one that was sent with the form; None for a stream."""
    values = form.cleaned_data
    if values["video"]:
        return values["video"]
    if not values["file"]:
        return None
    analyses.check(model_version=values["model_version"])
    with on_disk(values["file"]) as (source, filename):
        return files.store(user=request.user, source=source, filename=filename)
