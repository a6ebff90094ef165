"""Settings of the tests: the product's own, with throw-away folders and no broker."""

import os
import tempfile
from pathlib import Path

if "AIP_TEST_ROOT" not in os.environ:
    os.environ["AIP_TEST_ROOT"] = tempfile.mkdtemp(prefix="aip-test-")
_root = Path(os.environ["AIP_TEST_ROOT"]) / os.environ.get("AIP_TEST_WORKER", "main")
_root.mkdir(parents=True, exist_ok=True)
os.environ["AIP_DATA_ROOT"] = str(_root)
os.environ["AIP_SECRET_KEY"] = "tests-only"
os.environ.pop("AIP_REDIS_URL", None)
if os.environ.get("AIP_TEST_DATABASE_URL"):
    os.environ["AIP_DATABASE_URL"] = os.environ["AIP_TEST_DATABASE_URL"]
else:
    os.environ.pop("AIP_DATABASE_URL", None)

#: NumPy would start threads when it is imported, and a process with threads cannot fork test workers.
WITHOUT_THREADS = "OPENBLAS_NUM_THREADS" not in os.environ
if WITHOUT_THREADS:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # until the tests are collected, see tests/worker_pool.py

from aiplatform.settings import *  # noqa: E402, F403 - settings build on settings
from aiplatform.settings import DATABASES  # noqa: E402 - after Django is set up

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(_root / "test.sqlite3")}
elif os.environ.get("AIP_TEST_DATABASE_MIGRATED"):  # each test process begins with a copy of it
    DATABASES["default"]["TEST"] = {"TEMPLATE": DATABASES["default"]["NAME"]}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "memory://"
PORTS_PATIENCE_S = 0.0  # no web server of ports runs
ALLOWED_HOSTS = ["*"]
AUDIT_GUARDED = False  # tests that flush delete every row; tests/accounts/test_audit.py makes the triggers itself


def enter_worker(name: str) -> None:
    """Move every path of a forked test worker into a folder of its own, before its first test."""
    from django.conf import settings
    from django.db import connections

    from aiplatform import env

    parent, own = Path(env.DATA_ROOT), Path(os.environ["AIP_TEST_ROOT"]).resolve() / name
    own.mkdir()
    os.environ["AIP_TEST_WORKER"] = name
    os.environ["AIP_DATA_ROOT"] = str(own)
    for holder in (env, settings._wrapped):
        for key, value in vars(holder).items():
            if key.isupper() and isinstance(value, Path) and value.is_relative_to(parent):
                setattr(holder, key, own / value.relative_to(parent))
    database = connections["default"].settings_dict
    for place in (database, database["TEST"]):
        if str(place.get("NAME") or "").startswith(f"{parent}/"):
            place["NAME"] = str(own / Path(place["NAME"]).name)
