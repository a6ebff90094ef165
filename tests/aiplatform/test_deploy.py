"""What `deploy` writes can be used as it is: units that systemd accepts, a compose file, users with passwords."""

import shutil
import stat
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml
from django.apps import apps

from aiplatform.cli import deploy
from workers.images.models import Engine, Image, ImageUse, NodeCopy

#: What their digest names is no secret, and signs nobody in.
NAMES_BY_DIGEST = {Engine, Image, ImageUse, NodeCopy}


@pytest.fixture
def folder(tmp_path):
    deploy.write(tmp_path / "d", address="10.0.0.1", data_root=tmp_path, user="root")
    return tmp_path / "d"


def test_deploy_units_are_accepted_and_end_no_job(folder):
    units = sorted(folder.glob("*.service"))

    for unit in units:
        parsed = ConfigParser(interpolation=None, strict=False)
        parsed.optionxform = str
        parsed.read(unit)
        assert parsed["Service"]["KillMode"] == "process"  # the default would kill every job with the platform
        assert "manage.py" in parsed["Service"]["ExecStart"]
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
        assert not [line for line in done.stderr.splitlines() if "aiplatform" in line], done.stderr


def test_deploy_compose_file_names_what_is_there_and_fits_together(folder, tmp_path):
    parsed = yaml.safe_load((folder / "compose.yml").read_text())
    services, told = parsed["services"], (folder / "aiplatform.env").read_text()

    assert set(parsed) == {"services", "volumes"}
    assert set(services) == {"database", "broker", "server"}
    for name, service in services.items():
        assert service["restart"] == "always", name
        for source, target, *rights in (volume.split(":") for volume in service["volumes"]):
            if source.startswith("/"):
                assert Path(source).exists(), source
                assert target.startswith("/"), target
                assert rights == ([] if name == "server" else ["ro"]), (name, source)
            else:
                assert source in parsed["volumes"], source
        for needed in service.get("depends_on", {}):
            assert needed in services
    assert all(isinstance(value, str) and value for value in services["database"]["environment"].values())
    assert services["server"]["env_file"] == [str(folder / "aiplatform.env")]
    assert services["server"]["network_mode"] == "host"  # else jobs' ports could not be reached
    for name, port in (("database", 5432), ("broker", 6379)):
        assert services[name]["ports"] == [f"{port}:{port}"]
        assert f":{port}/" in told
        script = services[name]["entrypoint"][2]
        mounted = [volume.split(":")[1] for volume in services[name]["volumes"] if volume.startswith("/")]
        assert mounted
        assert all(path in script for path in mounted)  # copied for the image's own user, who may not read ours
    compose = ["docker", "compose", "-f", str(folder / "compose.yml")]
    if (
        shutil.which("docker")
        and subprocess.run([*compose, "version"], capture_output=True, check=False).returncode == 0
    ):
        done = subprocess.run([*compose, "config", "--quiet"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_deploy_files_with_passwords_are_private_and_fit_together(folder):
    env = dict(line.split("=", 1) for line in (folder / "aiplatform.env").read_text().splitlines())
    roles, users = (folder / "1-roles.sql").read_text(), (folder / "users.acl").read_text()

    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in deploy.SECRET} == {0o600}
    assert env["AIP_DATABASE_URL"].split(":")[2].split("@")[0] in roles
    assert env["AIP_NODE_REDIS_URL"].split(":")[2].split("@")[0] in users
    assert not any("${" in path.read_text() for path in folder.iterdir())


def test_deploy_run_again_keeps_what_is_there(folder, tmp_path):
    before = (folder / "users.acl").read_text()
    (folder / "README.txt").unlink()

    again = deploy.write(folder, address="10.0.0.1", data_root=tmp_path)
    (folder / "users.acl").unlink()

    assert [path.name for path in again] == ["README.txt"]
    with pytest.raises(SystemExit, match="belong together"):
        deploy.write(folder, address="10.0.0.1", data_root=tmp_path)
    assert before


def test_deploy_grants_or_closes_every_table_knowingly():
    text = deploy.grants()

    assert 'ON "django_session" TO' not in text
    assert 'GRANT SELECT ON "accounts_user" TO aip_node' in text
    assert 'ON "accounts_identity" TO' not in text  # a row of it is a way in
    assert 'GRANT SELECT, INSERT, UPDATE, DELETE ON "workers_job" TO aip_node' in text
    for table in deploy.CLOSED:
        assert f'REVOKE ALL ON "{table}"' in text, f"{table} is no table any more"


@pytest.mark.parametrize("column", ["session_key", "digest", "token_digest", "nonce"])
def test_h02_deploy_grants_let_no_node_read_what_signs_somebody_in(column):
    """A session's key is the session: a machine that runs strangers' code could become any administrator."""
    holding = [
        model._meta.db_table
        for model in apps.get_models()
        if column in {field.name for field in model._meta.get_fields()} and model not in NAMES_BY_DIGEST
    ]
    text = deploy.grants()

    assert holding
    assert [
        table for table in holding if f'GRANT SELECT ON "{table}"' in text or f'UPDATE, DELETE ON "{table}"' in text
    ] == []
