"""Each kind of place against a small real server: what arrives, and what is said where it does not."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
from datetime import UTC, datetime

import pytest

from aiplatform.lib.errors import DomainError
from inference.delivery.push import http_client, oci, sigv4, targets
from inference.delivery.push.protocol import Destination, Parcel, PushFailed
from inference.delivery.push.protocols import PROTOCOLS
from tests.cases import case_table
from tests.fakes.registry import certificate
from tests.inference.far_servers import Folder, serving
from tests.inference.far_stores import ACCESS_KEY, SECRET_KEY, Bucket, Director, RegistryOfTests

pytestmark = pytest.mark.sockets("models are pushed to a server of the test")
DATA = bytes(range(256)) * 1024  # 256 KiB
HOUSE = ("127.0.0.1",)


def parcel(data=DATA, name="cells_v1_package.zip"):
    pieces = [data[at : at + 10_000] for at in range(0, len(data), 10_000)]
    return Parcel(name, len(data), hashlib.sha256(data).hexdigest(), "cells", 1, lambda: iter(pieces))


def sent(kind, target, what=None):
    """Where it landed, and how many bytes were counted."""
    counted = []
    return PROTOCOLS[kind].send(target, what or parcel(), counted.append), sum(counted)


def refused(kind, target, what=None):
    with pytest.raises(PushFailed) as caught:
        sent(kind, target, what)
    return caught.value.worded.code, caught.value.again


@pytest.mark.parametrize(
    ("method", "path", "headers", "summed", "signature"),
    [
        ("GET", "/test.txt", {"Range": "bytes=0-9"}, sigv4.EMPTY,
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("PUT", "/test%24file.text",
         {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
         "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ("GET", "/?lifecycle", {}, sigv4.EMPTY, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("GET", "/?max-keys=2&prefix=J", {}, sigv4.EMPTY,
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_amazons_own_examples(method, path, headers, summed, signature):
    """https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html"""
    made = sigv4.signed(
        method, f"https://examplebucket.s3.amazonaws.com{path}", headers, payload_sha256=summed,
        access_key="AKIAIOSFODNN7EXAMPLE", secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region="us-east-1",
        moment=datetime(2013, 5, 24, tzinfo=UTC),
    )  # fmt: skip

    assert made["Authorization"].endswith(f"Signature={signature}")


def test_certificate_of_the_house_is_believed_where_its_authority_was_given(tmp_path):
    own, ca = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca, own)
    with serving(Folder, context) as far:
        assert refused("put", Destination(far.address, {}, "right", allowed=HOUSE)) == ("push.certificate", False)
        believed = Destination(far.address, {}, "right", ca=ca.read_text(), allowed=HOUSE)
        assert sent("put", believed) == (f"{far.address}/cells_v1_package.zip", len(DATA))
        far.trouble = "full"
        assert refused("put", believed)[0] in ("push.no_room", "push.silent")  # as it hangs up


# S3
@pytest.fixture
def bucket():
    with serving(Bucket) as server:
        yield server


def in_bucket(far, secret=SECRET_KEY, **options):
    options = {"bucket": "models", "region": "eu-x", "access_key": ACCESS_KEY, "path_style": True} | options
    return Destination(far.address, options, secret, allowed=HOUSE)


def test_object_store_takes_a_package_whose_name_needs_encoding(bucket):
    landed, counted = sent("s3", in_bucket(bucket, prefix="edge/2026"), parcel(name="Zellen (gut)+ä_v1.zip"))

    assert landed == "s3://models/edge/2026/Zellen (gut)+ä_v1.zip"
    assert bucket.files["/models/edge/2026/Zellen (gut)+ä_v1.zip"] == DATA
    assert counted == len(DATA)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("full", ("push.no_room", False)), ("cut", ("push.silent", True)), ("damaged", ("push.checksum", True)),
        ("skewed", ("push.clock", False)), ("region", ("push.region", False)),
    ],
)  # fmt: skip
def test_object_store_that_takes_nothing_says_why(bucket, trouble, message):
    bucket.trouble = trouble

    assert refused("s3", in_bucket(bucket)) == message
    assert not bucket.files


def test_object_store_knows_its_keys_and_its_buckets(bucket):
    assert refused("s3", in_bucket(bucket, secret="another"))[0] == "push.credentials"
    assert refused("s3", in_bucket(bucket, access_key="AKIANOBODY"))[0] == "push.credentials"
    assert refused("s3", in_bucket(bucket, bucket="nothing"))[0] == "push.not_found"
    bucket.trouble = "unlisted"  # may put, may not list
    assert sent("s3", in_bucket(bucket))[1] == len(DATA)
    huge = Parcel("x.zip", 6 * 1024**3, "0" * 64, "cells", 1, lambda: iter([]))
    assert refused("s3", in_bucket(bucket), huge) == ("push.too_large", False)


def test_bucket_in_the_host_name_is_judged_under_that_name(bucket):
    """The name with the bucket as prefix is another one: its address is checked again."""
    target = Destination(
        "http://localhost", {"bucket": "models", "region": "x", "access_key": "k", "path_style": False}, "s"
    )

    assert PROTOCOLS["s3"]._root(target) == "http://models.localhost/"


# OCI
@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(oci, "CHUNK", 100_000)
    with serving(RegistryOfTests) as server:
        yield server


def in_registry(far, secret="right", **options):
    return Destination(f"{far.address}/lab/models", {"username": "alice"} | options, secret, allowed=HOUSE)


def test_registry_takes_an_artifact_in_chunks_and_not_twice(registry):
    landed, counted = sent("oci", in_registry(registry))

    text = registry.files["/v2/lab/models/manifests/cells-v1"]
    manifest = json.loads(text)
    assert landed == f"{registry.address[7:]}/lab/models:cells-v1@sha256:{hashlib.sha256(text).hexdigest()}"
    assert manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert manifest["config"]["mediaType"] == "application/vnd.oci.empty.v1+json"
    assert registry.files[f"/v2/lab/models/blobs/{manifest['config']['digest']}"] == b"{}"
    (layer,) = manifest["layers"]
    assert registry.files[f"/v2/lab/models/blobs/{layer['digest']}"] == DATA
    assert (layer["size"], layer["mediaType"], counted) == (len(DATA), "application/zip", len(DATA))
    assert layer["annotations"] == {"org.opencontainers.image.title": "cells_v1_package.zip"}
    patched = sum(method == "PATCH" for method, _path in registry.asked)
    assert patched == 4  # three of the package, one of the empty config
    sent("oci", in_registry(registry, tag="latest"))
    assert sum(method == "PATCH" for method, _path in registry.asked) == patched
    assert registry.files["/v2/lab/models/manifests/latest"] == text


def test_registry_that_cut_a_chunk_is_asked_where_to_go_on(registry):
    registry.trouble, registry.times = "cut", 2

    sent("oci", in_registry(registry))

    assert registry.files[f"/v2/lab/models/blobs/sha256:{hashlib.sha256(DATA).hexdigest()}"] == DATA


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("full", ("push.no_room", False)), ("damaged", ("push.checksum", True)), ("cut", ("push.silent", True)),
        ("elsewhere", ("push.redirected", False)),
    ],
)  # fmt: skip
def test_registry_that_takes_nothing_says_why(registry, trouble, message):
    registry.trouble = trouble

    assert refused("oci", in_registry(registry)) == message
    assert not any("manifests" in path for path in registry.files)


def test_registry_gets_a_password_only_where_it_is_safe(registry):
    assert refused("oci", in_registry(registry, secret="wrong"))[0] == "push.credentials"
    registry.asked.clear()
    registry.realm = "http://203.0.113.9/token"

    assert refused("oci", in_registry(registry)) == ("push.redirected", False)
    assert not any("token" in path for _method, path in registry.asked)
    registry.realm = "https://10.9.8.7/token"
    assert refused("oci", in_registry(registry)) == ("push.inner", False)


def test_test_of_a_registry_leaves_nothing_there(registry):
    PROTOCOLS["oci"].test(in_registry(registry))

    assert registry.uploads == {}
    assert not registry.files


# FusionDirector
@pytest.fixture
def director():
    with serving(Director) as server:
        yield server


def at_director(far, secret="right"):
    return Destination(far.address, {"username": "alice", "upload_path": "/rest/packages"}, secret, allowed=HOUSE)


def test_director_takes_a_package_in_a_session_that_ends(director):
    landed, counted = sent("fd", at_director(director))

    assert landed == f"{director.address}/rest/packages#/packages/1"
    assert director.files == {"cells_v1_package.zip": DATA}
    assert counted > len(DATA)  # with the form around it
    assert director.sessions == {}
    PROTOCOLS["fd"].test(at_director(director))
    assert director.sessions == {}


@pytest.mark.parametrize(
    ("trouble", "message"),
    [("full", ("push.no_room", False)), ("cut", ("push.silent", True)), ("damaged", ("push.checksum", True))],
)
def test_director_that_takes_nothing_says_why_and_its_session_ends(director, trouble, message):
    director.trouble = trouble

    assert refused("fd", at_director(director)) == message
    assert director.sessions == {}
    assert refused("fd", at_director(director, secret="wrong"))[0] == "push.credentials"


# All of them
def test_address_is_judged_at_each_connection_and_reached_as_it_was_judged(monkeypatch):
    """A name that leads elsewhere a moment later changes nothing; one that leads inside is not connected to."""
    answers = iter([["127.0.0.1"], ["10.0.0.7"], ["93.184.215.14", "127.0.0.1"]])

    original = socket.getaddrinfo

    def resolved(host, port, *args, **more):
        if host != "shelf.example":  # an address that was judged, on its way to be connected to
            return original(host, port, *args, **more)
        return [(2, 1, 6, "", (address, port)) for address in next(answers)]

    with serving(Folder) as far:
        port = far.server_address[1]
        monkeypatch.setattr("aiplatform.lib.outbound.socket.getaddrinfo", resolved)
        target = Destination(f"http://shelf.example:{port}/m", {}, "right", allowed=["127.0.0.0/8"])
        assert http_client.request(target, "HEAD", target.address, http_client.token_header("right")).status == 404
        for _moved in range(2):
            with pytest.raises(PushFailed) as caught:
                http_client.request(Destination(target.address, {}, "right"), "HEAD", target.address)
            assert caught.value.worded.code == "push.inner"
        assert len(far.asked) == 1


def test_secret_goes_out_of_the_house_only_encrypted():
    with pytest.raises(PushFailed) as caught:
        http_client.reach("http://93.184.215.14/x", Destination("http://93.184.215.14/x", {}, "right"))

    assert caught.value.worded.code == "push.insecure"


@case_table(
    ("kind", "address", "options", "field"),
    [
        ("s3", "https://93.184.215.14", {"bucket": "No", "region": "x", "access_key": "k"}, "option_bucket"),
        ("s3", "https://93.184.215.14", {"bucket": "a..b", "region": "x", "access_key": "k"}, "option_bucket"),
        ("s3", "https://93.184.215.14", {"bucket": "models", "region": "a/b", "access_key": "k"}, "option_region"),
        ("s3", "https://93.184.215.14", {"bucket": "models", "region": "x", "access_key": "a/b"}, "option_access_key"),
        ("s3", "https://93.184.215.14/x", {"bucket": "models", "region": "x", "access_key": "k"}, "address"),
        ("s3", "https://93.184.215.14", {"region": "x", "access_key": "k"}, "option_bucket"),
        ("oci", "https://93.184.215.14/Lab", {}, "address"),
        ("oci", "https://93.184.215.14/../x", {}, "address"),
        ("oci", "https://93.184.215.14/lab", {"tag": "a/b"}, "option_tag"),
        ("oci", "https://93.184.215.14/lab", {"username": "a:b"}, "option_username"),
        ("fd", "https://93.184.215.14", {"username": "a", "upload_path": "//x"}, "option_upload_path"),
        ("fd", "https://93.184.215.14/x", {"username": "a", "upload_path": "/x"}, "address"),
        ("ssh", "https://93.184.215.14", {"username": "a"}, "address"),
        ("put", "ssh://93.184.215.14", {}, "address"),
        ("ssh", "ssh://10.0.0.1/x", {"username": "a"}, "address"),
    ],
)
def test_kinds_refuse_what_they_can_never_reach(kind, address, options, field):
    with pytest.raises(DomainError) as caught:
        targets.check(kind=kind, address=address, options=options, secret="s")

    assert field in {refusal.blamed for refusal in caught.value.every}
