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
from inference.delivery.push.protocol import Came, Option, Parcel, Place, Tested, failed

MAX_UPLOAD_BYTES = 5 * 1024**3  # bytes of a single PUT
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
REGION = re.compile(r"[a-zA-Z0-9-]{1,50}\Z")
CODE = re.compile(rb"<Code>(\w{1,60})</Code>")
BAD_CREDENTIALS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken")
DAMAGED = ("XAmzContentSHA256Mismatch", "BadDigest", "XAmzContentChecksumMismatch", "IncompleteBody")
ELSEWHERE = ("PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect")


class S3:
    code: ClassVar[str] = "s3"
    words: ClassVar[Any] = _("S3 bucket")
    ports: ClassVar[Mapping[str, int]] = outbound.WEB
    address_help: ClassVar[Any] = _(
        "The endpoint: https://s3.eu-central-1.amazonaws.com, https://minio.example.org:9000"
    )
    options: ClassVar[tuple[Option, ...]] = (
        Option("bucket", _("Bucket"), required=True),
        Option("prefix", _("Folder in the bucket"), _("models/edge; empty: at the top.")),
        Option("region", _("Region"), _("Stores of the house mostly take us-east-1."), required=True,
               default="us-east-1"),
        Option("access_key", _("Access key"), required=True),
        Option("path_style", _("Bucket in the path"), _("Off: the bucket is part of the host name, as AWS prefers."),
               default=True, yes_no=True),
    )  # fmt: skip
    secret_words: ClassVar[Any] = _("Secret key")
    secret_required: ClassVar[bool] = True
    has_ca: ClassVar[bool] = True

    def check(self, place: Place) -> None:
        """Refuse what is no bucket and no region.

        Raises:
            Invalid.
        """
        if not BUCKET.match(place.option("bucket")) or ".." in place.option("bucket"):
            raise Invalid(_("This is no name of a bucket."), field="option_bucket")
        if not REGION.match(place.option("region")):
            raise Invalid(_("This is no name of a region."), field="option_region")
        if urlsplit(place.address).path.strip("/"):
            raise Invalid(_("The endpoint has no path; the bucket is an option."), field="address")
        if set(place.option("access_key")) & set("/, ="):
            raise Invalid(_("This is no access key."), field="option_access_key")

    def test(self, place: Place) -> Tested:
        """List nothing of the bucket. Who may put but not list is told apart from who is not known."""
        url = f"{self._root(place)}?list-type=2&max-keys=0"
        answer = self._ask(place, "GET", url)
        if answer.status != 403 or self._code(answer) != "AccessDenied":
            self._judge(answer, place)
        return Tested()

    def send(self, place: Place, parcel: Parcel, came: Came) -> str:
        if parcel.size > MAX_UPLOAD_BYTES:
            raise failed("too_large", host=http_client.host_of(place.address))
        self.test(place)
        folder = place.option("prefix").strip("/")
        key = f"{folder}/{parcel.name}" if folder else parcel.name
        url = self._root(place) + quote(key, safe="/-_.~")
        checksum = base64.b64encode(bytes.fromhex(parcel.sha256)).decode()
        headers = {"Content-Type": parcel.media_type, "x-amz-checksum-sha256": checksum}
        self._judge(self._ask(place, "PUT", url, headers, parcel, came), place)
        there = self._ask(place, "HEAD", url, {"x-amz-checksum-mode": "ENABLED"})
        if there.status == 200:  # who may only put is not told
            told = there.headers.get("x-amz-checksum-sha256", checksum)
            if there.headers.get("content-length") != str(parcel.size) or told != checksum:
                raise failed("checksum", host=http_client.host_of(place.address), again=True)
        return f"s3://{place.option('bucket')}/{key}"

    @staticmethod
    def _root(place: Place) -> str:
        """The address of the bucket, with a slash at its end."""
        parts, bucket = urlsplit(place.address), place.option("bucket")
        if place.options.get("path_style", True):
            return f"{parts.scheme}://{parts.netloc}/{bucket}/"
        return f"{parts.scheme}://{bucket}.{parts.netloc}/"

    @staticmethod
    def _ask(
        place: Place, method: str, url: str, headers: dict[str, str] | None = None, parcel: Parcel | None = None,
        came: Came = lambda _count: None,
    ) -> http_client.Answer:  # fmt: skip
        proven = sigv4.signed(
            method, url, headers or {}, payload_sha256=parcel.sha256 if parcel else sigv4.EMPTY,
            access_key=place.option("access_key"), secret_key=place.secret, region=place.option("region"), moment=now(),
        )  # fmt: skip
        body, length = (http_client.body_of(parcel), parcel.size) if parcel else (b"", 0)
        return http_client.ask(place, method, url, proven, body=body, length=length, came=came)

    @staticmethod
    def _code(answer: http_client.Answer) -> str:
        """The store's own word for what is wrong; "" where it says none."""
        found = CODE.search(answer.body)
        return found.group(1).decode() if found else ""

    def _judge(self, answer: http_client.Answer, place: Place) -> None:
        host, code = http_client.host_of(place.address), self._code(answer)
        if answer.is_good:
            return
        if code in BAD_CREDENTIALS:
            raise failed("credentials", host=host, status=answer.status)
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
        if code and not http_client.is_told_by_status(answer.status):
            raise failed(
                "answered", host=host, status=answer.status, error=code, again=answer.status in http_client.LATER
            )
        http_client.judge(answer, place)
