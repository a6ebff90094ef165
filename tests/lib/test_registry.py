"""One generic registry for everything that upper rooms plug into lower ones."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pytest

from aiplatform.lib.registry import Registry, Slot, UnknownName, dotted_name


@dataclass(frozen=True)
class Toy:
    name: str
    weight: int = 0


@pytest.fixture
def toys() -> Registry[Toy]:
    made: Registry[Toy] = Registry("toy")
    made.register(Toy("kite", 3), Toy("ball", 1))
    return made


def test_registry_get_returns_the_entry_and_find_none_for_an_unknown_name(toys):
    assert toys.get("ball") == Toy("ball", 1)
    assert toys.find("ball") == Toy("ball", 1)
    assert toys.find("doll") is None


def test_registry_get_says_which_names_there_are(toys):
    with pytest.raises(UnknownName) as refused:
        toys.get("doll")

    assert str(refused.value) == "There is no toy 'doll'. Registered: kite, ball."
    assert isinstance(refused.value, KeyError)


def test_registry_get_of_an_empty_registry_says_none():
    with pytest.raises(UnknownName, match="Registered: none"):
        Registry[Toy]("toy").get("doll")


def test_registry_register_refuses_doubles_and_adds_nothing(toys):
    with pytest.raises(ValueError, match="The toy 'ball' is registered twice"):
        toys.register(Toy("doll"), Toy("ball"))
    with pytest.raises(ValueError, match="The toy 'doll' is registered twice"):
        toys.register(Toy("doll"), Toy("doll"))

    assert toys.names() == ["kite", "ball"]
    assert toys.get("ball").weight == 1


def test_registry_iterates_in_order_of_registration_or_of_a_key(toys):
    sorted_toys: Registry[Toy] = Registry("toy", order=lambda toy: toy.weight)
    sorted_toys.register(*toys)

    assert [toy.name for toy in toys] == toys.names() == ["kite", "ball"]
    assert [toy.name for toy in sorted_toys] == sorted_toys.names() == ["ball", "kite"]
    assert len(toys) == 2
    assert "kite" in toys
    assert Toy("kite", 3) not in toys  # `in` takes names


def test_registry_may_grow_while_it_is_iterated(toys):
    for toy in toys:
        toys.register(Toy(f"second {toy.name}"))

    assert toys.names() == ["kite", "ball", "second kite", "second ball"]


def test_registry_temporarily_takes_its_entries_out_again(toys):
    with suppress(RuntimeError), toys.temporarily(Toy("doll"), Toy("ball", 9)):
        during = (toys.names(), toys.get("ball").weight)
        raise RuntimeError

    assert during == (["kite", "ball", "doll"], 9)

    assert list(toys) == [Toy("kite", 3), Toy("ball", 1)]


def test_registry_temporarily_alone_hides_the_others(toys):
    with toys.temporarily(Toy("doll"), alone=True):
        assert toys.names() == ["doll"]

    assert toys.names() == ["kite", "ball"]


def test_registry_takes_functions_by_their_dotted_name():
    functions = Registry("function", name=dotted_name)

    functions.register(dotted_name)

    assert functions.names() == ["aiplatform.lib.registry.dotted_name"]


def test_slot_holds_one_entry_and_refuses_a_second():
    slot: Slot[str] = Slot("owner of clusters")
    assert slot.get() is None

    slot.register("first")
    with pytest.raises(ValueError, match="The owner of clusters is registered twice"):
        slot.register("second")
    with slot.temporarily(None):
        assert slot.get() is None

    assert slot.get() == "first"
