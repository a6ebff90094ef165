"""Object stores that speak Amazon's S3: AWS, MinIO, Ceph, OBS and others. One PUT for each push, up to 5 GiB.

The sum of the body is signed, so the store itself refuses what came damaged.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib import outbound
from aiplatform.lib.errors import Invalid
from inference.delivery.push import http_client, sigv4
from inference.delivery.push.protocol import Destination, OnSent, Option, Parcel, Tested, failed

MAX_UPLOAD_BYTES = 5 * 1024**3  # bytes of a single PUT
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
REGION = re.compile(r"[a-zA-Z0-9-]{1,50}\Z")
CODE = re.compile(rb"<Code>(\w{1,60})</Code>")
BAD_CREDENTIALS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken")
DAMAGED = ("XAmzContentSHA256Mismatch", "BadDigest", "XAmzContentChecksumMismatch", "IncompleteBody")
ELSEWHERE = ("PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect")


class S3:
    code: ClassVar[str] = "s3"
    label: ClassVar[Any] = _("S3 bucket")
    ports: ClassVar[Mapping[str, int]] = outbound.WEB
    address_help: ClassVar[Any] = _(
        "The endpoint: https://s3.eu-central-1.amazonaws.com, https://minio.example.org:9000"
    )
    options: ClassVar[tuple[Option, ...]] = (
        Option("bucket", _("Bucket"), required=True),
        Option("prefix", _("Folder in the bucket"), _("models/edge; default: top level.")),
        Option("region", _("Region"), _("Self-hosted stores usually accept us-east-1."), required=True,
               default="us-east-1"),
        Option("access_key", _("Access key"), required=True),
        Option("path_style", _("Path-style addressing"), _("Off: the bucket is part of the host name, as preferred "
                                                           "by AWS."),
               default=True, yes_no=True),
    )  # fmt: skip
    secret_label: ClassVar[Any] = _("Secret key")
    secret_required: ClassVar[bool] = True
    has_ca: ClassVar[bool] = True

    def check(self, destination: Destination) -> None:
        """Refuse an invalid bucket, region, endpoint or access key.

        Raises:
            Invalid.
        """
        if not BUCKET.match(destination.option("bucket")) or ".." in destination.option("bucket"):
            raise Invalid(_("Invalid bucket name."), field="option_bucket")
        if not REGION.match(destination.option("region")):
            raise Invalid(_("Invalid region name."), field="option_region")
        if urlsplit(destination.address).path.strip("/"):
            raise Invalid(_("The endpoint must not have a path; the bucket is an option."), field="address")
        if set(destination.option("access_key")) & set("/, ="):
            raise Invalid(_("Invalid access key."), field="option_access_key")

    def test(self, destination: Destination) -> Tested:
        """List zero objects of the bucket. A key that may put but not list is distinguished from an unknown key."""
        url = f"{self._root(destination)}?list-type=2&max-keys=0"
        response = self._request(destination, "GET", url)
        if response.status != 403 or self._code(response) != "AccessDenied":
            self._check_response(response, destination)
        return Tested()

    def send(self, destination: Destination, parcel: Parcel, on_sent: OnSent) -> str:
        if parcel.size > MAX_UPLOAD_BYTES:
            raise failed("too_large", host=http_client.host_of(destination.address))
        self.test(destination)
        folder = destination.option("prefix").strip("/")
        key = f"{folder}/{parcel.name}" if folder else parcel.name
        url = self._root(destination) + quote(key, safe="/-_.~")
        checksum = base64.b64encode(bytes.fromhex(parcel.sha256)).decode()
        headers = {"Content-Type": parcel.media_type, "x-amz-checksum-sha256": checksum}
        self._check_response(self._request(destination, "PUT", url, headers, parcel, on_sent), destination)
        response = self._request(destination, "HEAD", url, {"x-amz-checksum-mode": "ENABLED"})
        if response.status == 200:  # keys that may only put get no response
            reported_checksum = response.headers.get("x-amz-checksum-sha256", checksum)
            if response.headers.get("content-length") != str(parcel.size) or reported_checksum != checksum:
                raise failed("checksum", host=http_client.host_of(destination.address), again=True)
        return f"s3://{destination.option('bucket')}/{key}"

    @staticmethod
    def _root(destination: Destination) -> str:
        """Return the address of the bucket with a trailing slash."""
        parts, bucket = urlsplit(destination.address), destination.option("bucket")
        if destination.options.get("path_style", True):
            return f"{parts.scheme}://{parts.netloc}/{bucket}/"
        return f"{parts.scheme}://{bucket}.{parts.netloc}/"

    @staticmethod
    def _request(
        destination: Destination, method: str, url: str, headers: dict[str, str] | None = None,
        parcel: Parcel | None = None, on_sent: OnSent = lambda _count: None,
    ) -> http_client.Response:  # fmt: skip
        signed_headers = sigv4.signed(
            method, url, headers or {}, payload_sha256=parcel.sha256 if parcel else sigv4.EMPTY,
            access_key=destination.option("access_key"), secret_key=destination.secret,
            region=destination.option("region"), moment=now(),
        )  # fmt: skip
        body, length = (http_client.body_of(parcel), parcel.size) if parcel else (b"", 0)
        return http_client.request(destination, method, url, signed_headers, body=body, length=length, on_sent=on_sent)

    @staticmethod
    def _code(response: http_client.Response) -> str:
        """Return the error code of the store; "" without one."""
        match = CODE.search(response.body)
        return match.group(1).decode() if match else ""

    def _check_response(self, response: http_client.Response, destination: Destination) -> None:
        host, code = http_client.host_of(destination.address), self._code(response)
        if response.is_good:
            return
        if code in BAD_CREDENTIALS:
            raise failed("credentials", host=host, status=response.status)
        if code in DAMAGED:
            raise failed("checksum", host=host, again=True)
        if code == "RequestTimeTooSkewed":
            raise failed("clock", host=host)
        if code in ELSEWHERE:
            raise failed("region", host=host)
        if code == "EntityTooLarge":
            raise failed("too_large", host=host)
        if "Quota" in code or "Full" in code:
            raise failed("no_room", host=host)
        if code and not http_client.is_explained_status(response.status):
            raise failed(
                "answered", host=host, status=response.status, error=code, again=response.status in http_client.LATER
            )
        http_client.check_response(response, destination)
