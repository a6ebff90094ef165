"""Take over an account, and give it back."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from accounts.services import taking_over
from aiplatform.lib.pages import needs


@require_POST
@needs(Action.PEOPLE_MANAGE)
def take_over(request: SignedInRequest, pk: int) -> HttpResponse:
    """Act as this person until the account is given back."""
    taking_over.start(request, get_object_or_404(User.objects.visible_to(request.user), pk=pk))
    return redirect("overview")


@require_POST
def give_back(request: HttpRequest) -> HttpResponse:
    """Return to the own account; does nothing for everybody else."""
    person = request.user.pk if hasattr(request, "behind") else None
    taking_over.end(request)
    return redirect("accounts:person", person) if person else redirect("overview")
