"""References in the parameters of steps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiplatform.lib.errors import Invalid
from inference.pipelines import values

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


def test_a_whole_reference_keeps_its_type_and_one_inside_text_becomes_text():
    tree = {"a": "${n}", "b": ["lr ${n}, ${flag}, ${one}", "$${n} and ${item.size.0}", "${item}"], "c": 3}
    item = {"size": [640, 480]}

    made = values.substitute(tree, {"n": 0.5, "flag": True, "one": {"x": "ü"}}, item=item, has_item=True)

    assert made == {"a": 0.5, "b": ['lr 0.5, true, {"x": "ü"}', "${n} and 640", item], "c": 3}
    assert values.names(tree) == {"n", "flag", "one"}
    assert values.uses_item(tree)
    assert not values.uses_item("${items}")


def test_all_that_means_nothing_is_refused_at_once():
    with pytest.raises(Invalid) as refused:
        values.substitute({"a": "${lost} ${gone}", "b": "${item.x}", "c": "${n}"}, {"n": 1})
    with pytest.raises(Invalid) as unreadable:
        values.names(["${A}", "x ${", "${a b}", "$${fine}"])

    assert [error.message.split(".")[0] for error in refused.value.every] == [
        "Unknown parameter lost",
        "Unknown parameter gone",
        "${item",
    ]
    assert [error.message[:9] for error in unreadable.value.every] == ["“${A}” is", "“${” open", "“${a b}” "]
    with pytest.raises(Invalid, match="The item has no “y” for"):
        values.substitute("${item.y}", {}, item={"x": 1}, has_item=True)


def test_what_is_inserted_is_bounded_in_depth_and_size():
    deep = "x"
    for _ in range(5000):
        deep = [deep]
    big = {"big": "x" * 100_000, "deep": [[["x"]] * 9000] * 3}

    for tree in (deep, "${big}" * 20, ["${big}"] * 11, "${deep}"):
        with pytest.raises(Invalid, match="at most"):
            values.substitute(tree, big)


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_f08_values_are_never_read_again(value):
    assert values.substitute({"a": "${v}", "b": ["${v}"]}, {"v": value}) == {"a": value, "b": [value]}
