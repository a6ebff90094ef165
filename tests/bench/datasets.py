"""Data in and out, measured: python -m tests.bench.datasets [--quick] [--only upload|small|fashion|gallery …].

Upload through a real server (tus, one client, loopback) with its memory; check and import of many small images,
made for it (28 × 28 PNG, 320 × 240 JPEG of 12 kB) and Fashion-MNIST's where they are there; gallery pages of a
version with many images and ten shapes on each. Everything happens in a folder of its own, which is removed.
Times of this process and those it starts are given as CPU seconds too: they stay firm on a busy machine.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests import public_data
from tests.running import free_port

ROOT = Path(__file__).parents[2]


def prepare(folder: Path) -> None:
    """Django on an empty database below `folder`, no broker."""
    os.environ |= {"AIP_BOOTSTRAP": "0", "AIP_DATA_ROOT": str(folder), "AIP_MIN_FREE_BYTES": "1"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "aiplatform.settings"
    os.environ["AIP_LOG_LEVEL"] = "ERROR"
    import django

    django.setup()
    from celery import current_app

    from aiplatform.cli import schema

    current_app.send_task = lambda *_args, **_kwargs: None
    schema.bring_up_to_date(lambda _line: None)


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def upload(user: Any, folder: Path, size_mib: int) -> list[tuple[str, str]]:
    """MB/s of one upload, with and without checksums, and what it costs the server in memory."""
    import requests
    from tusclient.client import TusClient

    from accounts.services import tokens
    from aiplatform.cli import web
    from datasets.models import Upload

    token = tokens.issue(user=user, name="bench")[1]
    file = folder / "upload.bin"
    with file.open("wb") as out:
        for _ in range(size_mib):
            out.write(os.urandom(1 << 20))
    port = free_port()
    server = subprocess.Popen(web.command("127.0.0.1", port), cwd=ROOT, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    rows = []
    try:
        while True:  # as long as it takes to start on a busy machine
            try:
                requests.get(f"{url}/healthz", timeout=2)
                break
            except requests.RequestException:
                assert server.poll() is None, "the web server ended"
                time.sleep(0.2)
        worker = server.pid
        client = TusClient(f"{url}/uploads/tus/", headers={"Authorization": f"Bearer {token}"})
        for checked in (False, True):
            before = peak_mib(worker)
            began = time.perf_counter()
            client.uploader(str(file), chunk_size=64 << 20, upload_checksum=checked).upload()
            seconds = time.perf_counter() - began
            grown = peak_mib(worker) - before
            name = f"upload of {size_mib} MiB{', sha1 of each piece' if checked else ''}"
            rows.append((name, f"{size_mib / seconds:,.0f} MiB/s, server memory +{grown:,.0f} MiB"))
        same = all(upload.offset == size_mib << 20 for upload in Upload.objects.all())
        rows.append(("uploads whole", str(same)))
    finally:
        os.killpg(server.pid, 9)
        server.wait()
    return rows


def cpu_s() -> float:
    """CPU seconds of this process and of those it started and waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def small_images(archive: Path, count: int, kind: str) -> Path:
    """A zip of `count` images, no two the same bytes, in folders of ten classes: "PNG" 28 × 28 or "JPEG" 320 × 240."""
    random = np.random.default_rng(0)
    pictures = []
    for _ in range(100):
        if kind == "PNG":
            image = Image.fromarray(random.integers(0, 255, (7, 7), np.uint8)).resize((28, 28))
        else:
            coarse = Image.fromarray(random.integers(0, 255, (12, 16, 3), np.uint8)).resize((320, 240))
            image = Image.fromarray(np.asarray(coarse) // 2 + random.integers(0, 24, (240, 320, 3), np.uint8))
        out = io.BytesIO()
        image.save(out, kind)
        pictures.append(out.getvalue())
    with zipfile.ZipFile(archive, "w") as into:
        for n in range(count):
            into.writestr(
                f"{'test' if n % 6 == 0 else 'train'}/{n % 10}/{n}.{kind.lower()}", _marked(pictures[n % 100], n)
            )
    return archive


def _marked(picture: bytes, number: int) -> bytes:
    """The same picture with a number among its bytes: behind a PNG's end, in a JPEG's comment."""
    mark = b"%08d" % number
    return picture + mark if picture[:4] == b"\x89PNG" else picture[:2] + b"\xff\xfe\x00\x0a" + mark + picture[2:]


def import_zip(user: Any, archive: Path) -> list[tuple[str, str]]:
    """Seconds from a complete upload to the report, and from agreeing to a visible version."""
    from datasets.models import Dataset, Import
    from datasets.services import imports, uploads

    dataset = Dataset.objects.create(owner=user, name=archive.stem, intro="Many small images")
    sent = uploads.create(owner=user, length=archive.stat().st_size, metadata={"filename": archive.name})
    shutil.copyfile(archive, sent.file)
    uploads.arrived(sent)
    row = imports.start(dataset=dataset, by=user, annotated=True, upload_id=sent.pk)
    told = []
    for what, wanted in (("check", Import.State.REPORTED), ("make the version", Import.State.DONE)):
        began, cpu = time.perf_counter(), cpu_s()
        imports.run(row.pk)
        spent, used = time.perf_counter() - began, cpu_s() - cpu
        row.refresh_from_db()
        assert row.state == wanted, (row.state, row.error)
        count = row.report["images"]
        told.append((f"{archive.name}, {count:,} images: {what}", f"{spent:.1f} s, {used:.1f} CPU-s"))
        if wanted == Import.State.REPORTED:
            imports.commit(row, by=user)
    return told


def gallery(user: Any, images: int) -> list[tuple[str, str]]:
    """Server time of gallery pages at the beginning, middle and end, with every filter; one image has no shape."""
    from django.conf import settings
    from django.test import Client

    from datasets.formats.neutral import box
    from datasets.formats.writer import StoredImage
    from datasets.models import Dataset
    from datasets.services import versions

    settings.ALLOWED_HOSTS.append("testserver")
    dataset = Dataset.objects.create(owner=user, name="many", intro="Many images")

    def rows() -> Any:
        for n in range(images):
            shapes = [box(1 + s % 5, s * 9, s * 5, 20, 20, id=n * 10 + s + 1).as_dict() for s in range(10 if n else 0)]
            split = ("train", "train", "val", "test", "")[n % 5]
            yield StoredImage(f"{n // 1000}/{n}.jpg", "0" * 64, 640, 480, 100_000, n + 1, split, None, shapes)

    classes = [{"id": n, "name": f"class {n}", "supercategory": ""} for n in range(1, 6)]
    began = time.perf_counter()
    version = versions.publish(
        versions.allocate(dataset, by=user),
        rows,
        task="detection",
        classes=classes,
        place_images=lambda target: target.mkdir(),
    )
    wrote = time.perf_counter() - began
    client = Client()
    client.force_login(user)
    keys = list(version.assets.order_by("pk").values_list("pk", flat=True))
    told = [(f"write a version of {images:,} images, {images * 10:,} shapes", f"{wrote:.1f} s")]
    filters: list[dict[str, str]] = [
        {}, {"split": "val"}, {"class": "3"}, {"split": "train", "class": "3"}, {"annotated": "yes"},
        {"annotated": "no"}, {"q": "77"}, {"q": "nowhere"},
    ]  # fmt: skip
    slowest = 0.0
    for name, at in (("first", 0), ("middle", images // 2), ("last", images - 61)):
        for query in filters:
            where = query | {"next": f"{keys[at]}~{keys[at]}"}
            times, costs = [], []
            for _ in range(5):
                began, cpu = time.perf_counter(), time.process_time()
                answer = client.get(f"/datasets/{dataset.pk}/", where)
                times.append((time.perf_counter() - began) * 1000)
                costs.append((time.process_time() - cpu) * 1000)
                assert answer.status_code == 200
            words = f"gallery, {name} page{''.join(f', {k} {v}' for k, v in query.items())}"
            told.append((words, f"{statistics.median(times):.0f} ms, {statistics.median(costs):.0f} CPU-ms"))
            slowest = max(slowest, statistics.median(times))
    told.append(("gallery, slowest page of these", f"{slowest:.0f} ms"))
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=("upload", "small", "fashion", "gallery"), default=())
    parser.add_argument("--quick", action="store_true", help="small sizes, half a minute in all")
    parser.add_argument("--upload", type=int, metavar="MiB")
    parser.add_argument("--small", type=int, metavar="IMAGES", help="small images of each kind to check")
    parser.add_argument("--gallery", type=int, metavar="IMAGES")
    asked = parser.parse_args()
    size_mib = asked.upload or (64 if asked.quick else 1024)
    small, images = asked.small or (3000 if asked.quick else 60_000), asked.gallery or (2000 if asked.quick else 20_000)
    wanted = asked.only or (
        ("upload", "small", "gallery") if asked.quick else ("upload", "small", "fashion", "gallery")
    )
    folder = Path(tempfile.mkdtemp(prefix="aip-bench-"))
    try:
        prepare(folder)
        from accounts.access.permissions import USER
        from accounts.models import Role, User

        user = User.objects.create_user(username="bench", password="correct horse battery")
        user.roles.add(Role.objects.get(name=USER))
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, SQLite, {folder}")
        rows = []
        if "upload" in wanted:
            rows += upload(user, folder, size_mib)
        if "small" in wanted:
            for kind in ("PNG", "JPEG"):
                rows += import_zip(user, small_images(folder / f"{kind.lower()}.zip", small, kind))
        if "fashion" in wanted:
            if fashion := public_data.find("fashion-mnist.zip"):
                rows += import_zip(user, fashion)
            else:
                print("Fashion-MNIST is not on this machine; its import was not measured.")
        if "gallery" in wanted:
            rows += gallery(user, images)
        width = max(len(name) for name, _ in rows)
        for name, figure in rows:
            print(f"{name:<{width}}  {figure}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
