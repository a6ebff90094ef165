"""Celery, composed: tasks are doors in each app's tasks.py."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "aiplatform.settings")

app = Celery("aiplatform")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
