"""What a browser with an empty cache requests for a page, and how much of it comes over the line."""

from __future__ import annotations

from django.urls import reverse

from tests.factories import curves, datasets, work
from tests.factories import training as trainings

LISTS = {"requests": 12, "bytes": 64_000}
ROWS = 20


def weight(page, address: str) -> tuple[list[str], int]:
    """Addresses that a page requests until it is quiet, and the bytes of all answers, heads included."""
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.setCacheDisabled", {"cacheDisabled": True})
    urls: list[str] = []
    sizes: list[float] = []
    network.on("Network.requestWillBeSent", lambda event: urls.append(event["request"]["url"]))
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    network.detach()
    return [url for url in urls if url.startswith("http")], int(sum(sizes))


def test_lists_take_few_requests_and_little_of_the_line(open_as, olga, alice):
    node = work.node("node1", gpus=2, simulated=True)
    for number in range(ROWS):
        datasets.version(datasets.dataset(olga, f"set{number}"))
    data = datasets.version(datasets.dataset(olga, "shared"))
    for number in range(ROWS):
        run = trainings.training(olga, name=f"training{number}", state="succeeded", data=data)
        curves.report(run.job.attempts.get(), "train/loss", ((step, 1 / (1 + step)) for step in range(200)))
    page = open_as(olga)
    page.goto("/about/")
    addresses = ["/datasets/", "/training/", "/experiments/", "/cluster/", f"/cluster/nodes/{node.pk}/", "/queue/"]

    weights = {address: weight(page, address) for address in addresses}

    print({address: (len(urls), size) for address, (urls, size) in weights.items()})
    over = {
        address: (len(urls), size, urls)
        for address, (urls, size) in weights.items()
        if len(urls) > LISTS["requests"] or size > LISTS["bytes"]
    }
    assert over == {}
    covers = [url for url in weights["/datasets/"][0] if "/datasets/covers/" in url]
    assert len(covers) == 1
    assert not any("/thumbnail/" in url for url in weights["/datasets/"][0])


def test_covers_of_a_list_are_drawn(open_as, olga):
    datasets.version(datasets.dataset(olga, "set"))
    page = open_as(olga)

    page.goto(reverse("datasets:list"))
    image = page.locator(".face-image image")
    image.wait_for()
    page.wait_for_load_state("networkidle")

    box = image.bounding_box()
    assert (round(box["width"]), round(box["height"])) == (56, 42)
    drawn = page.evaluate(
        """async () => {
          const found = new Image();
          found.src = document.querySelector(".face-image image").getAttribute("href");
          await found.decode();
          return [found.naturalWidth, found.naturalHeight];
        }"""
    )
    assert drawn == [112, 84]
