"""The choice of an image in forms: by where its programs come from, with the framework that it has."""

from __future__ import annotations

import pytest

from training.commands.forms import CommandForm
from training.environments.forms import EnvironmentForm
from workers.images.fields import SOURCES, source_of
from workers.images.models import Engine, Image


@pytest.fixture
def each(alice):
    """An image of every source."""
    facts = {"python": "3.11.7", "torch": "2.13.0", "cuda": "13.0"}
    engine = Engine.objects.create(digest="a" * 64, state="ready", facts=facts)
    own = {"owner": alice, "visibility": "private"}
    Image.objects.create(kind="saved", name="mine", engine=engine, state="ready", **own)
    Image.objects.create(kind="engine", name="metrics", engine=engine, **own)
    for source in Image.Source.values:
        Image.objects.create(
            kind="container", name=source, source=source, state="ready", reference=f"{source}/image", facts={}, **own
        )
    Image.objects.filter(source="saved").update(name="kept")


def groups(form):
    return {str(name): [str(label) for _value, label in rows] for name, rows in form.fields["image"].choices if name}


def test_images_are_grouped_by_where_they_come_from(each, alice, cluster):
    found = groups(CommandForm(user=alice))

    assert list(found) == [str(label) for label in SOURCES.values()]
    assert found["Engines built from packages"] == ["metrics of Alice – Python 3.11.7, torch 2.13.0, CUDA 13.0"]
    assert found["Saved workspaces"] == ["kept of Alice", "mine of Alice – Python 3.11.7, torch 2.13.0, CUDA 13.0"]
    assert found["Containers: Docker Hub"] == ["hub of Alice"]
    assert {name.partition(" ")[0] for name in found["Platform"]} == {"jupyter", "platform", "tensorboard"}


def test_environments_are_offered_every_group_but_the_platforms_own(each, alice, cluster):
    offered = groups(EnvironmentForm(user=alice))

    assert list(offered) == [str(label) for key, label in SOURCES.items() if key != "preset"]


def test_image_that_is_chosen_stands_in_its_group_on_the_page(each, alice, as_alice, cluster):
    mine = Image.objects.get(name="mine")

    page = as_alice.get("/commands/new/").content.decode()
    form = CommandForm({"command": "true", "image": str(mine.pk)}, user=alice)
    form.is_valid()

    assert '<optgroup label="Saved workspaces">' in page
    assert form.cleaned_data["image"] == mine


def test_every_kind_and_source_of_an_image_has_a_group(alice):
    kinds = [Image(kind=kind) for kind in ("engine", "saved")]
    sources = [source for source in Image.Source.values if source != Image.Source.SAVED]
    containers = [Image(kind="container", source=source) for source in sources]

    assert [source_of(image) for image in (Image(built_in="jupyter"), *kinds, *containers)] == list(map(str, SOURCES))
    assert source_of(Image(kind="container", source="saved")) == "saved"
