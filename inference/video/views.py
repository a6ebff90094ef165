"""Pages of watched videos."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.downloads import send_file
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, needs
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, Table
from inference.evaluation import evaluations
from inference.evaluation.job_lists import CREATED, MODEL, NAME, OWNER, STATE, JobRowPages
from inference.registry.uploads import on_disk
from inference.video import analyses, files, presentation, results
from inference.video.filters import VideoFileFilters, VideoFilters
from inference.video.forms import VideoForm
from inference.video.models import VideoAnalysis, VideoFile
from inference.video.watcher import pyav
from workers.jobs import actions
from workers.jobs.resource_request import Resources
from workers.scheduling import preview

CARRIED = ("min_score", "max_rate", "film", "interval_s", "still_s")  # to an analysis that is made anew


class VideoPages(JobRowPages[VideoAnalysis]):
    """The list of video analyses."""

    model, filters = VideoAnalysis, VideoFilters
    basename, path, url_names = "video", "videos/", {"detail": "video-detail"}
    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    source = Column(_("Video"), "row.source_label", sort="source", css="wrap-any")
    events = Column(_("Events"), 'row.summary.events|default_if_none:"–"|default:"–"', kind="num")
    table = Table(NAME, STATE, source, MODEL, events, OWNER, CREATED)
    region, title = "videos", _("Video analytics")
    lead = _("A detector analyzes a video: it tracks moving objects and counts those that cross lines and enter zones.")
    filter_label, no_match_text = _("Filter videos"), _("No video matches.")
    empty_text = _("No videos yet. Upload one and choose a detector to track objects.")
    new_title, list_template = _("Analyze video"), "inference/video_list.html"


class VideoFilePages(ObjectPages[VideoFile]):
    """Uploaded videos: the list, and their end."""

    model, filters = VideoFile, VideoFileFilters
    namespace, basename, path = "inference", "video-file", "videos/files/"
    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    table = Table(
        Column(_("Name"), "row.name", sort="name", css="main-cell"),
        Column(_("Size"), "row.size_bytes|filesizeformat", sort="size", kind="num"),
        Column(_("Owner"), "row.owner", sort="owner"),
        Column(_("Created"), "row.created_at|ago", sort="created", kind="time"),
        Column(_("Actions"), template="inference/_video_file_buttons.html", kind="actions", css="nowrap"),
    )
    region, art, confirms_name = "video-files", "search", False
    title, lead = _("Uploaded videos"), _("Videos are kept until they are deleted, so that they can be analyzed again.")
    filter_label, no_match_text = _("Filter videos"), _("No video matches.")
    empty_text = _("No videos yet. Upload a video when you start an analysis.")
    list_template = "inference/video_file_list.html"

    def remove(self, request: SignedInRequest, row: VideoFile) -> None:
        files.delete(video=row)


@needs(Action.EVALUATIONS_SUBMIT)
def video_new(request: SignedInRequest) -> HttpResponse:
    """The form of an analysis; `?model_version=`, `?video=` fill in what is known, `?again=` all of an analysis."""
    form = VideoForm(request.POST or None, request.FILES or None, user=request.user, initial=_initial_values(request))
    if form.is_valid():
        with errors_shown_on(form):
            analyses.check_decoder()
            analysis = analyses.submit(user=request.user, video=_video(request, form), **form.submission())
            return redirect("inference:video-detail", analysis.pk)
    else:
        check_valid_fields(form, analyses.check)
    context = {
        "form": form,
        "advanced": [form[name] for name in form.ADVANCED],
        "list_url": reverse("inference:video-list"),
        "fit_url": reverse("inference:video-fit"),
        "no_decoder": pyav.HOW if pyav.is_missing() else "",
    }
    return render(request, "inference/video_new.html", context, status=422 if form.errors else 200)


def _initial_values(request: SignedInRequest) -> dict[str, Any]:
    initial: dict[str, Any] = {name: request.GET[name] for name in ("model_version", "video") if name in request.GET}
    again = request.GET.get("again", "")
    if again.isascii() and again.isdigit() and len(again) < 10:
        earlier = get_object_or_404(VideoAnalysis.objects.visible_to(request.user), pk=int(again))
        params = earlier.params
        places = {name: params.get(name, []) for name in ("lines", "zones")}
        initial = {
            "model_version": earlier.version_id,
            "video": earlier.video_id,
            "places": json.dumps(places, ensure_ascii=False) if any(places.values()) else "",
            "classes": ", ".join(params.get("class_names", {}).get(str(kind), "") for kind in params["classes"]),
            **{name: params[name] for name in CARRIED if name in params},
        } | initial
    return initial


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


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def video_fit(request: SignedInRequest) -> HttpResponse:
    """The panel in the form: whether it would start now. Incomplete forms are fine."""
    form = VideoForm(request.POST, user=request.user)
    form.is_valid()
    resources: Resources = {"cpus": evaluations.DEFAULT_CPUS, **form.resources()}
    return render(
        request, "workers/_fit.html", {"verdict": preview.preview_request(request.user, resources, kind=analyses.KIND)}
    )


@needs(Action.EVALUATIONS_VIEW)
def video_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """The film with its timeline, counts and events. htmx polls what changes until the job is over."""
    analysis = _visible(request, pk)
    context = _shown(request, analysis)
    if request.htmx:
        began = analysis.is_stream and request.GET.get("shown") != analysis.job.state  # now there is something to see
        if analysis.job.is_final or began:
            return HttpResponse(headers={"HX-Refresh": "true"})
        return render(request, "inference/_video_counts.html", context)
    return render(request, "inference/video_detail.html", context)


def _shown(request: SignedInRequest, analysis: VideoAnalysis) -> dict[str, Any]:
    own = VideoAnalysis.objects.editable_by(request.user).filter(pk=analysis.pk).exists()
    may = own and request.user.can(Action.EVALUATIONS_SUBMIT)
    return {
        "analysis": analysis,
        "may_control": may,
        "can_again": bool(analysis.video_id or analysis.is_stream),
        **presentation.build_context(analysis),
    }


@needs(Action.EVALUATIONS_VIEW)
def video_file(request: SignedInRequest, pk: int, name: str) -> HttpResponseBase:
    """The film, or one of the pictures, for the page; parts of it where `Range` asks for them."""
    analysis = _visible(request, pk)
    opened = results.opened(analysis, name) if name in results.SHOWN else None
    if opened is None:
        raise Http404
    return send_file(request, opened, name, inline=True)


@needs(Action.EVALUATIONS_VIEW)
def video_events(request: SignedInRequest, pk: int, kind: str) -> HttpResponseBase:
    """All events as CSV or JSON lines."""
    analysis = _visible(request, pk)
    if kind == "csv":
        return presentation.csv_of(analysis)
    opened = results.opened(analysis, results.EVENTS)
    if opened is None:
        raise Http404
    return send_file(request, opened, f"{analysis.job.name}_events.jsonl")


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def video_stop(request: SignedInRequest, pk: int) -> HttpResponse:
    """Request a stop."""
    rows = VideoAnalysis.objects.editable_by(request.user).select_related("job")
    actions.stop(get_object_or_404(rows, pk=pk).job, by=request.user)
    return redirect("inference:video-detail", pk)


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def video_again(request: SignedInRequest, pk: int) -> HttpResponse:
    """Watch the same video once more, with the lines and zones that were drawn on the page."""
    before = get_object_or_404(VideoAnalysis.objects.editable_by(request.user).for_list(), pk=pk)
    with errors_as_messages(request):
        made = analyses.again(
            before=before, by=request.user, places=presentation.parsed(request.POST.get("places", ""))
        )
        return redirect("inference:video-detail", made.pk)
    return redirect("inference:video-detail", pk)


def _visible(request: SignedInRequest, pk: int) -> VideoAnalysis:
    analysis: VideoAnalysis = get_object_or_404(VideoAnalysis.objects.visible_to(request.user).for_list(), pk=pk)
    return analysis
