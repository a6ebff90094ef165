"""A machine that joins keeps what it was told to itself, and says in a sentence what stands in its way."""

import os
import stat

import pytest

from aiplatform.cli import join

pytestmark = pytest.mark.sockets("a server that does not answer")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An environment that a join may change."""
    for name in [name for name in os.environ if name.startswith("AIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(join.os, "environ", dict(os.environ) | {"AIP_RUN_DIR": str(tmp_path / "run")})
    return tmp_path


def test_join_load_keeps_what_a_node_is_told_private(own):
    join.save(own, {"AIP_NODE": "gpu-03", "AIP_DATABASE_URL": "postgresql://n:secret@h/d", "AIP_LANGUAGE": ""})
    join.os.environ["AIP_NODE"] = "GPU-03"
    join.os.environ["AIP_DATABASE_URL"] = "postgresql://mine"

    join.load(own)

    assert stat.S_IMODE((own / "node.env").stat().st_mode) == 0o600
    assert join.os.environ["AIP_NODE"] == "gpu-03"  # as the server spells it
    assert join.os.environ["AIP_DATABASE_URL"] == "postgresql://mine"  # set by hand comes first
    assert join.os.environ["AIP_NODE_JOINED"] == "1"
    assert "AIP_LANGUAGE" not in join.os.environ


@pytest.mark.parametrize("told", [{"LD_PRELOAD": "/x.so"}, {"AIP_NODE": "a\nLD_PRELOAD=/x.so"}])
def test_join_lets_a_server_set_only_the_platforms_variables(own, told):
    with pytest.raises(join.Refused, match="The server sent an invalid setting:"):
        join.save(own, told)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "join       │ This computer is not a node yet:"),
        (["--server", "http://127.0.0.1:9", "--token", "x"], "--data-root"),
        (
            ["--server", "http://127.0.0.1:9", "--token", "x", "--data-root", "/nowhere"],
            "Mount the shared folder of the platform there first.",
        ),
        (
            ["--server", "http://127.0.0.1:9", "--token", "x", "--data-root", "."],
            "join       │ http://127.0.0.1:9/api/v1/nodes/join/ does not",
        ),
        (["--server", "nothing", "--token", "x", "--data-root", "."], "join       │ nothing is not a valid address."),
    ],
)
def test_join_ends_every_failure_in_a_sentence(own, capsys, monkeypatch, arguments, sentence):
    monkeypatch.chdir(own)

    assert join.main(arguments) == 1
    assert sentence in capsys.readouterr().out
    assert not (own / "run" / "node.env").exists()
    assert list(own.glob(".join/*")) == []
