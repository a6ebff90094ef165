"""The Celery application. Tasks are in each app's tasks.py."""

import os
import warnings

from celery import Celery
from celery.platforms import SecurityWarning

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "aiplatform.settings")

# Running as root is the operator's choice (it opens the stronger sandbox tiers); messages are JSON with ids only.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("aiplatform")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
