"""The home page: sections of all apps in three columns, and the switch of the first-run guide."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models.people import Guide
from aiplatform.lib.pages import needs
from aiplatform.pages.home import approvals, guide, registrations
from aiplatform.pages.home.sections import SECTIONS, Section, list_sections

APPROVALS = Section(
    "approvals", "home/_approvals.html", approvals.pending_for, needs=Action.OVERVIEW_VIEW, order=10, live=True
)


@needs(Action.OVERVIEW_VIEW)
def home(request: SignedInRequest) -> HttpResponse:
    """The home page; htmx requests only the sections that change."""
    sections = list_sections(request.user, live_only=bool(request.htmx))
    if request.htmx:
        return render(request, "_overview_now.html", {"sections": sections, "refreshed": True})
    columns = {name: [section for section in sections if section.column == name] for name in ("top", "main", "side")}
    context = {
        "columns": columns,
        "has_guide": any(section.key == guide.GUIDE.key and section.data for section in sections),
        "guide_is_hidden": request.user.guide == Guide.HIDDEN,
        "is_empty": not any(section.data for section in sections),
    }
    return render(request, "overview.html", context)


@require_POST
@needs(Action.SELF_MANAGE)
def switch_guide(request: SignedInRequest) -> HttpResponse:
    """Hide the first-run guide, or show it again, and return to the home page."""
    shown = request.POST.get("shown") == "1"
    guide.set_guide(request.user, Guide.SHOWN if shown else Guide.HIDDEN)
    return redirect("overview")


def register() -> None:
    """Called once, when all apps are loaded."""
    SECTIONS.register(guide.GUIDE, APPROVALS)
    approvals.SOURCES.register(registrations.REGISTRATIONS)
