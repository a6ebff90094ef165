"""Pages of files: a folder, one file, and shared folders. The same services as `datasets/files/api.py`."""

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
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, needs
from datasets.files import changes, datasets, listing, paths, preview, sharing, usage
from datasets.files.forms import MoveForm, NameForm
from datasets.files.paths import Location


@needs(Action.JOBS_VIEW)
@require_GET
def index(request: SignedInRequest) -> HttpResponse:
    """Show a folder of the reader's home, or with `?shared=` of another's; `?path=`, `?q=`, `?hidden=1`, `?page=`."""
    location, hides = _location(request), request.GET.get("hidden") != "1"
    order, text = listing.ORDERING.chosen(request.GET), request.GET.get("q", "")[:100]
    listed = listing.list_folder(location, order=order, text=text, hides=hides)
    context = {**_around(request, location), "page": _page(request, listed, order), "listed": listed, "hides": hides}
    if request.htmx:
        return render(request, "files/_table.html", context)
    if location.share is None:
        context |= {"usage": usage.for_user(request.user), "quota": env.HOME_QUOTA_BYTES}
    return render(request, "files/list.html", context)


@needs(Action.JOBS_VIEW)
@require_GET
def show(request: SignedInRequest) -> HttpResponse:
    """Show one file: its facts, and a preview."""
    location = _location(request)
    entry = listing.get_entry(location)
    if entry.is_folder:
        return redirect(_url(location))
    shown = preview.build(location) if entry.is_file else preview.Preview()
    context = {**_around(request, location), "entry": entry, "preview": shown}
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
    location = paths.own(request.user, request.GET.get("path", ""))
    form = NameForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            entry = changes.make_folder(request.user, _joined(location.path, form.cleaned_data["name"]))
            return redirect(_url(paths.own(request.user, entry.path)))
    context = {**_around(request, location), "form": form}
    return render(request, "files/folder.html", context, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
def move(request: SignedInRequest) -> HttpResponse:
    """Rename or move the entry at `?path=`."""
    location = paths.own(request.user, request.GET.get("path", ""))
    if not location.parts:
        raise Invalid(_("The home folder itself cannot be moved."))
    entry = listing.get_entry(location)
    form = MoveForm(request.POST or None, initial={"name": entry.name, "folder": location.above.path})
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            _single(form.cleaned_data["name"])
            to = _joined(form.cleaned_data["folder"], form.cleaned_data["name"])
            moved = changes.move(request.user, location.path, to)
            messages.success(request, _("Moved to %(path)s.") % {"path": moved.path})
            return redirect(_url(paths.own(request.user, moved.path).above))
    context = {**_around(request, location), "entry": entry, "form": form}
    return render(request, "files/move.html", context, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
@require_POST
def delete(request: SignedInRequest) -> HttpResponse:
    """Delete what is at `path`."""
    location = paths.own(request.user, request.POST.get("path", ""))
    with errors_as_messages(request):
        changes.delete(request.user, location.path)
        messages.success(request, _("%(name)s deleted.") % {"name": location.name})
    return redirect(_url(location.above))


@needs(Action.JOBS_SUBMIT)
@require_POST
def store_files(request: SignedInRequest) -> HttpResponse:
    """Store files sent by the form itself; scripts and the page's own script send them resumably instead."""
    location = paths.own(request.user, request.POST.get("path", ""))
    count = 0
    for file in request.FILES.getlist("files"):
        with errors_as_messages(request):
            path = _joined(location.path, file_names.shown((file.name or "").encode()))
            changes.store_sent_file(request.user, file, path, replace=request.POST.get("replace") == "1")
            count += 1
    if count:
        text = ngettext("%(count)s file uploaded.", "%(count)s files uploaded.", count)
        messages.success(request, text % {"count": count})
    return redirect(_url(location))


@needs(Action.DATASETS_CREATE)
@require_POST
def dataset(request: SignedInRequest) -> HttpResponse:
    """Import what is at `path` as a new dataset; shows its progress."""
    share = ids.number(request.POST.get("shared", ""))
    location = paths.readable_by(request.user, request.POST.get("path", ""), share)
    with errors_as_messages(request):
        row = datasets.make(location, by=request.user)
        return redirect("datasets:import", row.dataset_id, row.pk)
    return redirect(_url(location.above if location.parts else location))


@needs(Action.JOBS_SUBMIT)
@require_POST
def share(request: SignedInRequest) -> HttpResponse:
    """Redirect to the page that shares the folder `path`."""
    location = paths.own(request.user, request.POST.get("path", ""))
    with errors_as_messages(request):
        return redirect("accounts:share", "folder", sharing.prepare(request.user, location.path).pk)
    return redirect(_url(location.above))


def _location(request: SignedInRequest) -> Location:
    number = request.GET.get("shared", "")
    if not number:
        return paths.own(request.user, request.GET.get("path", ""))
    share_id = ids.number(number)
    if share_id is None:
        raise NotFound(_("This shared folder does not exist any more."))
    return paths.readable_by(request.user, request.GET.get("path", ""), share_id)


def _around(request: SignedInRequest, location: Location) -> dict[str, Any]:
    """Return the context that every page of a location needs: its folders and the allowed actions."""
    above = []
    for depth in range(max(len(location.parts) - 9, 0), len(location.parts) - 1):
        parts = location.parts[: depth + 1]
        above.append({"name": file_names.shown(parts[-1]), "query": _query(location, file_names.shown_path(parts))})
    mine = location.share is None or location.share.owner_id == request.user.pk
    return {
        "place": location,
        "query": _query(location, location.path),
        "top_query": _query(location, ""),
        "up_query": _query(location, location.above.path) if location.parts else "",
        "above": above,
        "cut": len(location.parts) > 9,
        "read_only": location.share is not None,
        "owner": None if mine or location.share is None else location.share.owner,
        "max_upload": env.MAX_UPLOAD_BYTES,
    }


def _page(request: SignedInRequest, listed: listing.Listing, order: str) -> ListPage:
    number = listing.parse_page(request.GET.get("page", ""))
    rows, has_next = listing.page_of(listed, number)
    query = request.GET.copy()
    query.pop("page", None)

    def link(to: int) -> str:
        other = query.copy()
        other["page"] = str(to)
        return f"?{other.urlencode()}"

    return ListPage(
        rows=list(rows),
        next_url=link(number + 1) if has_next else "",
        previous_url=link(number - 1) if number > 1 else "",
        total=len(listed.entries),
        ordering=order,
        default=listing.ORDERING.default,
        query=QueryDict(query.urlencode()),
    )


def _query(location: Location, path: str) -> str:
    """Return the query of an address for a path of the same home or shared folder."""
    shared_by = {"shared": str(location.share.pk)} if location.share else {}
    return urlencode({**shared_by, **({"path": path} if path else {})})


def _url(location: Location) -> str:
    query = _query(location, location.path)
    return reverse("files:list") + (f"?{query}" if query else "")


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _single(name: str) -> None:
    if len(file_names.parse(name)) != 1 or "/" in name:
        raise Invalid(_("Enter a name without a slash."), field="name")
