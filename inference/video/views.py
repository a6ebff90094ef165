"""Pages of watched videos."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.downloads import send_file
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, needs
from inference.evaluation import evaluations
from inference.evaluation.metric_labels import GROUP_WORDS
from inference.registry.uploads import on_disk
from inference.video import analyses, files, presentation, results
from inference.video.forms import VideoForm
from inference.video.models import VideoAnalysis, VideoFile
from inference.video.orders import VIDEO_FILES, VIDEOS
from inference.video.watcher import pyav
from workers.jobs import actions
from workers.jobs.resource_request import Resources
from workers.scheduling import preview

CARRIED = ("min_score", "max_rate", "film", "interval_s", "still_s")  # to an analysis that is made anew


@needs(Action.EVALUATIONS_VIEW)
def video_list(request: SignedInRequest) -> HttpResponse:
    """Analyses this person may see; `?q=`, `?state=`, `?mine=1`, `?ordering=`. htmx gets the table alone."""
    state, words = request.GET.get("state", ""), request.GET.get("q", "")
    rows = VideoAnalysis.objects.visible_to(request.user).for_list().in_state(state).named_like(words)
    if request.GET.get("mine") == "1":
        rows = rows.filter(job__owner=request.user)
    page = VIDEOS.page(request, rows)
    alive = any(not analysis.job.is_final for analysis in page)
    context = {"page": page, "states": GROUP_WORDS.items(), "refresh": alive}
    template = "inference/_video_table.html" if request.htmx else "inference/video_list.html"
    return render(request, template, context)


@needs(Action.EVALUATIONS_SUBMIT)
def video_new(request: SignedInRequest) -> HttpResponse:
    """The form of an analysis; `?model_version=`, `?video=` fill in what is known, `?again=` all of an analysis."""
    form = VideoForm(request.POST or None, request.FILES or None, user=request.user, initial=_known(request))
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


def _known(request: SignedInRequest) -> dict[str, Any]:
    known: dict[str, Any] = {name: request.GET[name] for name in ("model_version", "video") if name in request.GET}
    again = request.GET.get("again", "")
    if again.isascii() and again.isdigit() and len(again) < 10:
        before = get_object_or_404(VideoAnalysis.objects.visible_to(request.user), pk=int(again))
        params = before.params
        places = {name: params.get(name, []) for name in ("lines", "zones")}
        known = {
            "model_version": before.version_id,
            "video": before.video_id,
            "places": json.dumps(places, ensure_ascii=False) if any(places.values()) else "",
            "classes": ", ".join(params.get("class_names", {}).get(str(kind), "") for kind in params["classes"]),
            **{name: params[name] for name in CARRIED if name in params},
        } | known
    return known


def _video(request: SignedInRequest, form: VideoForm) -> VideoFile | None:
    """The chosen video, or the one that was sent with the form; None where a stream is watched."""
    given = form.cleaned_data
    if given["video"]:
        return given["video"]
    if not given["file"]:
        return None
    analyses.check(model_version=given["model_version"])
    with on_disk(given["file"]) as (source, filename):
        return files.keep(user=request.user, source=source, filename=filename)


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def video_fit(request: SignedInRequest) -> HttpResponse:
    """The panel in the form: whether it would start now. Incomplete forms are fine."""
    form = VideoForm(request.POST, user=request.user)
    form.is_valid()
    resources: Resources = {"cpus": evaluations.DEFAULT_CPUS, **form.resources()}
    return render(request, "workers/_fit.html", {"verdict": preview.look(request.user, resources, kind=analyses.KIND)})


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
        **presentation.of(analysis),
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


@needs(Action.EVALUATIONS_VIEW)
def file_list(request: SignedInRequest) -> HttpResponse:
    """Uploaded videos; `?q=`, `?ordering=`. htmx gets the table alone."""
    rows = VideoFile.objects.visible_to(request.user).named_like(request.GET.get("q", "")).select_related("owner")
    context = {"page": VIDEO_FILES.page(request, rows)}
    template = "inference/_video_file_table.html" if request.htmx else "inference/video_file_list.html"
    return render(request, template, context)


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def file_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete a video; what was found in it stays."""
    video = get_object_or_404(VideoFile.objects.editable_by(request.user), pk=pk)
    with errors_as_messages(request):
        files.delete(video=video)
    return redirect("inference:video-file-list")


def _visible(request: SignedInRequest, pk: int) -> VideoAnalysis:
    analysis: VideoAnalysis = get_object_or_404(VideoAnalysis.objects.visible_to(request.user).for_list(), pk=pk)
    return analysis
