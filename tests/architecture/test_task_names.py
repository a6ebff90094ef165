"""Names of Celery tasks stay: messages of an older release wait in the broker while a cluster is upgraded."""

from celery import current_app

from tests.architecture.code import ROOT

LIST = ROOT / "tests" / "architecture" / "task_names.txt"


def test_task_names_of_released_versions_stay():
    current_app.loader.import_default_modules()
    names = {name for name in current_app.tasks if not name.startswith("celery.")}
    released = set(LIST.read_text().split())

    assert released - names == set(), "Keep a task of the old name that does the same."
    assert names - released == set(), f"Add the new tasks to {LIST.name}."
