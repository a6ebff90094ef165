"""Promotion by rule: an evaluation that shows enough gives its version an alias or a stage.

Rules are made and removed, never changed. Each judges an attempt of an evaluation once: the verdict and what it brings
are one transaction, and a second call finds the verdict there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid, NotFound, Refusals
from aiplatform.lib.numbers import finite
from aiplatform.lib.wording import Message, message
from datasets.models import DatasetVersion
from inference.evaluation import results
from inference.evaluation.models import Evaluation, PromotionRule, PromotionVerdict
from inference.kit.contracts.served_task import Pages
from inference.kit.task_kinds import TASKS
from inference.registry import aliases, history, stages
from inference.registry.metric_labels import label_of
from inference.registry.models import Model, ModelAlias, ModelVersion, Stage

log = logging.getLogger(__name__)
MAX_RULES = 20  # rules of a model


class NoRule(NotFound, code="no_rule"): ...


def metrics_of(model: Model) -> list[str]:
    """Names of the figures that a rule of this model can ask for: those of its tasks, and of its evaluations."""
    tasks = set(model.versions.values_list("task", flat=True))
    names = [name for task in sorted(tasks & set(TASKS)) for name in _keys(TASKS[task].pages)]
    judged = Evaluation.objects.filter(model_version__model=model, published_attempt__gt=0).order_by("-pk")
    for metrics in judged.values_list("metrics", flat=True)[:20]:
        names += list(metrics)
    return list(dict.fromkeys(names))


def _keys(pages: Pages) -> list[str]:
    """The keys of the metrics of a task, the key metric first."""
    return [*pages.headline, *(figure.key for figure in pages.figures)]


def check(
    *,
    model: Model,
    metric: str = "",
    bound: float = 0.0,
    version: DatasetVersion | None = None,
    split: str = "",
    better_than: str = "",
    gives_alias: str = "",
    gives_stage: str = "",
) -> None:
    """Check a rule; all errors are raised at once.

    Raises:
        Invalid.
    """
    refusals = Refusals()
    with refusals:
        metrics = metrics_of(model)
        if metric not in metrics:
            message_text = _("Unknown metric “%(name)s” for this model. Available metrics: %(known)s.")
            raise Invalid(message_text % {"name": metric[:50], "known": ", ".join(metrics) or "–"}, field="metric")
    with refusals:
        if finite(bound) is None:
            raise Invalid(_("Must be a number."), field="bound")
    with refusals:
        if version is not None and split not in ("", "unseen") and not version.splits.get(split):
            message_text = _("%(version)s has no split “%(split)s”.")
            raise Invalid(message_text % {"version": version, "split": split[:50]}, field="split")
    with refusals:
        if better_than:
            aliases.check_name(better_than, field="better_than")
    with refusals:
        if gives_alias:
            aliases.check_name(gives_alias, field="gives_alias")
        if gives_stage not in ("", Stage.APPROVED):
            raise Invalid(_("A rule can only approve."), field="gives_stage")
        if not gives_alias and not gives_stage:
            raise Invalid(
                _("Choose what the version gets: an alias, the stage approved, or both."), field="gives_alias"
            )
    with refusals:
        if model.rules.count() >= MAX_RULES:
            raise Invalid(_("A model can have at most %(most)s rules. Remove one first.") % {"most": MAX_RULES})
    refusals.end()


@transaction.atomic
def add(*, model: Model, by: User, version: DatasetVersion, at_least: bool = True, **fields: Any) -> PromotionRule:
    """Make a rule; it judges evaluations that end from now on.

    Args:
        version: data that the evaluation measured on.
        at_least: whether the figure must reach the bound; False: stay at or below it, as losses do.
        fields: metric, bound, split, better_than, gives_alias, gives_stage; see `PromotionRule`.

    Raises:
        Invalid: see `check`.
    """
    Model.objects.select_for_update().get(pk=model.pk)
    check(model=model, version=version, **fields)
    label = str(version)[:80]
    rule = PromotionRule.objects.create(
        model=model, version=version, version_label=label, at_least=at_least, created_by=by, **fields
    )
    history.add(
        model, by, "model_rule_made", rule=str(rule), datasets=label, alias=rule.gives_alias, stage=rule.gives_stage
    )
    return rule


@transaction.atomic
def remove(*, model: Model, number: int, by: User) -> None:
    """Remove a rule with its verdicts; what it gave stays.

    Raises:
        NoRule.
    """
    rule = PromotionRule.objects.filter(model=model, pk=number).first()
    if rule is None:
        raise NoRule(_("%(model)s has no rule %(number)s.") % {"model": model, "number": number})
    history.add(model, by, "model_rule_removed", rule=str(rule), datasets=rule.version_label)
    rule.delete()


def judge(evaluation: Evaluation) -> list[PromotionVerdict]:
    """Let the rules for what was measured judge an evaluation that has results; may be called again."""
    version = evaluation.model_version
    if version is None or evaluation.version_id is None or not evaluation.published_attempt:
        return []
    rules = PromotionRule.objects.filter(
        model=version.model_id, version=evaluation.version_id, split=evaluation.split
    ).order_by("pk")
    return [verdict for rule in rules if (verdict := _apply_rule(rule, evaluation, version)) is not None]


@transaction.atomic
def _apply_rule(rule: PromotionRule, evaluation: Evaluation, version: ModelVersion) -> PromotionVerdict | None:
    """Store the verdict of a rule and apply it; None if it was stored before."""
    Model.objects.select_for_update().get(pk=rule.model_id)  # one after the other: an alias may move meanwhile
    key: dict[str, Any] = {"rule": rule, "evaluation": evaluation, "attempt": evaluation.published_attempt}
    if PromotionVerdict.objects.filter(**key).exists():
        return None
    against = _against(rule, evaluation, version)
    promoted = not against
    if promoted:
        try:
            with transaction.atomic():
                _promote(rule, evaluation, version)
        except DomainError as refusal:
            promoted, against = False, message("promotion.refused", code=refusal.code)
    reason = against or message("promotion.given", **_facts(rule, evaluation))
    log.info("rule=%s evaluation=%s promoted=%s code=%s", rule.pk, evaluation.pk, promoted, reason.code)
    return PromotionVerdict.objects.create(promoted=promoted, message=reason, **key)


def _facts(rule: PromotionRule, evaluation: Evaluation) -> dict[str, Any]:
    value = evaluation.metrics.get(rule.metric)
    shown = f"{value:.4f}" if isinstance(value, int | float) else "–"
    return {"metric": label_of(rule.metric), "value": shown, "bound": f"{rule.bound:g}"}


def _promote(rule: PromotionRule, evaluation: Evaluation, version: ModelVersion) -> None:
    """Move alias and stage on behalf of the author of the rule.

    Raises:
        DomainError: the version is archived, or another user must approve it.
    """
    by = rule.created_by
    assert by is not None  # `_against` checked it
    facts = {"rule": str(rule), "evaluation": evaluation.job.name, "value": _facts(rule, evaluation)["value"]}
    if rule.gives_stage and version.stage != rule.gives_stage:
        reason = f"{rule} · {rule.version_label}"
        stages.move(version=version, to=rule.gives_stage, by=by, reason=reason, **facts)
    if rule.gives_alias:
        aliases.assign(version=version, name=rule.gives_alias, by=by, **facts)


def _against(rule: PromotionRule, evaluation: Evaluation, version: ModelVersion) -> Message:
    """Why a rule gives nothing; empty where it gives."""
    for person, code in ((rule.created_by, "author"), (evaluation.job.owner, "owner")):
        if person is None or not person.is_active or not _may_edit(person, rule.model_id):
            return message(f"promotion.{code}")
    if evaluation.is_scripted and rule.gives_stage and evaluation.job.owner_id != rule.created_by_id:
        return message("promotion.own_script")  # its author would approve on behalf of the author of the rule
    content = results.load(evaluation)
    if content is None or content.get("complete") is False:
        return message("promotion.incomplete")
    value = finite(evaluation.metrics.get(rule.metric))
    if value is None:
        return message("promotion.no_figure", metric=label_of(rule.metric))
    if value < rule.bound if rule.at_least else value > rule.bound:
        return message("promotion.missed" if rule.at_least else "promotion.exceeded", **_facts(rule, evaluation))
    return _not_better(rule, evaluation, version, value) if rule.better_than else Message()


def _may_edit(person: User, model: int) -> bool:
    is_editable: bool = Model.objects.editable_by(person).filter(pk=model).exists()
    return is_editable


def _not_better(rule: PromotionRule, evaluation: Evaluation, version: ModelVersion, value: float) -> Message:
    """Return why a version is not better than the one an alias points at; empty if there is no such alias."""
    alias = ModelAlias.objects.filter(model=rule.model_id, name=rule.better_than).select_related("version").first()
    if alias is None:
        return Message()
    facts = {"alias": alias.name, "than": f"v{alias.version.number}"}
    if alias.version_id == version.pk:
        return message("promotion.is_it", **facts)
    same = Evaluation.objects.filter(
        model_version=alias.version_id, version=rule.version_id, split=rule.split, published_attempt__gt=0
    )
    same = same.filter(is_scripted=evaluation.is_scripted)
    if evaluation.is_scripted:  # a script says what its author likes: no measure is whose who may not edit the model
        people = User.objects.filter(pk__in=same.values("job__owner"))
        same = same.filter(job__owner__in=[person.pk for person in people if _may_edit(person, rule.model_id)])
    before = same.order_by("-pk").first()
    other = finite(before.metrics.get(rule.metric)) if before else None
    if other is None:
        return message("promotion.not_measured", **facts)
    if value > other if rule.at_least else value < other:
        return Message()
    return message("promotion.not_better", **_facts(rule, evaluation), **facts, other=f"{other:.4f}")


def verdicts_on(evaluation: Evaluation) -> list[PromotionVerdict]:
    """Return the verdicts on an evaluation, newest first."""
    return list(evaluation.verdicts.select_related("rule"))


def latest_verdicts(rules: Iterable[PromotionRule]) -> dict[int, PromotionVerdict]:
    """Return the newest verdict of each rule by the id of the rule."""
    rows = PromotionVerdict.objects.filter(rule__in=rules).select_related("evaluation__model_version")
    return {row.rule_id: row for row in rows.order_by("pk")}


def newest_verdicts(model: Model) -> list[PromotionVerdict]:
    """Return the newest verdicts of the rules of a model, newest first."""
    rows = PromotionVerdict.objects.filter(rule__model=model)
    return list(rows.select_related("rule", "evaluation__model_version__model")[:50])
