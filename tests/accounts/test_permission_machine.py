"""People, groups, roles, shares and memberships come and go at random; the platform and a model of it always agree.

`AIP_MACHINE_SECONDS=600 pytest -s -m proof tests/accounts/test_permission_machine.py` goes on for longer.
"""

from __future__ import annotations

import os
import time
from itertools import product
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, seed
from hypothesis import settings as limits
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from rest_framework.test import APIClient

from accounts.access import sharing
from accounts.access.permissions import ANNOTATOR, PRESET_ROLES, SYSTEM_ADMIN, USER, Action
from accounts.models import Role, User, UserGroup
from accounts.services import people, roles, shares
from aiplatform.lib.errors import Invalid, NotAllowed, NotFound
from annotation.models import AnnotationProject, AnnotationSet, ImageTask
from annotation.services import projects, review
from annotation.services import sets as annotation_sets
from datasets.models import Dataset
from datasets.services import datasets
from inference.registry import registration as registry
from inference.registry.models import Model
from tests.accounts.permission_model import HEIGHT, Thing, Truth

pytestmark = [pytest.mark.django_db, pytest.mark.proof]

SECONDS = float(os.environ.get("AIP_MACHINE_SECONDS", "7"))
NAMES = ("ann", "ben", "cem", "dao")
GROUPS = ("lab", "shop")
LOOKER = "Looker"
ROLES = {
    **{name: frozenset(PRESET_ROLES[name]) for name in (SYSTEM_ADMIN, USER, ANNOTATOR)},
    LOOKER: frozenset({Action.OVERVIEW_VIEW, Action.SELF_MANAGE, Action.ANNOTATION_VIEW, Action.DATASETS_VIEW}),
}
KINDS: dict[str, Any] = {"dataset": Dataset, "model": Model, "project": AnnotationProject}
API = {"dataset": "datasets", "model": "models", "project": "annotation/projects"}
SEES = {"dataset": Action.DATASETS_VIEW, "model": Action.MODELS_VIEW, "project": Action.ANNOTATION_VIEW}
MEMBER_NEEDS = {"viewer": Action.ANNOTATION_VIEW, "manager": Action.ANNOTATION_MANAGE}

person, group, role_name = st.sampled_from(NAMES), st.sampled_from(GROUPS), st.sampled_from(sorted(ROLES))
pick = st.integers(0, 5)
OWNER = "the owner"
by_whom = st.one_of(st.just(OWNER), st.just(OWNER), person)
whom = st.one_of(person.map(lambda name: ("person", name)), group.map(lambda name: ("group", name)))


class Machine(RuleBasedStateMachine):
    """Every rule does one thing by the product's own service and the same to the model."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.undone = transaction.atomic()
        self.undone.__enter__()

    def teardown(self) -> None:
        try:
            for name, kind in product(NAMES, KINDS) if hasattr(self, "truth") else ():
                self.compare(name, kind)
        finally:
            self.undo()

    def undo(self) -> None:
        transaction.set_rollback(True)
        self.undone.__exit__(None, None, None)

    @initialize(
        shared=st.lists(st.tuples(pick, whom, st.integers(0, 4)), min_size=4, max_size=9),
        joined=st.lists(st.tuples(group, person), min_size=1, max_size=4),
    )
    def begin(self, shared: list[tuple[int, tuple[str, str], int]], joined: list[tuple[str, str]]) -> None:
        self.truth = Truth(ROLES, {name: {USER} for name in NAMES})
        self.truth.own["dao"] = {SYSTEM_ADMIN}
        for name, actions in ROLES.items():
            Role.objects.update_or_create(name=name, defaults={"actions": sorted(actions)})
        for name in NAMES:
            User.objects.create(username=name).roles.set(Role.objects.filter(name__in=self.truth.own[name]))
        for name in GROUPS:
            roles.create_group(name=name, description="d", roles=[self.role(LOOKER)], by=None)
            self.truth.groups[name], self.truth.given[name] = set(), LOOKER
        for owner in NAMES[:2]:
            for kind in KINDS:
                self.make(kind, owner)
        for name, who in joined:
            self.team(name).users.add(self.user(who))
            self.truth.groups[name].add(who)
        for number, to, place in shared:
            self.put_by_owner(number, to, place)

    def put_by_owner(self, number: int, to: tuple[str, str], place: int) -> None:
        """A share that no rule stands in the way of, so that every walk starts among some."""
        kind, pk = self.thing(number)
        thing, known = self.truth.things[kind, pk], sharing.KINDS.get(kind)
        assert known is not None
        if to != ("person", thing.owner):
            thing.shares[to] = level = known.levels[place % len(known.levels)]
            named = self.user(to[1]) if to[0] == "person" else self.team(to[1])
            sharing.set_level(KINDS[kind].objects.get(pk=pk), named, level)

    # --- helpers

    def user(self, name: str) -> User:
        return User.objects.get(username=name)  # anew: what a person may do is remembered per instance

    def role(self, name: str) -> Role:
        return Role.objects.get(name=name)

    def team(self, name: str) -> UserGroup:
        return UserGroup.objects.get(name=name)

    def make(self, kind: str, owner: str) -> None:
        row = {
            "dataset": lambda: Dataset.objects.create(owner=self.user(owner), name=f"d{len(self.truth.things)}"),
            "model": lambda: Model.objects.create(owner=self.user(owner), name=f"m{len(self.truth.things)}"),
            "project": lambda: AnnotationProject.objects.create(
                owner=self.user(owner), name=f"p{len(self.truth.things)}", intro="Ten letters at least"
            ),
        }[kind]()
        self.truth.things[kind, row.pk] = Thing(kind, owner)
        if kind == "project":
            given = {"source_id": self.source, "name": "s", "intro": "i", "filled": True}
            ImageTask.objects.create(
                set=AnnotationSet.objects.create(project=row, **given), asset_id=self.asset, number=1
            )

    def thing(self, number: int, kind: str = "") -> tuple[str, int]:
        keys = [key for key in self.truth.things if not kind or key[0] == kind]
        return keys[number % len(keys)]

    def does(self, allowed: bool, act: Any) -> bool:
        """Do it; it must be refused exactly when the model says so."""
        try:
            with transaction.atomic():
                act()
        except (NotAllowed, NotFound, Invalid) as refusal:
            done, said = False, f"refused: {refusal}"
        else:
            done, said = True, "was let through"
        assert done == allowed, said
        return done

    # --- people, roles, groups

    @rule(by=st.one_of(st.none(), person), to=person, name=role_name)
    def give_a_role(self, by: str | None, to: str, name: str) -> None:
        truth = self.truth
        touches = name not in truth.own[to] and by != to
        allowed = by is None or (truth.covers(by, ROLES[name]) and (not touches or truth.covers(by, truth.granted(to))))
        caller = self.user(by) if by else None
        if self.does(allowed, lambda: roles.assign(role=self.role(name), people=[self.user(to)], by=caller)):
            truth.own[to].add(name)

    @rule(of=person, name=role_name)
    def take_a_role(self, of: str, name: str) -> None:
        roles.revoke(role=self.role(name), person=self.user(of), by=None)
        self.truth.own[of].discard(name)

    @rule(of=person)
    def switch_an_account(self, of: str) -> None:
        active = of in self.truth.off
        people.set_active(user=self.user(of), active=active, by=User.objects.get(username="root"))
        (self.truth.off.discard if active else self.truth.off.add)(of)

    @rule(name=group, who=person, by=st.one_of(st.none(), person))
    def join_or_leave(self, name: str, who: str, by: str | None) -> None:
        truth, here = self.truth, who in self.truth.groups[name]
        beyond = by is not None and not truth.covers(by, ROLES[truth.given[name]])
        touched = by in (None, who) or truth.covers(str(by), truth.granted(who))
        caller = self.user(by) if by else None
        one, row = self.user(who), self.team(name)
        act = (
            (lambda: roles.remove_member(group=row, person=one, by=caller))
            if here
            else (lambda: roles.add_members(group=row, people=[one], by=caller))
        )
        if self.does(not beyond and touched, act):
            (truth.groups[name].discard if here else truth.groups[name].add)(who)

    @rule(name=group, role=role_name)
    def a_group_gets_another_role(self, name: str, role: str) -> None:
        row = self.team(name)
        roles.update_group(
            group=row, name=name, description="d", roles=[self.role(role)], members=list(row.users.all()), by=None
        )
        self.truth.given[name] = role

    @rule(name=group)
    def the_group_goes_and_a_new_one_has_its_name(self, name: str) -> None:
        roles.delete_group(group=self.team(name), by=None)
        roles.create_group(name=name, description="d", roles=[self.role(LOOKER)], by=None)
        self.truth.groups[name], self.truth.given[name] = set(), LOOKER
        for thing in self.truth.things.values():
            thing.shares.pop(("group", name), None)

    # --- things

    @rule(number=pick, visibility=st.sampled_from(["private", "group", "public"]))
    def open_or_close(self, number: int, visibility: str) -> None:
        kind, pk = self.thing(number)
        if kind == "dataset":
            datasets.edit(Dataset.objects.get(pk=pk), visibility=visibility)
        elif kind == "model":
            registry.edit(model=Model.objects.get(pk=pk), description="", visibility=visibility)
        else:
            visibility = "public" if visibility == "public" else "private"
            row = AnnotationSet.objects.get(project=pk)
            annotation_sets.edit(row, name=row.name, intro=row.intro, visibility=visibility)
        self.truth.things[kind, pk].visibility = visibility

    @rule(number=pick, by=by_whom, to=whom, place=st.integers(0, 4))
    def share(self, number: int, by: str, to: tuple[str, str], place: int) -> None:
        kind, pk = self.thing(number)
        truth, thing, known = self.truth, self.truth.things[kind, pk], sharing.KINDS.get(kind)
        assert known is not None
        by = thing.owner if by == OWNER else by
        level = (*known.levels, *sharing.LADDER)[place]
        named = (
            to[1] not in truth.off and to[1] != thing.owner
            if to[0] == "person"
            else to[1] in truth.groups_of(by) or Action.PEOPLE_MANAGE in truth.actions(by)
        )
        allowed = self.may_share(by, kind, thing) and level in known.levels and named
        asked: dict[str, Any] = {"person": to[1]} if to[0] == "person" else {"group": self.team(to[1]).pk}
        if self.does(allowed, lambda: shares.share(kind=kind, pk=pk, level=level, by=self.user(by), **asked)):
            thing.shares[to] = level

    def may_share(self, by: str, kind: str, thing: Thing) -> bool:
        known = sharing.KINDS.get(kind)
        assert known is not None
        return known.needs in self.truth.actions(by) and self.truth.height(by, thing) == 4

    @rule(number=pick, by=by_whom, to=whom)
    def take_back(self, number: int, by: str, to: tuple[str, str]) -> None:
        kind, pk = self.thing(number)
        thing = self.truth.things[kind, pk]
        by = thing.owner if by == OWNER else by
        asked: dict[str, Any] = {"person": to[1]} if to[0] == "person" else {"group": self.team(to[1]).pk}
        allowed = self.may_share(by, kind, thing)
        if self.does(allowed, lambda: shares.unshare(kind=kind, pk=pk, by=self.user(by), **asked)):
            thing.shares.pop(to, None)

    @rule(number=pick, who=person, role=st.sampled_from(["viewer", "annotator", "reviewer", "manager"]))
    def give_a_place_in_a_project(self, number: int, who: str, role: str) -> None:
        key = self.thing(number, "project")
        thing = self.truth.things[key]
        needs = MEMBER_NEEDS.get(role, Action.ANNOTATION_ANNOTATE)
        allowed = who not in self.truth.off and who != thing.owner and needs in self.truth.actions(who)
        project = AnnotationProject.objects.get(pk=key[1])
        if self.does(allowed, lambda: projects.add_member(project, username=who, role=role, by=project.owner)):
            thing.members[who] = role

    @rule(number=pick, who=person)
    def take_the_place(self, number: int, who: str) -> None:
        key = self.thing(number, "project")
        projects.remove_member(AnnotationProject.objects.get(pk=key[1]), user_id=self.user(who).pk)
        self.truth.things[key].members.pop(who, None)

    @precondition(lambda self: len(self.truth.things) > 4)
    @rule(number=pick)
    def a_thing_goes_and_a_new_one_comes(self, number: int) -> None:
        kind, pk = self.thing(number)
        KINDS[kind].objects.get(pk=pk).delete()
        self.make(kind, self.truth.things.pop((kind, pk)).owner)

    # --- they agree

    @rule(number=pick, who=person)
    def the_api_answers_as_the_model_says(self, number: int, who: str) -> None:
        kind, pk = self.thing(number)
        if who in self.truth.off:
            return
        client = APIClient()
        client.force_authenticate(self.user(who))
        right = SEES[kind] in self.truth.actions(who)
        there = self.truth.height(who, self.truth.things[kind, pk]) > 0

        assert client.get(f"/api/v1/{API[kind]}/{pk}/").status_code == (403 if not right else 200 if there else 404)

    @rule(number=pick, who=person)
    def drawing_and_judging_are_refused_as_the_model_says(self, number: int, who: str) -> None:
        kind, pk = self.thing(number, "project")
        task, user = ImageTask.objects.get(set__project=pk), self.user(who)
        height = self.truth.height(who, self.truth.things[kind, pk])

        self.does(height >= HEIGHT["annotate"], lambda: review.require_drawing(user, task))
        self.does(height >= HEIGHT["review"], lambda: review.require_judging(user, task))

    @invariant()
    def they_reach_what_the_model_says(self) -> None:
        """After every step one person and one kind, in turn: the comparison costs more than the step."""
        if hasattr(self, "truth"):
            Machine.steps += 1
            self.compare(NAMES[Machine.steps % 4], list(KINDS)[Machine.steps % 3])

    def compare(self, name: str, kind: str) -> None:
        user = self.user(name)
        assert user.actions() == self.truth.actions(name), name
        rows = KINDS[kind].objects.exclude(pk=self.aside if kind == "dataset" else 0)
        found = {"view": (rows.visible_to(user), "pk"), "manage": (rows.editable_by(user), "pk")}
        if kind == "project":
            images = ImageTask.objects
            found["annotate"] = (images.annotatable_by(user), "set__project")
            found["review"] = (images.reviewable_by(user), "set__project")
        else:
            found["use"] = (rows.usable_by(user), "pk")
        for level, (kept, way) in found.items():
            reached = self.truth.seen(name, kind, HEIGHT[level])
            assert set(kept.values_list(way, flat=True)) == reached, (name, kind, level)


def test_permissions_of_the_platform_and_of_a_model_always_agree(olga, alice):
    from tests.factories import datasets as data

    User.objects.filter(pk=olga.pk).update(username="root", is_superuser=True)
    version = data.version(data.dataset(alice, "pictures"), images=1, task="none")
    Machine.aside, Machine.source, Machine.asset = version.dataset_id, version.pk, version.assets.get().pk  # type: ignore[attr-defined]  # set once for all runs of the machine
    few = limits(
        max_examples=10, stateful_step_count=25, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    Machine.steps, until, rounds = 0, time.monotonic() + SECONDS, 0

    while rounds == 0 or time.monotonic() < until:
        rounds += 1
        run_state_machine_as_test(seed(rounds)(Machine), settings=few)

    print(f"{Machine.steps} steps agreed")
    assert Machine.steps > 50
