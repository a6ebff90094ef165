"""Splits by ratios and seed: repeatable, close to the shares, no content and no scene in two of them."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.services.splitting import Item, Wish, by_folder, by_prefix, deal, groups_of

items_of_all_kinds = st.lists(
    st.builds(
        Item,
        path=st.builds("{}/{}_{}.png".format, st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 99)),
        content=st.sampled_from("0123456789abcdef"),
        classes=st.sets(st.integers(1, 4)),
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda item: item.path,
)
wishes = st.builds(
    Wish,
    train=st.just(60),
    val=st.just(30),
    test=st.just(10),
    seed=st.integers(0, 9),
    stratify=st.booleans(),
    group=st.sampled_from(("", "folder", "prefix")),
)


@given(items=items_of_all_kinds, wish=wishes)
def test_splitting_deals_every_image_and_keeps_together_what_belongs_together(items, wish):
    dealt = deal(items, wish)

    assert dealt.keys() == {item.path for item in items}
    assert dealt == deal(list(reversed(items)), wish)
    of_content, of_scene = defaultdict(set), defaultdict(set)
    scene = {"": lambda path: path, "folder": by_folder, "prefix": by_prefix}[wish.group]
    for item in items:
        of_content[item.content].add(dealt[item.path])
        of_scene[scene(item.path)].add(dealt[item.path])
    assert max(map(len, of_content.values())) == max(map(len, of_scene.values())) == 1


def test_splitting_meets_the_shares_and_the_seed_deals_anew():
    items = [Item(f"{n}.png", str(n)) for n in range(1000)]

    first, again, other = (deal(items, Wish(80, 15, 5, seed=seed)) for seed in (1, 1, 2))

    assert Counter(first.values()) == {"train": 800, "val": 150, "test": 50}
    assert first == again
    assert sum(first[path] != other[path] for path in first) > 200


def test_splitting_spreads_rare_classes_as_the_shares_say():
    """Class 1 on every image, class 2 on 20 of 1,000, class 3 on 10: by chance alone a split often gets none."""
    items = [
        Item(f"{n}.png", str(n), {1} | ({2} if n < 20 else set()) | ({3} if 15 <= n < 25 else set()))
        for n in range(1000)
    ]

    dealt = deal(items, Wish(80, 10, 10))

    of = {number: Counter(dealt[item.path] for item in items if number in item.classes) for number in (1, 2, 3)}
    assert of[2] == {"train": 16, "val": 2, "test": 2}
    assert of[3] == {"train": 8, "val": 1, "test": 1}
    assert of[1] == {"train": 800, "val": 100, "test": 100}


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("a/scene7_0012.png", "a/scene7"),
        ("a/scene7_0013.jpg", "a/scene7"),
        ("b/scene7_0013.jpg", "b/scene7"),
        ("IMG-20.png", "IMG"),
        ("0012.png", "#"),
        ("day 2 (3).png", "day 2"),
    ],
)
def test_prefix_is_the_name_without_its_last_number(path, prefix):
    assert by_prefix(path) == prefix


def test_groups_are_what_stays_together():
    items = [Item("a/1.png", "x"), Item("a/2.png", "y"), Item("b/1.png", "y"), Item("c/1.png", "z")]

    assert groups_of(items, Wish()) == 3  # two files are equal
    assert groups_of(items, Wish(group="folder")) == 2  # which ties their folders
