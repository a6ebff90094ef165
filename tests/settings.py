"""Settings of the tests: the product's own, with throw-away folders and no broker."""

import os
import tempfile
from pathlib import Path

if "AIP_TEST_ROOT" not in os.environ:
    os.environ["AIP_TEST_ROOT"] = tempfile.mkdtemp(prefix="aip-test-")
_root = Path(os.environ["AIP_TEST_ROOT"]) / os.environ.get("PYTEST_XDIST_WORKER", "main")
_root.mkdir(parents=True, exist_ok=True)
os.environ["AIP_DATA_ROOT"] = str(_root)
os.environ["AIP_SECRET_KEY"] = "tests-only"
os.environ.pop("AIP_REDIS_URL", None)
if os.environ.get("AIP_TEST_DATABASE_URL"):
    os.environ["AIP_DATABASE_URL"] = os.environ["AIP_TEST_DATABASE_URL"]
else:
    os.environ.pop("AIP_DATABASE_URL", None)

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
