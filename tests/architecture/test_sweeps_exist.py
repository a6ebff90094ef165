"""A sweep nobody can run would leave lost work lost."""

from celery import current_app

from aiplatform.lib import sweeps


def test_sweeps_are_all_tasks():
    current_app.loader.import_default_modules()

    assert sweeps.names()
    assert set(sweeps.names()) <= set(current_app.tasks)


def test_sweeps_go_out_once_a_round(monkeypatch):
    sent = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **options: sent.append((name, options["expires"])))
    monkeypatch.setattr(sweeps, "_sent", {"at": float("-inf")})

    with sweeps.TASKS.temporarily("a.sweep", alone=True):
        for moment in (0.0, 1.0, 19.0, 20.0, 21.0):
            sweeps.send_due(moment)

    assert sent == [("a.sweep", 20.0)] * 2
