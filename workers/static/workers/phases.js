// Lines of the platform's own in a log, as workers/supervisor/log_lines.py writes them, in the reader's language.
import { bytes, duration, pgettext, t, tn } from "../base/i18n.js";

const LINE = /^\[([a-z]+)\] ([a-z_]+)((?: [a-z_]+=(?:"(?:[^"\\]|\\.)*"|[^\s"]+))*)$/;
const FACT = / ([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)/g;

/** @typedef {Record<string, string>} Facts */
/** @param {string} text */
const span = (text) => duration(Number(text));
/** @param {string} text */
const size = (text) => bytes(Number(text));

/** What each code says, by phase. @type {Record<string, Record<string, (f: Facts) => string>>} */
const WORDS = {
  environment: {
    attempt: (f) => t("Attempt %(number)s", f),
    retry: (f) => t("Retry %(number)s of %(most)s", f),
    machine: (f) => (Number(f.nodes) > 1 ? t("Node %(place)s of %(nodes)s: %(node)s, %(devices)s", { ...f, place: String(Number(f.rank) + 1) }) : t("On %(node)s, %(devices)s", f)),
    sandbox: (f) => t("Isolation tier %(tier)s", f),
    resumes: (f) => t("Continues from checkpoint %(checkpoint)s", f),
    not_limited: () => t("No cgroup could be created: the kernel does not limit memory and processes."),
    not_reachable: (f) => t("Terminals, ports and files are not accessible: %(why)s", f),
  },
  network: {
    own: () => t("Private, without outgoing connections"),
    own_with_proxy: () => t("Private; outgoing connections use the proxy of the platform"),
    host: () => t("Python of the node"),
    port: (f) => t("Assigned port %(port)s", f),
    meeting: (f) => t("The nodes meet at %(address)s, port %(port)s", f),
  },
  variables: {
    given: (f) => t("%(number)s set, %(secret)s of them secret", f),
  },
  image: {
    platform: () => t("Platform engine"),
    container: (f) => t("Container image %(name)s", f),
    fetching: (f) => (Number(f.total) ? t("Downloading %(name)s: %(done)s of %(total)s", { ...f, done: size(f.done), total: size(f.total) }) : t("Downloading %(name)s: contacting the registry", f)),
    layer: (f) => t("Unpacked layer %(number)s of %(of)s, %(size)s, in %(span)s", { ...f, size: size(f.bytes), span: span(f.seconds) }),
    engine: (f) => tn("%(shown)s layer mounted", "%(shown)s layers mounted", Number(f.layers), { shown: f.layers }),
    packages: () => t("Installed packages are stored on top"),
  },
  command: {
    line: (f) => firstLine(f.argv),
    not_started: (f) => t("%(program)s could not be started: %(why)s", f),
  },
  program: {
    exited: (f) => t("Exited with code %(code)s after %(span)s", { ...f, span: span(f.seconds) }),
    signalled: (f) => t("Terminated by %(signal)s after %(span)s", { ...f, span: span(f.seconds) }),
    over_time: (f) => t("The maximum run time of %(span)s was exceeded", { span: span(f.seconds) }),
    over_memory: (f) => t("Memory limit of %(limit)s exceeded: it used %(held)s", { limit: size(f.limit_bytes), held: size(f.held_bytes) }),
    over_disk: (f) => t("Disk limit of %(limit)s exceeded: it used %(used)s", { limit: size(f.limit_bytes), used: size(f.used_bytes) }),
    disk_was_full: (f) => t("The disk was full for %(span)s: output of that time is missing", { span: span(f.seconds) }),
    cut: (f) => t("%(size)s omitted; the latest lines follow", { size: size(f.bytes) }),
    stays_on_cards: (f) => t("Keeps its GPUs: %(why)s", f),
    stranded: (f) => t("Could not be restored onto its GPUs: %(why)s", f),
    withheld: () => t("The command has ended, but its helper processes did not exit and are killed"),
    engine_away: () => t("The command ended while the container engine was unavailable; its exit code is not known yet"),
    engine_restarted: () => t("The container engine was restarted and stopped the container"),
    engine_silent: () => t("The container engine does not respond; the container is removed when it does"),
    unknown_end: (f) => t("The exit code is unknown: %(why)s", f),
    lost: () => t("The supervisor process was killed"),
    again: (f) => t("Retry in %(span)s, retry %(number)s of %(most)s", { ...f, span: span(f.seconds) }),
    starts_again: (f) => t("Restarts in %(span)s", { span: span(f.seconds) }),
  },
};

/** The facts of each code, in the order in which they are written; codes without facts are left out. */
const FACTS = /** @type {Record<string, string>} */ ({
  "environment.attempt": "number",
  "environment.retry": "number most",
  "environment.machine": "node rank nodes devices",
  "environment.sandbox": "tier",
  "environment.resumes": "checkpoint",
  "environment.not_reachable": "why",
  "network.port": "port",
  "network.meeting": "address port",
  "variables.given": "number secret",
  "image.container": "name",
  "image.fetching": "name done total",
  "image.layer": "number of bytes seconds",
  "image.engine": "layers",
  "command.line": "argv",
  "command.not_started": "program why",
  "program.exited": "code seconds",
  "program.signalled": "signal seconds",
  "program.over_time": "seconds",
  "program.over_memory": "limit_bytes held_bytes",
  "program.over_disk": "limit_bytes used_bytes",
  "program.disk_was_full": "seconds",
  "program.cut": "bytes",
  "program.stays_on_cards": "why",
  "program.stranded": "why",
  "program.unknown_end": "why",
  "program.again": "seconds number most",
  "program.starts_again": "seconds",
});

/** In the order in which they come; what a program prints belongs to the last one. */
export const PHASES = Object.keys(WORDS);
export const PRINTED = PHASES[PHASES.length - 1];

/** @param {string} phase */
export function phaseWord(phase) {
  const words = [t("Environment"), t("Network"), t("Variables"), pgettext("container", "Image"), t("Command"), t("Program")];
  return words[PHASES.indexOf(phase)];
}

/**
 * Phase, code and facts of a line of the platform's own; null for what a program printed.
 * @param {string} line
 * @returns {{phase: string, code: string, facts: Facts} | null}
 */
export function readLine(line) {
  const found = line.startsWith("[") ? LINE.exec(line) : null;
  if (!found || !Object.hasOwn(WORDS, found[1]) || !Object.hasOwn(WORDS[found[1]], found[2])) return null;
  const facts = /** @type {Facts} */ ({});
  for (const [, name, value] of found[3].matchAll(FACT)) facts[name] = value.startsWith('"') ? unquoted(value) : value;
  if (Object.keys(facts).join(" ") !== (FACTS[`${found[1]}.${found[2]}`] ?? "")) return null;
  return { phase: found[1], code: found[2], facts };
}

/** What a line of the platform's own says to people. @param {{phase: string, code: string, facts: Facts}} line */
export function said({ phase, code, facts }) {
  return WORDS[phase][code](facts);
}

/** @param {string} value */
function unquoted(value) {
  try {
    return String(JSON.parse(value));
  } catch {
    return value;
  }
}

/** The first line of a script, and how many there are. @param {string} [text] */
function firstLine(text = "") {
  const lines = text.split("\n");
  return lines.length > 1 ? `${lines[0]} … (${tn("%(shown)s line", "%(shown)s lines", lines.length, { shown: String(lines.length) })})` : text;
}
