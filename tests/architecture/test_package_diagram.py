"""The drawings of packages in the docs show the imports as they are."""

import os

from tests.architecture.package_diagram import FOLDER, diagrams, draw, levels, reduced

REFRESH = "AIP_UPDATE=1 python3 manage.py test -- tests/architecture/test_package_diagram.py"


def test_diagrams_show_the_imports():
    """Refresh the drawings with AIP_UPDATE=1."""
    expected = diagrams()
    if os.environ.get("AIP_UPDATE"):
        FOLDER.mkdir(exist_ok=True)
        for path, text in expected.items():
            path.write_text(text)

    stale = [path.name for path, text in expected.items() if not path.is_file() or path.read_text() != text]

    assert len(expected) > 5
    assert stale == [], f"Draw them again: {REFRESH}"
    assert {path.name for path in FOLDER.glob("*.svg")} == {path.name for path in expected}


def test_edges_that_follow_from_others_are_left_out():
    graph = {"top": {"middle", "ground"}, "middle": {"ground"}, "ground": set()}

    assert reduced(graph) == {"top": ["middle"], "middle": ["ground"], "ground": []}
    assert levels(graph) == {"top": 2, "middle": 1, "ground": 0}
    assert draw("three", graph).count("<line") == 2
