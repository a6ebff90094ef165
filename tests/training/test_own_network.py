"""Networks of people's own: refused beforehand without being run, kept with the training, and run for nobody else."""

from __future__ import annotations

import pytest

from aiplatform.lib.errors import Invalid
from tests.cases import case_table
from tests.factories import training as factory
from training.presets.catalog import PRESETS
from training.runs import custom_networks, jobs, parameter_sets, parameters, pretrained_weights, previews
from training.runs.pretrained_weights import RegisteredModel

PLAIN = """from torch import nn


def build(classes, channels):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(classes))
"""
CARD = PRESETS["classify"]


def check(text, **more):
    custom_networks.check({"architecture": "own", "network": text, **more})


@case_table(
    ("text", "said"),
    [
        ("", "Enter the network"),
        ("   \n", "Enter the network"),
        ("def build(classes, channels):\nreturn 1", "Line 2 is not valid Python: expected an indented block"),
        ("x = (" * 400, "not valid Python"),
        ("-" * 28_000 + "1", "not valid Python"),
        ("net = 1", "The function build is missing"),
        ("class A:\n    def build(classes, channels): pass", "The function build is missing"),
        ("def build(classes, depth): pass", "Line 1: build receives classes, channels, width, height by name"),
        ("def build(classes, *, depth): pass", "nothing for depth"),
        ("def build(classes, channels, /): pass", "nothing for classes, channels"),
    ],
)
def test_network_that_no_training_could_use_is_refused(text, said):
    with pytest.raises(Invalid) as refused:
        check(text)

    assert refused.value.blamed == "param_network"
    assert said in refused.value.message


@pytest.mark.parametrize(
    "head", ["classes, channels", "classes, channels, width, height", "classes", "classes, depth=3", "**asked"]
)
def test_network_whose_build_asks_for_what_it_is_given_is_taken(head):
    check(f"def build({head}):\n    pass")


def test_network_is_for_the_architecture_own_alone():
    with pytest.raises(Invalid, match=r"A network is entered here, but another one is selected. Select"):
        parameters.read(CARD, {"network": PLAIN})

    assert parameters.read(CARD, {"architecture": "own", "network": PLAIN})["network"] == PLAIN


def test_network_is_never_run_by_the_server(tmp_path):
    mark = tmp_path / "ran"

    check(f"open({str(mark)!r}, 'w')\n{PLAIN}")

    assert not mark.exists()


@pytest.fixture
def named(alice):
    """Alice's version of images with a class each."""
    return factory.version(alice, "digits", task="classification")


@pytest.mark.parametrize("given", ["x" * 32_769, 7, "a\0b"])
def test_network_of_another_kind_or_too_long_is_refused(given):
    param = next(one for one in CARD.parameters if one.name == "network")

    with pytest.raises(parameters.BadParameter, match=r"a text of at most 32768 characters"):
        parameters.read_one(param, given)


def test_network_of_a_form_is_kept_with_plain_line_ends_and_cloned(as_alice, alice, machine, named):
    cluster = factory.training(alice, data=named).job.cluster
    sent = {
        "preset": "classify", "version": named.pk, "cluster": cluster.pk, "nodes": 1, "gpus_per_node": 0, "cpus": 1,
        "processes": 0, "share": 8, "priority": 0, "memory_mib": 0, "name": "mine",
        "classify__architecture": "own", "classify__network": PLAIN.replace("\n", "\r\n"),
    }  # fmt: skip

    answer = as_alice.post("/training/new/", sent)

    training = alice.jobs.get(name="mine").training
    assert answer.status_code == 302
    assert training.params["network"] == PLAIN
    assert jobs.as_request(training)["params"].items() >= {"architecture": "own", "network": PLAIN}.items()
    page = as_alice.get(f"/training/{training.pk}/").content.decode()
    assert '<pre class="job-code">from torch import nn' in page
    wrong = as_alice.post("/training/new/", sent | {"classify__network": "def build(:"}).content.decode()
    assert "Line 1 is not valid Python" in wrong


def test_layers_of_a_network_that_somebody_else_wrote_are_not_shown(alice, bob, machine, named):
    training = factory.training(alice, data=named, preset="classify", params={"architecture": "own", "network": PLAIN})

    with pytest.raises(Invalid, match="The owner wrote this network"):
        previews.layers(training, by=bob)


def test_parameter_set_with_a_network_of_somebody_else_is_used_by_the_version_that_was_read(api, alice, bob, machine):
    """What its owner writes next is run for nobody who did not see it."""
    theirs = parameter_sets.save(
        user=alice,
        name="nice",
        preset="classify",
        params={"architecture": "own", "network": PLAIN},
        visibility="public",
    )
    asked = {"version": factory.version(bob, "digits", task="classification").pk, "parameter_set": theirs.pk}

    api.force_authenticate(bob)
    refused = api.post("/api/v1/training/jobs/", asked, format="json")
    taken = api.post("/api/v1/training/jobs/", {**asked, "parameter_set_version": 1}, format="json")

    assert (refused.status_code, taken.status_code) == (400, 201)
    assert "Name the version you reviewed" in str(refused.json())


@pytest.mark.parametrize("params", [{"architecture": "own", "network": PLAIN}, {"architecture": "resnet9"}, {}])
def test_teacher_with_a_network_that_somebody_else_wrote_is_refused(alice, bob, tmp_path, monkeypatch, params):
    """Whatever the parameters in its files say: the program that builds the teacher asks for its architecture."""
    model = RegisteredModel("bob/mine v1", tmp_path, "classify", "w", params, "own")
    models = pretrained_weights.Models(lambda *_asked: [model], lambda _user: [])
    monkeypatch.setattr(pretrained_weights.MODELS, "get", lambda: models)

    with pytest.raises(Exception, match="Another user wrote"):
        pretrained_weights.settled(alice, CARD, {"teacher": "bob/mine v1"})
    assert pretrained_weights.settled(bob, CARD, {"teacher": "bob/mine v1"})["teacher"] == "bob/mine v1"


def test_set_with_a_network_that_somebody_else_wrote_runs_for_nobody_who_has_not_seen_it(alice, bob, api, machine):
    own = {"architecture": "own", "network": PLAIN}
    chosen = parameter_sets.save(user=bob, name="deep", preset="classify", params=own, visibility="public")
    asked = {"parameter_set": chosen.pk}

    def submitted(user, **params):
        data = factory.version(user, f"digits{len(params)}", task="classification")
        api.force_authenticate(user)
        return api.post("/api/v1/training/jobs/", {"version": data.pk, "params": params, **asked}, format="json")

    unseen, seen, his = submitted(alice), submitted(alice, network=PLAIN), submitted(bob)

    assert (unseen.status_code, seen.status_code, his.status_code) == (400, 201, 201)
    assert "Another user wrote the network in deep" in str(unseen.json())
