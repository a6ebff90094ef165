"""Alarms, for those who manage the machines: what is wrong now, what was, the rules, who is told."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.services import outbox
from aiplatform.lib import search
from aiplatform.lib.pages import errors_shown_on, needs
from workers.core.models import Alarm, AlarmAddress, AlarmRule, AlarmSilence, Severity
from workers.resources.monitoring import alarms
from workers.resources.monitoring.forms import AddressForm, RuleForm, SilenceForm
from workers.resources.monitoring.orders import ADDRESSES, ENDED, RULES_LISTED
from workers.resources.monitoring.rules import RULES, label_of


def _shown(alarm: Alarm) -> Alarm:
    row: Any = alarm
    row.words = alarms.words(alarm)
    row.label = label_of(alarm.rule.key)
    return alarm


@require_GET
@needs(Action.CLUSTER_MANAGE)
def index(request: SignedInRequest) -> HttpResponse:
    """What is wrong now, and what was; `?q=`, `?severity=`, `?rule=`, `?ordering=`. htmx gets the tables alone."""
    wanted = {name: request.GET.get(name, "") for name in ("severity", "rule")}
    wanted["query"] = request.GET.get("q", "")[: search.MAX_QUERY_LENGTH]
    past = Alarm.objects.visible_to(request.user).narrowed(**wanted).exclude(raised_at=None).exclude(ended_at=None)
    page = ENDED.page(request, past.select_related("rule"))
    quiet = AlarmSilence.objects.visible_to(request.user).filter(until__gt=now()).select_related("rule", "by")
    silences: list[Any] = list(quiet)
    for silence in silences:
        silence.label = label_of(silence.rule.key) if silence.rule else ""
    firing = alarms.raised_for(request.user, **wanted)
    for alarm in firing:
        alarm.silenced_until = alarms.silenced_until(alarm, silences)
    context = {
        "firing": firing,
        "page": page,
        "past": [_shown(alarm) for alarm in page.rows],
        "silences": silences,
        "form": SilenceForm(),
        "severities": Severity.choices,
        "rules": sorted(((key, str(rule.label)) for key, rule in RULES.items()), key=lambda pair: pair[1]),
    }
    return render(request, "workers/_alarms.html" if request.htmx else "workers/alarms.html", context)


@require_POST
@needs(Action.CLUSTER_MANAGE)
def silence(request: SignedInRequest, pk: int) -> HttpResponse:
    """Silence this alarm for a while."""
    alarm = get_object_or_404(Alarm.objects.visible_to(request.user).select_related("rule"), pk=pk)
    form = SilenceForm(request.POST)
    if form.is_valid():
        alarms.silence(by=request.user, hours=float(form.cleaned_data["hours"]), rule=alarm.rule, subject=alarm.subject)
        messages.success(request, _("Silenced. The alert is still shown here."))
    return redirect("workers:alarms")


@require_POST
@needs(Action.CLUSTER_MANAGE)
def silence_end(request: SignedInRequest, pk: int) -> HttpResponse:
    """End the silence."""
    alarms.end_silence(get_object_or_404(AlarmSilence.objects.visible_to(request.user), pk=pk), by=request.user)
    return redirect("workers:alarms")


@require_GET
@needs(Action.CLUSTER_MANAGE)
def rules(request: SignedInRequest) -> HttpResponse:
    """Every rule with what is set; `?ordering=`. htmx gets the table alone."""
    page = RULES_LISTED.page(request, AlarmRule.objects.visible_to(request.user).filter(key__in=RULES))
    for row in page:
        row.about = RULES[row.key]
        row.unit = row.about.unit_of(row.threshold)
    template = "workers/_alarm_rule_table.html" if request.htmx else "workers/alarm_rules.html"
    return render(request, template, {"page": page})


@needs(Action.CLUSTER_MANAGE)
def rule(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change one rule."""
    row = get_object_or_404(AlarmRule.objects.visible_to(request.user).filter(key__in=RULES), pk=pk)
    form = RuleForm(request.POST or None, rule=row)
    if request.method == "POST" and form.is_valid():
        values = dict(form.cleaned_data)
        row.refresh_from_db()
        with errors_shown_on(form):
            alarms.set_rule(row, by=request.user, **values)
            messages.success(request, _("Rule saved."))
            return redirect("workers:alarm-rules")
    built_in = RULES[row.key]
    context = {"form": form, "rule": row, "about": built_in, "unit": built_in.unit_of(row.threshold)}
    return render(request, "workers/alarm_rule.html", context, status=422 if form.errors else 200)


@needs(Action.CLUSTER_MANAGE)
def addresses(request: SignedInRequest) -> HttpResponse:
    """Addresses that alarms are sent to, `?ordering=`; the form adds one. htmx gets the table alone."""
    page = ADDRESSES.page(request, AlarmAddress.objects.visible_to(request.user))
    if request.htmx:
        return render(request, "workers/_alarm_address_table.html", {"page": page})
    form = AddressForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            alarms.save_address(None, by=request.user, **form.cleaned_data)
            messages.success(request, _("Address saved."))
            return redirect("workers:alarm-addresses")
    context = {
        "form": form,
        "page": page,
        "mail_is_set_up": outbox.mail_is_set_up(),
    }
    return render(request, "workers/alarm_addresses.html", context, status=422 if form.errors else 200)


@needs(Action.CLUSTER_MANAGE)
def address(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change one address."""
    row = get_object_or_404(AlarmAddress.objects.visible_to(request.user), pk=pk)
    form = AddressForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            alarms.save_address(row, by=request.user, **form.cleaned_data)
            messages.success(request, _("Address saved."))
            return redirect("workers:alarm-addresses")
    context = {"form": form, "address": row}
    return render(request, "workers/alarm_address.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.CLUSTER_MANAGE)
def address_do(request: SignedInRequest, pk: int, verb: str) -> HttpResponse:
    """`remove` an address, or send it a `test`."""
    row = get_object_or_404(AlarmAddress.objects.visible_to(request.user), pk=pk)
    if verb not in {"remove", "test"}:
        raise Http404
    if verb == "remove":
        alarms.remove_address(row, by=request.user)
        messages.info(request, _("Address removed."))
    elif alarms.try_address(row):
        messages.info(request, _("A test message is being sent to %(address)s.") % {"address": row.target})
    else:
        messages.warning(request, _("This platform has no mail server yet (AIP_SMTP_HOST)."))
    return redirect("workers:alarm-addresses")
