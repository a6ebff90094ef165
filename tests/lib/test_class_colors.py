"""The class at one place of a class list has one color on pages, in the annotator and in drawn images."""

import re

from aiplatform.lib import class_colors
from annotation.models.projects import COLOURS
from tests.architecture.code import ROOT
from training.presets import marks


def test_palette_is_the_same_in_style_sheet_annotator_and_drawn_images():
    tokens = (ROOT / "aiplatform/static/base/tokens.css").read_text()

    hues = tuple(re.findall(r"--chart-[1-8]: (#[0-9a-f]{6});", tokens))

    assert hues == class_colors.PALETTE
    assert tuple(COLOURS[: len(hues)]) == hues
    assert [marks.colour(place) for place in range(9)] == [class_colors.rgb_of(place) for place in range(9)]
