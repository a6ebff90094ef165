"""Tasks are sent by name; a typo must fail here, not at night."""

import ast

from celery import current_app

from tests.architecture.code import APPS, modules_with, tree


def enqueued():
    for path in modules_with("enqueue", *APPS, "aiplatform"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "enqueue":
                assert isinstance(node.args[0], ast.Constant), f"{path}: name tasks by a literal"
                yield node.args[0].value


def test_enqueued_tasks_exist():
    current_app.loader.import_default_modules()

    assert set(enqueued()) - set(current_app.tasks) == set()
