"""What operators do with machines: make tokens, drain, remove."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform import env
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import errors_as_messages, is_name_confirmed, needs
from workers.core.models import JoinToken, Node
from workers.resources.nodes import eviction_policy, lifecycle, mps_policy

VERBS = {"drain": lifecycle.drain, "undrain": lifecycle.undrain, "remove": lifecycle.remove} | {
    "evict": eviction_policy.allow,
    "keep": eviction_policy.forbid,
    "mps-on": mps_policy.allow,
    "mps-off": mps_policy.forbid,
}


@require_http_methods(["GET", "POST"])
@needs(Action.CLUSTER_MANAGE)
def join(request: SignedInRequest) -> HttpResponse:
    """How a further machine joins; POST makes a one-time token and shows it this once."""
    context = {"join_command": "", "refusal": ""}
    status = 200
    try:
        lifecycle.addresses()
        if request.method == "POST":
            _row, secret = lifecycle.make_token(by=request.user)
            here = request.build_absolute_uri("/") if not env.BASE_URL else env.BASE_URL
            context["join_command"] = lifecycle.join_command(secret, here)
    except DomainError as refusal:
        context["refusal"] = refusal.message
        status = refusal.status if request.method == "POST" else 200
    tokens = JoinToken.objects.visible_to(request.user).select_related("made_by", "node")[:20]
    answer = render(request, "workers/node_join.html", {**context, "tokens": tokens}, status=status)
    answer["Cache-Control"] = "no-store"
    return answer


@require_POST
@needs(Action.CLUSTER_MANAGE)
def revoke(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make a token worthless."""
    lifecycle.revoke(get_object_or_404(JoinToken.objects.visible_to(request.user), pk=pk), by=request.user)
    messages.info(request, _("The token was deleted."))
    return redirect("workers:node-join")


@require_POST
@needs(Action.CLUSTER_MANAGE)
def act(request: SignedInRequest, pk: int, verb: str) -> HttpResponse:
    """Drain, undrain or remove a machine, or allow or forbid evictions or MPS on it."""
    node = get_object_or_404(Node.objects.visible_to(request.user), pk=pk)
    if verb not in VERBS:
        return redirect("workers:node", pk)
    if verb == "remove" and not is_name_confirmed(request, node.name):
        return redirect("workers:node", pk)
    with errors_as_messages(request):
        VERBS[verb](node, by=request.user)
    return redirect("workers:node", pk)
