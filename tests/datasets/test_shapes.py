"""Shapes as numbers: what is measured, what is refused, and how fast the worst shape is."""

import math
import time

from hypothesis import given
from hypothesis import strategies as st

from datasets.shapes import geometry
from datasets.shapes.polygon import POLYGON
from tests.cases import case_table

SQUARE = [10.0, 10.0, 30.0, 10.0, 30.0, 30.0, 10.0, 30.0]
BOW_TIE = [0.0, 0.0, 10.0, 10.0, 10.0, 0.0, 0.0, 10.0]
IMAGE = {"width": 100, "height": 80}


def star(points: int, radius: float = 30, wobble: float = 0.3) -> list[float]:
    ring: list[float] = []
    for i in range(points):
        angle = 2 * math.pi * i / points
        r = radius * (1 - wobble * (i % 2))
        ring += [50 + r * math.cos(angle), 40 + r * math.sin(angle)]
    return ring


def test_geometry_area_is_the_sum_of_the_parts_whatever_their_direction():
    turned = [v for x, y in zip(SQUARE[::2], SQUARE[1::2], strict=True) for v in (x + 40, y)][::-1]
    turned = [v for i in range(0, 8, 2) for v in (turned[i + 1], turned[i])]

    assert geometry.area([SQUARE]) == 400
    assert geometry.area([SQUARE, turned]) == 800
    assert geometry.signed_area(SQUARE) == -geometry.signed_area(turned)


def test_geometry_area_far_from_the_origin_keeps_its_digits():
    far = [v + 1e8 for v in [0.0, 0.0, 0.5, 0.0, 0.5, 0.5, 0.0, 0.5]]

    assert geometry.area([far]) == 0.25


def test_geometry_extents_span_all_parts_and_are_clipped_to_the_image():
    box = geometry.extents([SQUARE, [90.0, 70.0, 120.0, 70.0, 120.0, 90.0]])

    assert box == (10, 10, 110, 80)
    assert geometry.clip_box(box, 100, 80) == (10, 10, 90, 70)
    assert geometry.clip_box(geometry.Box(-50, -50, 20, 20), 100, 80) == (0, 0, 0, 0)


def test_geometry_is_box_tells_a_box_from_a_polygon_of_four_points():
    assert geometry.is_box(geometry.box_ring(1, 2, 3, 4))
    assert not geometry.is_box([0, 0, 10, 1, 10, 10, 0, 10])
    assert not geometry.is_box(SQUARE[:6])


@case_table(
    ("rings", "code"),
    [
        ([], "no_points"),
        ("text", "no_points"),
        ([[1, 1, 2, 2]], "too_few_points"),
        ([[1, 1, 2, 2, 3]], "not_pairs"),
        ([{"x": 1}], "not_pairs"),
        ([[1, 1, 2, 2, "3", 4]], "not_numbers"),
        ([[1, 1, 2, 2, True, 4]], "not_numbers"),
        ([[1, 1, 2, 2, None, 4]], "not_numbers"),
        ([[1, 1, 2, 2, math.nan, 4]], "not_finite"),
        ([[1, 1, 2, 2, math.inf, 4]], "not_finite"),
        ([[1, 1, 2, 2, 101, 4]], "outside"),
        ([[-1, 1, 2, 2, 10, 4]], "outside"),
        ([[1, 1, 2, 2, 3, 3]], "no_area"),
        ([[1, 1, 1, 1, 3, 3, 3, 3]], "no_area"),
        ([BOW_TIE], "crossing"),
        ([SQUARE, BOW_TIE], "crossing"),
        ([[1.0, 1.0] * 10_001], "too_many_points"),
        ([[1.0] * 6] * 1_001, "too_many_parts"),
    ],
)
def test_polygon_flaw_names_a_shape_that_means_nothing(rings, code):
    flaw = POLYGON.flaw(rings, **IMAGE)

    assert flaw is not None
    assert flaw.code == code


def test_polygon_flaw_finds_none_in_good_shapes():
    keyhole = [0, 0, 40, 0, 40, 40, 0, 40, 0, 0, 10, 10, 10, 30, 30, 30, 30, 10, 10, 10]

    assert POLYGON.flaw([SQUARE], **IMAGE) is None
    assert POLYGON.flaw([star(12), star(40)], **IMAGE) is None
    assert POLYGON.flaw([keyhole], **IMAGE) is None
    assert POLYGON.flaw([[0, 0, 100, 0, 100, 80, 0, 80]], **IMAGE) is None


def test_geometry_first_crossing_names_its_edges():
    assert geometry.first_crossing(BOW_TIE) == (0, 2)
    assert geometry.first_crossing(SQUARE) is None


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=4, max_size=12))
def test_geometry_first_crossing_agrees_with_the_plain_double_loop(points):
    ring = [float(v) for point in points for v in point]

    assert (geometry.first_crossing(ring) is not None) == _crosses_slowly(points)


def _crosses_slowly(points: list[tuple[int, int]]) -> bool:
    def turn(a, b, c):
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    edges = list(zip(points, points[1:] + points[:1], strict=True))
    return any(
        turn(p, q, r) * turn(p, q, s) < 0 and turn(r, s, p) * turn(r, s, q) < 0
        for i, (p, q) in enumerate(edges)
        for r, s in edges[i + 1 :]
    )


def test_polygon_flaw_judges_the_largest_shapes_within_a_second():
    comb: list[float] = []  # 5,000 long spikes: every edge overlaps every other one in x
    for i in range(4_998):
        comb += [0.0 if i % 2 else 99.0, i * 0.015]
    started = time.process_time()

    assert POLYGON.flaw([[*comb, 99.5, 79.0, 99.5, 0.0]], **IMAGE) is None
    assert POLYGON.flaw([star(10_000, wobble=0.01)], **IMAGE) is None
    assert time.process_time() - started < 3
