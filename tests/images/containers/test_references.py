"""Names of container images: what people write, and what is no such name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiplatform.lib.errors import Invalid
from tests.cases import case_table
from workers.images.containers.reference import check_host, parse

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("pytorch/pytorch:2.1.0", "docker.io/pytorch/pytorch:2.1.0"),
        ("https://index.docker.io/pytorch/pytorch", "docker.io/pytorch/pytorch:latest"),
        ("registry.example.org:5000/lab/torch:2", "registry.example.org:5000/lab/torch:2"),
        ("Registry.Example.org/lab/torch", "registry.example.org/lab/torch:latest"),
        (f"ghcr.io/lab/x@{DIGEST}", f"ghcr.io/lab/x@{DIGEST}"),
        (f" localhost/x:1@{DIGEST} ", f"localhost/x:1@{DIGEST}"),
    ],
)
def test_reference_is_filled_in_as_docker_does(text, whole):
    assert str(parse(text)) == whole
    assert str(parse(whole)) == whole


@case_table(
    "text",
    [
        "", "/", "Ubuntu", "a b", "x:", "x@", "x@sha256:12", "x:-1", "../etc/passwd", "a//b", "a/../b", "x;id",
        "x\nFROM y",
        "--privileged", "-v/:/host", "$(id)", "x?fromSrc=http://inner/", "x#y",
        "u:p@registry.example.org/x",
        "registry.example.org:65536/x",
        "registry.example.org:99999999/x", "[::1]:5000/x", "registry.example.org/x%2f..", "http://registry.example.org/x",
        "ftp://registry.example.org/x", "file:///etc/passwd", "localhost/aip-images:" + "0" * 64, "x" * 400,
        "sha256:" + "0" * 64 + "/",
        "ü/x", "a/b\0c",
    ],
)  # fmt: skip
def test_what_is_no_reference_is_refused(text):
    with pytest.raises(Invalid) as caught:
        parse(text)

    assert caught.value.blamed == "reference"


@given(st.text(max_size=80))
def test_whatever_passes_holds_no_sign_with_a_meaning_elsewhere(text):
    try:
        found = str(parse(text))
    except Invalid:
        return
    assert not set(found) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@")
    assert ".." not in found.split("/")


def test_host_of_a_registry_is_a_name_without_a_way():
    assert check_host("https://Registry.example.org:5000/") == "registry.example.org:5000"
    assert check_host("hub.docker.com") == "docker.io"
    for text in ("http://x", "x/y", "", "a@b", "a b", "x?y", "registry.example.org:99999"):
        with pytest.raises(Invalid):
            check_host(text)
