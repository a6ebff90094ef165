"""What tells pip on this machine where packages come from reaches the jobs that install some."""

import json
import os

from workers.images import builder
from workers.images.services import packages


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


def test_pip_configuration_of_the_machine_is_mounted_where_there_is_one(monkeypatch, tmp_path):
    monkeypatch.setattr(packages, "CONFIGURATION", tmp_path / "pip.conf")
    without = packages.files()
    (tmp_path / "pip.conf").write_text("[global]\n")

    assert (without, packages.files()) == ([], [tmp_path / "pip.conf"])


def test_jupyterlab_of_an_engine_asks_nobody_about_news(tmp_path):
    builder.keep_news_out(tmp_path)  # an engine without one
    assert list(tmp_path.iterdir()) == []

    (tmp_path / "share/jupyter/lab").mkdir(parents=True)
    builder.keep_news_out(tmp_path)

    written = json.loads((tmp_path / "share/jupyter/lab/settings/overrides.json").read_text())
    assert written == {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}
