// Mouse, pen and fingers on the canvas: pan, pinch, drag steps, draw links, rubber band.
import { svg } from "./dom.js";
import { curve } from "./geometry.js";
import { landings, sameLink, sources, targets } from "./links.js";

const STILL = 4; // pixels a press may move and still be a click

export class Pointers {
  /**
   * @param {import("./stage.js").Stage} stage
   * @param {import("./editor.js").Editor | null} editor  null: looking only
   */
  constructor(stage, editor) {
    this.stage = stage;
    this.editor = editor;
    /** @type {Map<number, {clientX: number, clientY: number}>} */
    this.down = new Map();
    /** @type {(cancelled?: boolean, last?: PointerEvent) => void} */
    this.end = () => {};
    const { root } = stage;
    root.addEventListener("dragstart", (event) => event.preventDefault()); // a native text drag would swallow the pointer
    root.addEventListener("pointerdown", (event) => this.press(event));
    root.addEventListener("pointermove", (event) => this.#pinch(event));
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) root.addEventListener(name, (/** @type {any} */ event) => this.down.delete(event.pointerId));
    root.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  press(event) {
    this.down.set(event.pointerId, { clientX: event.clientX, clientY: event.clientY });
    if (this.down.size > 1) return this.end(true); // a second finger: what the first began is left
    if (event.button > 1) return undefined;
    const target = /** @type {HTMLElement} */ (event.target);
    const card = target.closest(".pl-step");
    const dot = target.closest(".pl-dot");
    const id = card?.dataset.id ?? "";
    if (event.button === 1) return this.#pan(event, "");
    if (this.editor && !this.stage.readOnly && dot) return this.#drawLink(event, id, { port: dot.dataset.port ?? "", side: dot.dataset.side ?? "" });
    if (this.editor && !this.stage.readOnly && card) return this.#drag(event, id);
    return event.shiftKey && this.editor ? this.#band(event) : this.#pan(event, id);
  }

  wheel(event) {
    const zooms = event.ctrlKey || event.metaKey;
    if (!this.editor && !zooms && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return undefined; // the page scrolls
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (!zooms && event.shiftKey && !event.deltaX) return this.stage.pan(-event.deltaY * lines, 0);
    if (!zooms) return this.stage.pan(-event.deltaX * lines, -event.deltaY * lines);
    const box = this.stage.root.getBoundingClientRect();
    return this.stage.zoom(1.0015 ** (-event.deltaY * lines), [event.clientX - box.left, event.clientY - box.top]);
  }

  #pinch(event) {
    const last = this.down.get(event.pointerId);
    if (!last) return;
    const now = { clientX: event.clientX, clientY: event.clientY };
    if (this.down.size === 2) {
      const other = /** @type {{clientX: number, clientY: number}} */ ([...this.down].find(([pointer]) => pointer !== event.pointerId)?.[1]);
      const box = this.stage.root.getBoundingClientRect();
      const apart = (one) => Math.max(1, Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY));
      this.stage.camera.pan((now.clientX - last.clientX) / 2, (now.clientY - last.clientY) / 2);
      this.stage.zoom(apart(now) / apart(last), [(now.clientX + other.clientX) / 2 - box.left, (now.clientY + other.clientY) / 2 - box.top]);
    }
    this.down.set(event.pointerId, now);
  }

  /**
   * Follow one pointer until it is released; `moved` gets the way since the press.
   *
   * A release may never come: let go outside of the window, another program in front, a pen out of reach.
   */
  #follow(event, moved, released) {
    const { root } = this.stage;
    root.setPointerCapture(event.pointerId);
    const stop = new AbortController();
    const { signal } = stop;
    let far = false;
    this.end = (cancelled = false, last = event) => {
      stop.abort();
      this.end = () => {};
      released(last, cancelled, far);
    };
    const mine = (act) => (now) => now.pointerId === event.pointerId && act(now);
    root.addEventListener("pointermove", mine((now) => {
      if (!now.buttons) return this.end(true); // it was let go where nobody saw it
      const [dx, dy] = [now.clientX - event.clientX, now.clientY - event.clientY];
      far ||= Math.hypot(dx, dy) > STILL;
      if (far) moved(dx, dy, now);
    }), { signal });
    root.addEventListener("pointerup", mine((now) => this.end(false, now)), { signal });
    for (const name of ["pointercancel", "lostpointercapture"]) root.addEventListener(name, mine((now) => this.end(true, now)), { signal });
    addEventListener("blur", () => this.end(true), { signal });
    addEventListener("keydown", (now) => {
      if (now.key !== "Escape") return;
      now.stopPropagation();
      this.end(true);
    }, { signal, capture: true });
  }

  #pan(event, id) {
    const { stage } = this;
    const { x, y } = stage.camera;
    stage.root.classList.add("is-panning");
    this.#follow(event, (dx, dy) => stage.pan(x + dx - stage.camera.x, y + dy - stage.camera.y), (last, cancelled, far) => {
      stage.root.classList.remove("is-panning");
      if (cancelled || far) return;
      if (id) {
        stage.focus(id);
        stage.dispatchEvent(new CustomEvent("step", { detail: { step: id } }));
      } else this.#clickNothing(last);
    });
  }

  #clickNothing(event) {
    const { stage } = this;
    stage.choose([]);
    stage.root.focus({ preventScroll: true });
    if (this.editor) this.editor.chooseLink(stage.wires.at(stage.camera.toWorld(event)));
  }

  #drag(event, id) {
    const { stage, editor } = this;
    const { graph, camera } = stage;
    if (event.shiftKey) {
      const chosen = new Set(stage.chosen);
      if (!chosen.delete(id)) chosen.add(id);
      stage.focus(id, { choose: false });
      return stage.choose(chosen);
    }
    if (!stage.chosen.has(id)) stage.choose([id]);
    stage.card(id)?.element.focus({ preventScroll: true });
    const from = [...stage.chosen].map((one) => /** @type {const} */ ([one, graph.places.get(one) ?? [0, 0]]));
    return this.#follow(event, (dx, dy) => {
      editor?.drag(from.map(([one, [x, y]]) => [one, [x + dx / camera.zoom, y + dy / camera.zoom]]));
    }, (_, cancelled, far) => {
      graph.close(); // one drag is one entry of the history
      if (cancelled && far) editor?.undo();
      else if (!far && stage.chosen.size > 1) stage.choose([id]);
    });
  }

  #band(event) {
    const { stage } = this;
    const box = document.createElement("div");
    box.className = "pl-band";
    stage.world.append(box);
    const [x, y] = stage.camera.toWorld(event);
    const already = [...stage.chosen];
    this.#follow(event, (_dx, _dy, now) => {
      const [nx, ny] = stage.camera.toWorld(now);
      const [left, top, right, bottom] = [Math.min(x, nx), Math.min(y, ny), Math.max(x, nx), Math.max(y, ny)];
      Object.assign(box.style, { transform: `translate(${left}px, ${top}px)`, width: `${right - left}px`, height: `${bottom - top}px` });
      const inside = [...stage.graph.steps.keys()].filter((id) => {
        const one = stage.sizes.box([id]);
        return one && one.left < right && one.right > left && one.top < bottom && one.bottom > top;
      });
      stage.choose([...already, ...inside], { quiet: true });
    }, () => {
      box.remove();
      stage.choose(stage.chosen);
    });
  }

  /** From a port to a port; a link that ends here already is picked up at this end. */
  #drawLink(event, id, { port, side }) {
    const { stage, editor } = this;
    const held = side === "in" ? this.#linkAt(id, port) : null;
    const start = held ? { id: held.from, port: held.out, side: "out" } : { id, port, side };
    const here = stage.sizes.end(start.id, start.side, start.port);
    const draft = svg("path", "pl-wire pl-wire-draft");
    stage.wires.element.append(draft);
    const marked = this.#light(start);
    if (held) stage.wires.wires.get(editor?.keyOf(held) ?? "")?.path?.classList.add("is-held");
    this.#follow(event, (_dx, _dy, now) => {
      const point = stage.camera.toWorld(now);
      draft.setAttribute("d", start.side === "out" ? curve(here, point) : curve(point, here));
    }, (last, cancelled, far) => {
      draft.remove();
      for (const element of marked) element.classList.remove("is-fitting");
      for (const element of stage.wires.element.querySelectorAll(".is-held")) element.classList.remove("is-held");
      if (cancelled || !editor) return;
      if (!far) return stage.focus(id);
      const under = /** @type {HTMLElement | null} */ (document.elementFromPoint(last.clientX, last.clientY));
      this.#land(start, held, under, last);
    });
  }

  #linkAt(id, port) {
    const into = this.stage.graph.linksTo(id).filter((link) => (port ? link.sort === "data" && link.into === port : link.sort !== "data"));
    return into.at(-1) ?? null;
  }

  #land(start, held, under, event) {
    const { stage, editor } = this;
    const other = under?.closest(".pl-step")?.dataset.id ?? "";
    if (!editor || !stage.root.contains(under)) return;
    if (!other) {
      if (held) editor.disconnect(held);
      else editor.offer(start, stage.camera.toWorld(event));
      return;
    }
    const port = under?.closest(".pl-dot, .pl-port")?.dataset;
    const link = start.side === "out" ? this.#landing(start, other, port) : this.#origin(start, other, port);
    if (held && sameLink(held, link)) return;
    editor.connect(link, held);
  }

  /** The link from an output into a step: the port it was dropped on, else the first that fits and is free. */
  #landing({ id, port }, to, on) {
    const { graph } = this.stage;
    if (on?.side === "in" && on.port && port) return { from: id, out: port, to, into: on.port, sort: /** @type {const} */ ("data") };
    const [best] = landings(graph, id, port, to).filter(({ sort }) => !on || on.port || sort !== "data");
    if (best) return best;
    const [input] = graph.catalogue.kind(graph.steps.get(to)?.kind ?? "").inputs;
    return { from: id, out: port, to, into: port ? (input?.name ?? "when") : "after", sort: /** @type {import("./links.js").Sort} */ (port ? (input ? "data" : "when") : "after") };
  }

  /** The link into an input from a step, drawn backwards. */
  #origin({ id, port }, from, on) {
    const { graph } = this.stage;
    const outs = graph.catalogue.kind(graph.steps.get(from)?.kind ?? "").outputs.map(({ name }) => name);
    const named = on?.side === "out" && on.port ? on.port : "";
    if (!port) {
      const found = (named ? [named] : outs).flatMap((out) => landings(graph, from, out, id).filter(({ sort }) => sort !== "data"));
      return found[0] ?? { from, out: "", to: id, into: "after", sort: /** @type {const} */ ("after") };
    }
    const fit = named || sources(graph, id, port, "data").find((link) => link.from === from)?.out || outs[0] || "";
    return { from, out: fit, to: id, into: port, sort: /** @type {const} */ ("data") };
  }

  /** Light up the ports that would fit, of the steps that are drawn. */
  #light({ id, port, side }) {
    const { stage } = this;
    const found = side === "out" ? targets(stage.graph, id, port) : port ? sources(stage.graph, id, port, "data") : [];
    const marked = [];
    for (const link of found) {
      const other = stage.cards.get(side === "out" ? link.to : link.from);
      if (!other || other.element.hidden) continue;
      const name = side === "in" ? link.out : link.sort === "data" ? link.into : "";
      const dot = other.element.querySelector(`.pl-dot[data-side="${side === "out" ? "in" : "out"}"][data-port="${name}"]`);
      if (!dot) continue;
      dot.classList.add("is-fitting");
      marked.push(dot);
    }
    return marked;
  }
}
