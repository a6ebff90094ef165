"""What should be so: who may do what with which thing, said a second time, with sets and no database."""

from __future__ import annotations

from dataclasses import dataclass, field

from accounts.access.permissions import EVERYONE, Action

#: How far a level reaches, by kind of thing. Datasets and models know no drawing and no judging.
HEIGHT = {"": 0, "view": 1, "annotate": 2, "review": 3, "use": 3, "manage": 4}
AS_ROLE = {"viewer": "view", "annotator": "annotate", "reviewer": "review", "manager": "manage"}


@dataclass
class Thing:
    """A dataset, model or annotation project."""

    kind: str
    owner: str
    visibility: str = "private"
    shares: dict[tuple[str, str], str] = field(default_factory=dict)  # ("person" or "group", name) → level
    members: dict[str, str] = field(default_factory=dict)  # of a project: person → role


@dataclass
class Truth:
    """People and groups by name, roles as sets of actions, things by kind and number."""

    roles: dict[str, frozenset[Action]]
    own: dict[str, set[str]]  # person → names of roles
    groups: dict[str, set[str]] = field(default_factory=dict)  # group → people
    given: dict[str, str] = field(default_factory=dict)  # group → its role
    off: set[str] = field(default_factory=set)
    things: dict[tuple[str, int], Thing] = field(default_factory=dict)

    def granted(self, person: str) -> frozenset[Action]:
        """What the account may do once it is active."""
        names = self.own[person] | {self.given[group] for group in self.groups_of(person)}
        return frozenset().union(*(self.roles[name] for name in names))

    def actions(self, person: str) -> frozenset[Action]:
        return frozenset() if person in self.off else self.granted(person)

    def groups_of(self, person: str) -> set[str]:
        return {group for group, people in self.groups.items() if person in people}

    def covers(self, by: str, actions: frozenset[Action]) -> bool:
        return actions <= self.actions(by) | EVERYONE

    def height(self, person: str, thing: Thing) -> int:
        """How far this person reaches: 0 nothing, 1 looks, 2 draws, 3 uses or judges, 4 manages."""
        if person == thing.owner or Action.TASKS_MANAGE in self.actions(person):
            return 4
        reached = [thing.shares.get(("person", person), "")]
        reached += [thing.shares.get(("group", group), "") for group in self.groups_of(person)]
        reached += [AS_ROLE.get(thing.members.get(person, ""), "")]
        if thing.visibility == "public":
            reached.append("annotate" if thing.kind == "project" else "use")
        if thing.visibility == "group" and self.groups_of(person) & self.groups_of(thing.owner):
            reached.append("use")
        return max(HEIGHT[level] for level in reached)

    def seen(self, person: str, kind: str, height: int) -> set[int]:
        """Numbers of the things of a kind that this person reaches at least so far."""
        return {pk for (of, pk), thing in self.things.items() if of == kind and self.height(person, thing) >= height}
