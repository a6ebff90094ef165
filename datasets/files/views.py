"""Pages of files: what lies in a folder, one file, and what is shared. The same services as `datasets/files/api.py`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform import env
from aiplatform.lib import file_names, ids
from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import needs, refusals_said, refusals_shown_on
from datasets.files import changes, datasets, listing, paths, preview, sharing, usage
from datasets.files.forms import MoveForm, NameForm
from datasets.files.paths import Place


@needs(Action.JOBS_VIEW)
@require_GET
def index(request: SignedInRequest) -> HttpResponse:
    """A folder of the reader's home, or with `?shared=` of another's; `?path=`, `?q=`, `?ordering=`, `?page=`."""
    place = _place(request)
    order, words = listing.ORDERING.chosen(request.GET), request.GET.get("q", "")[:100]
    found = listing.look(place, order=order, words=words)
    context = {**_around(request, place), "page": _page(request, found, order), "more": found.more}
    if request.htmx:
        return render(request, "files/_table.html", context)
    if place.share is None:
        context |= {"usage": usage.of(request.user), "quota": env.HOME_QUOTA_BYTES}
    return render(request, "files/list.html", context)


@needs(Action.JOBS_VIEW)
@require_GET
def show(request: SignedInRequest) -> HttpResponse:
    """One file: its facts, and what of it can be shown."""
    place = _place(request)
    entry = listing.about(place)
    if entry.is_folder:
        return redirect(_url(place))
    shown = preview.of(place) if entry.is_file else preview.Preview()
    context = {**_around(request, place), "entry": entry, "preview": shown}
    return render(request, "files/show.html", context)


@needs(Action.JOBS_VIEW)
@require_GET
def shared(request: SignedInRequest) -> HttpResponse:
    """Folders that others share with the reader, and those the reader shares."""
    context = {"with_me": sharing.with_me(request.user), "by_me": sharing.with_others(request.user)}
    return render(request, "files/shared.html", context)


@needs(Action.JOBS_SUBMIT)
def folder(request: SignedInRequest) -> HttpResponse:
    """Make a folder in the folder `?path=`."""
    place = paths.own(request.user, request.GET.get("path", ""))
    form = NameForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            entry = changes.make_folder(request.user, _joined(place.path, form.cleaned_data["name"]))
            return redirect(_url(paths.own(request.user, entry.path)))
    context = {**_around(request, place), "form": form}
    return render(request, "files/folder.html", context, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
def move(request: SignedInRequest) -> HttpResponse:
    """Give what is at `?path=` another name or folder."""
    place = paths.own(request.user, request.GET.get("path", ""))
    if not place.parts:
        raise Invalid(_("The home itself stays where it is."))
    entry = listing.about(place)
    form = MoveForm(request.POST or None, initial={"name": entry.name, "folder": place.above.path})
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            _single(form.cleaned_data["name"])
            to = _joined(form.cleaned_data["folder"], form.cleaned_data["name"])
            moved = changes.move(request.user, place.path, to)
            messages.success(request, _("It is at %(path)s now.") % {"path": moved.path})
            return redirect(_url(paths.own(request.user, moved.path).above))
    context = {**_around(request, place), "entry": entry, "form": form}
    return render(request, "files/move.html", context, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
@require_POST
def delete(request: SignedInRequest) -> HttpResponse:
    """Delete what is at `path`."""
    place = paths.own(request.user, request.POST.get("path", ""))
    with refusals_said(request):
        changes.delete(request.user, place.path)
        messages.success(request, _("%(name)s is deleted.") % {"name": place.name})
    return redirect(_url(place.above))


@needs(Action.JOBS_SUBMIT)
@require_POST
def put(request: SignedInRequest) -> HttpResponse:
    """Bring files that come with the form itself; scripts and the page's own script send them resumably instead."""
    place = paths.own(request.user, request.POST.get("path", ""))
    brought = 0
    for sent in request.FILES.getlist("files"):
        with refusals_said(request):
            path = _joined(place.path, file_names.shown((sent.name or "").encode()))
            changes.put_sent(request.user, sent, path, replace=request.POST.get("replace") == "1")
            brought += 1
    if brought:
        said = ngettext("%(count)s file is there.", "%(count)s files are there.", brought)
        messages.success(request, said % {"count": brought})
    return redirect(_url(place))


@needs(Action.DATASETS_CREATE)
@require_POST
def dataset(request: SignedInRequest) -> HttpResponse:
    """Import what is at `path` as a new dataset; shows its progress."""
    share = ids.number(request.POST.get("shared", ""))
    place = paths.seen_by(request.user, request.POST.get("path", ""), share)
    with refusals_said(request):
        row = datasets.make(place, by=request.user)
        return redirect("datasets:import", row.dataset_id, row.pk)
    return redirect(_url(place.above if place.parts else place))


@needs(Action.JOBS_SUBMIT)
@require_POST
def share(request: SignedInRequest) -> HttpResponse:
    """Go on to whom the folder `path` is shared with."""
    place = paths.own(request.user, request.POST.get("path", ""))
    with refusals_said(request):
        return redirect("accounts:share", "folder", sharing.begin(request.user, place.path).pk)
    return redirect(_url(place.above))


def _place(request: SignedInRequest) -> Place:
    number = request.GET.get("shared", "")
    if not number:
        return paths.own(request.user, request.GET.get("path", ""))
    share_id = ids.number(number)
    if share_id is None:
        raise NotFound(_("There is no such shared folder (any more)."))
    return paths.seen_by(request.user, request.GET.get("path", ""), share_id)


def _around(request: SignedInRequest, place: Place) -> dict[str, Any]:
    """What every page of a place needs: where it is, the folders above it, and what may be done."""
    above = []
    for depth in range(max(len(place.parts) - 9, 0), len(place.parts) - 1):
        parts = place.parts[: depth + 1]
        above.append({"name": file_names.shown(parts[-1]), "query": _query(place, file_names.shown_path(parts))})
    mine = place.share is None or place.share.owner_id == request.user.pk
    return {
        "place": place,
        "query": _query(place, place.path),
        "top_query": _query(place, ""),
        "up_query": _query(place, place.above.path) if place.parts else "",
        "above": above,
        "cut": len(place.parts) > 9,
        "read_only": place.share is not None,
        "owner": None if mine or place.share is None else place.share.owner,
        "max_upload": env.MAX_UPLOAD_BYTES,
    }


def _page(request: SignedInRequest, found: listing.Listing, order: str) -> ListPage:
    number = listing.number_of(request.GET.get("page", ""))
    rows, further = listing.page_of(found, number)
    query = request.GET.copy()
    query.pop("page", None)

    def link(to: int) -> str:
        other = query.copy()
        other["page"] = str(to)
        return f"?{other.urlencode()}"

    return ListPage(
        rows=list(rows),
        next_url=link(number + 1) if further else "",
        previous_url=link(number - 1) if number > 1 else "",
        total=len(found.entries),
        ordering=order,
        default=listing.ORDERING.default,
        query=QueryDict(query.urlencode()),
    )


def _query(place: Place, path: str) -> str:
    """What an address needs to name a path of the same home or shared folder."""
    shared_by = {"shared": str(place.share.pk)} if place.share else {}
    return urlencode({**shared_by, **({"path": path} if path else {})})


def _url(place: Place) -> str:
    query = _query(place, place.path)
    return reverse("files:list") + (f"?{query}" if query else "")


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _single(name: str) -> None:
    if len(file_names.parse(name)) != 1 or "/" in name:
        raise Invalid(_("Give a name, without a slash."), field="name")
