"""What tells pip on this machine where packages come from reaches the jobs that install some."""

import json
import os

from workers.images import builder
from workers.images.store import packages


def test_mirrors_and_certificates_of_the_machine_reach_jobs_and_nothing_else_of_the_platform(monkeypatch):
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/ssl/house.pem")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("PIP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("AIP_SECRET_KEY", "not for jobs")

    out, alone = packages.variables(), packages.variables(proxies=False)

    assert out["PIP_INDEX_URL"] == "https://mirror.example/simple"
    assert {"SSL_CERT_FILE", "HTTPS_PROXY", "PIP_PROXY"} <= out.keys()
    assert "AIP_SECRET_KEY" not in out
    assert alone["SSL_CERT_FILE"] == "/etc/ssl/house.pem"
    assert not {"HTTPS_PROXY", "PIP_PROXY"} & alone.keys()  # a network of its own has a way out of its own


def test_container_is_told_of_certificates_that_it_can_read_and_of_no_other_file(monkeypatch, tmp_path):
    house, hidden = tmp_path / "house.pem", tmp_path / "hidden.pem"
    for path, mode in ((house, 0o644), (hidden, 0o600)):
        path.write_text("certificate\n")
        path.chmod(mode)
    monkeypatch.setattr(packages, "CONFIGURATION", tmp_path / "none")
    told = {
        "SSL_CERT_FILE": house,
        "PIP_CERT": house,
        "REQUESTS_CA_BUNDLE": hidden,
        "CURL_CA_BUNDLE": tmp_path / "no.pem",
    }
    for name, path in told.items() | {("SSL_CERT_DIR", tmp_path), ("PIP_CONFIG_FILE", house)}:
        monkeypatch.setenv(name, str(path))

    inside, outside = packages.variables(contained=True), packages.variables()

    certificates = {"SSL_CERT_DIR", "PIP_CONFIG_FILE", *told}
    assert inside.keys() & certificates == {"SSL_CERT_FILE", "PIP_CERT"}
    assert outside.keys() & certificates == certificates
    assert (packages.files(contained=True), packages.files()) == ([house], [])


def test_places_for_the_platforms_own_packages_are_told_to_no_job(monkeypatch):
    monkeypatch.setenv("PIP_TARGET", "/srv/packages")
    monkeypatch.setenv("PIP_USER", "1")

    assert not {"PIP_TARGET", "PIP_USER"} & packages.variables().keys()


def test_pip_configuration_of_the_machine_is_mounted_where_there_is_one(monkeypatch, tmp_path):
    monkeypatch.setattr(packages, "CONFIGURATION", tmp_path / "pip.conf")
    without = packages.files()
    (tmp_path / "pip.conf").write_text("[global]\n")

    assert (without, packages.files()) == ([], [tmp_path / "pip.conf"])


def test_jupyterlab_of_an_engine_asks_nobody_about_news(tmp_path):
    builder.disable_news(tmp_path)  # an engine without one
    assert list(tmp_path.iterdir()) == []

    (tmp_path / "share/jupyter/lab").mkdir(parents=True)
    builder.disable_news(tmp_path)

    written = json.loads((tmp_path / "share/jupyter/lab/settings/overrides.json").read_text())
    assert written == {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}
