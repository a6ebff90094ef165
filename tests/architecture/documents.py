"""The documents of the repository, for the tests that check them."""

from pathlib import Path

from tests.architecture.code import ROOT

DOCS = [ROOT / "README.md", *sorted((ROOT / "aiplatform/docs").rglob("*.md"))]
#: Folders whose paths and modules the documents name.
TOP = {"accounts", "aiplatform", "annotation", "datasets", "inference", "templates", "tests", "training", "workers"}
#: Documents of a time: they name files as these were called then.
OF_A_TIME = ("aiplatform/docs/decisions/", "aiplatform/docs/CHANGELOG.md")


def name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


#: Documents of the help site: MkDocs checks their links, among them those to generated pages.
SITE = "aiplatform/docs/site/"

PRESENT = [document for document in DOCS if not name(document).startswith(OF_A_TIME)]
REPOSITORY = [document for document in DOCS if not name(document).startswith(SITE)]
