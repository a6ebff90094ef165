"""Engine compatibility: what an image needs of machines, and which of them have it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from aiplatform.lib import wording
from workers.core import machine_needs
from workers.core.machine_needs import NOTHING, Needs
from workers.core.models import Device, Job, Node
from workers.core.states import JobState
from workers.images.models import Engine, Image
from workers.planning import planner_input

SHOWN = 3  # machines that the sentence names


@dataclass(frozen=True)
class Machine:
    """A node compared with the needs of an image. `why` is empty where programs of the image run."""

    name: str
    processor: str
    driver: str
    cards: str
    why: str

    @property
    def fits(self) -> bool:
        return not self.why


def needs_of(image: Image | None) -> Needs:
    """What programs of an image need, as its builder noted; nothing while it is not built."""
    engine = image.engine if image else None
    return machine_needs.of_facts(engine.facts) if engine else NOTHING


def note(engine: Engine) -> None:
    """Let jobs that wait for an engine know what it needs, now that it is built."""
    needs = machine_needs.of_facts(engine.facts).as_row()
    Job.objects.filter(state=JobState.QUEUED, image_use__image__engine=engine).update(needs=needs)


def machines(image: Image, *, cards: bool = True) -> list[Machine]:
    """Every machine, and why programs of the image do not run on it.

    Args:
        cards: whether they are to use its cards; machines without any are then judged by their processor alone.
    """
    needs = needs_of(image)
    rows = Node.objects.exclude(state__in=(Node.State.REMOVED, Node.State.LOST)).prefetch_related("devices")
    return [_machine(node, needs, cards=cards) for node in rows.order_by("name")]


def why_not_here(image: Image, name: str, *, cards: bool) -> wording.Message | None:
    """Why programs of an image do not run on the node of this name; None where they do, or it is unknown."""
    facts, needs = Node.objects.filter(name=name).values_list("facts", flat=True).first() or {}, needs_of(image)
    driver, processor = planner_input.machine_of(facts)
    if not machine_needs.fits(needs, driver=driver, arch=processor, cards=False):
        return wording.message("image.other_processor", node=name, there=processor, needed=needs.arch)
    if not machine_needs.fits(needs, driver=driver, arch=processor, cards=cards):
        return wording.message("image.old_driver", node=name, driver=driver, cuda=needs.cuda_words)
    return None


def sentence(image: Image, *, cards: bool) -> str:
    """ "Fits 2 of 3 machines; gpu-03: driver 470 is too old for CUDA 12.4."; "" where there is no machine."""
    rows = machines(image, cards=cards)
    bad = [machine for machine in rows if not machine.fits]
    if not rows:
        return ""
    text = ngettext("Fits %(good)s of %(all)s node", "Fits %(good)s of %(all)s nodes", len(rows))
    text = text % {"good": len(rows) - len(bad), "all": len(rows)}
    if not bad:
        return _("%(sentence)s.") % {"sentence": text}
    named = "; ".join(_named(bad))
    return _("%(sentence)s; %(why)s.") % {"sentence": text, "why": named}


def _named(machines: Iterable[Machine]) -> list[str]:
    rows = list(machines)
    more = len(rows) - SHOWN
    named = [_("%(machine)s: %(why)s") % {"machine": machine.name, "why": machine.why} for machine in rows[:SHOWN]]
    return [*named, ngettext("and %(n)s more", "and %(n)s more", more) % {"n": more}] if more > 0 else named


def _machine(node: Node, needs: Needs, *, cards: bool) -> Machine:
    driver, processor = planner_input.machine_of(node.facts)
    own = [
        device
        for device in node.devices.all()
        if device.kind == Device.Kind.GPU and device.health != Device.Health.GONE
    ]
    why = ""
    if not machine_needs.fits(needs, driver=driver, arch=processor, cards=False):
        why = _("the CPU is %(there)s, the image is for %(needed)s") % {"there": processor, "needed": needs.arch}
    elif cards and own and not machine_needs.fits(needs, driver=driver, arch=processor, cards=True):
        why = _("driver %(driver)s is too old for CUDA %(cuda)s") % {"driver": driver, "cuda": needs.cuda_words}
    return Machine(
        name=node.name,
        processor=processor,
        driver=str(node.facts.get("driver") or ""),
        cards=", ".join(dict.fromkeys(_(device.model) for device in own if device.model)),
        why=why,
    )
