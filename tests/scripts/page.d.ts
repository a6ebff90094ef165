// What our pages have beyond the types of the browser.

/** Charts: loaded by base/plots.js with the first chart, or by a template. */
declare class uPlot {
  constructor(options: object, data: unknown[], place: HTMLElement);
  static join(tables: unknown[][]): unknown[];
  static readonly paths: { stepped(how: { align: number }): unknown };
  readonly root: HTMLElement;
  readonly over: HTMLElement;
  readonly width: number;
  readonly height: number;
  readonly ctx: CanvasRenderingContext2D;
  readonly bbox: { left: number; top: number; width: number; height: number };
  readonly cursor: { idx: number | null; left?: number };
  readonly data: [number[], ...(number | null)[][]];
  readonly series: { label?: unknown; stroke?: unknown; width?: number; dash?: number[]; show?: boolean }[];
  readonly bands: { series: [number, number]; fill?: unknown }[] | null;
  readonly scales: Record<string, { min: number; max: number; distr?: number }>;
  setData(data: unknown[]): void;
  setSize(size: { width: number; height: number }): void;
  redraw(rebuildPaths?: boolean): void;
  setCursor(place: { left: number; top: number }): void;
  setSeries(series: number | null, how: { focus?: boolean; show?: boolean }): void;
  valToPos(value: number, scale: string, canvasPixels?: boolean): number;
  destroy(): void;
}

declare const htmx: {
  ajax(method: string, address: string, options: { target: string; swap: string }): Promise<void>;
  trigger(element: Element, event: string): void;
  process(element: Element): void;
};

interface Window {
  /** Texts, from /jsi18n/; missing where that did not load. */
  django?: { gettext(text: string): string; pgettext(meaning: string, text: string): string; ngettext(one: string, many: string, count: number): string };
  htmx: typeof htmx;
}

/** Nearly all we look up are elements of HTML; `@type` before a declaration names a narrower one. */
interface ParentNode {
  querySelector<K extends keyof HTMLElementTagNameMap>(selectors: K): HTMLElementTagNameMap[K];
  querySelector<E extends Element = HTMLElement>(selectors: string): E;
  querySelectorAll<K extends keyof HTMLElementTagNameMap>(selectors: K): NodeListOf<HTMLElementTagNameMap[K]>;
  querySelectorAll<E extends Element = HTMLElement>(selectors: string): NodeListOf<E>;
}
interface Element {
  closest<K extends keyof HTMLElementTagNameMap>(selector: K): HTMLElementTagNameMap[K] | null;
  closest<E extends Element = HTMLElement>(selectors: string): E | null;
}
interface Document {
  getElementById<E extends HTMLElement = HTMLElement>(id: string): E;
}

/** The target of an event is an element, but for those of document and window. */
interface EventTarget {
  closest?<E extends Element = HTMLElement>(selectors: string): E | null;
  matches?(selectors: string): boolean;
  /** Events of our own classes; their `detail` is written down where they are sent. */
  addEventListener(type: string, callback: ((event: CustomEvent) => void) | null, options?: AddEventListenerOptions | boolean): void;
}

interface DocumentEventMap {
  toast: CustomEvent<{ text?: string; value?: string; kind?: "info" | "ok" | "fail" }>;
  "htmx:afterSwap": CustomEvent<{ elt: HTMLElement }>;
  "htmx:beforeRequest": CustomEvent<{ elt: HTMLElement }>;
  "htmx:confirm": CustomEvent<{ question: string; elt: HTMLElement; triggeringEvent?: SubmitEvent; issueRequest(skip: boolean): void }>;
  "htmx:responseError": CustomEvent<{ xhr: XMLHttpRequest }>;
}
