"""Settings come from AIP_* variables; a wrong one is named, never fatal."""

import os
import subprocess
import sys
from pathlib import Path

from aiplatform import env
from aiplatform.lib import installation_secrets

ROOT = Path(__file__).parents[2]


def checked(tmp_path, **variables: str) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AIP_") and k != "DJANGO_SETTINGS_MODULE"}
    environment |= {"AIP_BOOTSTRAP": "0", "AIP_DATA_ROOT": str(tmp_path)} | variables
    command = [sys.executable, str(ROOT / "manage.py"), "check"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_env_wrong_value_is_a_check_that_names_variable_and_remedy(tmp_path):
    wrong = {"AIP_PORT": "eighty", "AIP_DEBUG": "maybe", "AIP_CPU_OVERCOMMIT": "two", "AIP_JOB_PORTS": "20000-80"}
    wrong["AIP_OIDC_ISSUER"] = "http://login.example"

    done = checked(tmp_path, **wrong)

    assert done.returncode == 1
    assert "aiplatform.E001" in done.stderr
    assert [f"{name}='{value}'" for name, value in wrong.items() if f"{name}='{value}'" not in done.stderr] == []
    assert "write the first and the last port" in done.stderr


def test_env_variables_have_a_default_and_a_line_of_help():
    assert all(
        text.endswith((".", "org.", "zh-hans.")) and len(text) > 15 for _default, text in env.documented.values()
    )


def test_A01_secrets_kept_are_private_and_differ_between_installations(tmp_path):
    first = installation_secrets.load_or_create(tmp_path / "a" / "key")
    second = installation_secrets.load_or_create(tmp_path / "b" / "key")

    assert first != second
    assert len(first) >= 48
    assert installation_secrets.load_or_create(tmp_path / "a" / "key") == first
    assert (tmp_path / "a" / "key").stat().st_mode & 0o077 == 0
