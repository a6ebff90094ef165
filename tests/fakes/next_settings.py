"""The settings of the platform's next version, whose tables differ."""

from aiplatform.settings import *  # noqa: F403 - settings build on settings
from aiplatform.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.fakes.next_version"]
