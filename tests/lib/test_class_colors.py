"""Colors of classes: the default order, and how later versions keep them."""

import re

from aiplatform.lib import class_colors
from aiplatform.lib.class_colors import PALETTE
from tests.architecture.code import ROOT
from training.presets import marks


def classes(*names):
    return [{"id": number, "name": name} for number, name in enumerate(names, 1)]


def colored(*names):
    return [item | {"color": PALETTE[index]} for index, item in enumerate(classes(*names))]


def test_palette_is_the_same_in_style_sheets_and_in_images_that_programs_of_jobs_draw():
    text = (ROOT / "aiplatform/static/base/tokens.css").read_text()
    tokens = [color for _number, color in re.findall(r"--chart-(\d+): (#[0-9a-f]{6});", text)]

    assert tokens == list(PALETTE)
    assert [marks.colour(place) for place in range(17)] == [
        class_colors.rgb_of(class_colors.default_at(place)) for place in range(17)
    ]
    assert len(set(PALETTE)) == 16


def test_classes_without_a_stored_color_have_the_default_of_their_place():
    assert class_colors.complete(classes("a", "b"), {"2": "#ffffff"}) == {1: PALETTE[0], 2: "#ffffff"}


def test_added_class_in_front_takes_no_color_away():
    kept = class_colors.inherit([{"id": 9, "name": "new"}, *classes("a", "b")], colored("a", "b"))

    assert kept == {"1": PALETTE[0], "2": PALETTE[1], "9": PALETTE[2]}


def test_renamed_class_keeps_its_color_by_its_id_and_reordered_ones_by_their_names():
    renamed = class_colors.inherit([{"id": 1, "name": "cell"}, {"id": 2, "name": "b"}], colored("a", "b"))
    reordered = class_colors.inherit(classes("b", "a"), colored("a", "b"))

    assert renamed == {"1": PALETTE[0], "2": PALETTE[1]}
    assert reordered == {"1": PALETTE[1], "2": PALETTE[0]}


def test_more_classes_than_colors_begin_again():
    colors = class_colors.inherit(classes(*map(str, range(20))), ())

    assert [colors[str(number)] for number in range(1, 21)] == [*PALETTE, *PALETTE[:4]]
