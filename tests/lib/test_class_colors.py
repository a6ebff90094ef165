"""The class at one place of a class list has one color on pages, in the annotator and in drawn images."""

import re

from aiplatform.lib import class_colors
from annotation.models.projects import COLOURS
from tests.architecture.code import ROOT
from training.presets import marks


def tokens(name: str) -> dict[int, str]:
    text = (ROOT / "aiplatform/static/base" / name).read_text()
    return {int(number): color for number, color in re.findall(r"--chart-(\d+): (#[0-9a-f]{6});", text)}


def test_palette_is_the_same_in_style_sheets_scripts_annotator_and_drawn_images():
    script = (ROOT / "aiplatform/static/base/class_colors.js").read_text()
    gallery = (ROOT / "datasets/static/datasets/datasets.css").read_text()
    places = range(1, 17)

    assert tokens("tokens.css") == dict(zip(places, class_colors.PALETTE, strict=True))
    assert list(tokens("dark.css")) == list(places)
    assert "const HUES = 16;" in script
    assert all(f".hue-{place} {{ color: var(--chart-{place}); }}" in gallery for place in places)
    assert tuple(COLOURS) == class_colors.PALETTE
    assert [marks.colour(place) for place in range(17)] == [class_colors.rgb_of(place) for place in range(17)]
    assert len(set(class_colors.PALETTE)) == 16
