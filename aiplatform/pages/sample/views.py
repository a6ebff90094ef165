"""Buttons of the sample project. Its progress is a section of the home page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import needs
from aiplatform.pages.sample import creation, removal


@require_POST
@needs(Action.DATASETS_CREATE)
def create(request: SignedInRequest) -> HttpResponse:
    """Load the sample project and show its progress on the home page."""
    try:
        creation.start(request.user)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("overview")


@require_POST
@needs(Action.DATASETS_CREATE)
def remove(request: SignedInRequest) -> HttpResponse:
    """Remove the sample project and show the progress on the home page."""
    try:
        removal.start(request.user)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("overview")
