// One socket per job page. Comes back by itself; whoever listens fills gaps by asking with offsets.
//
//   const socket = watch(7);
//   socket.addEventListener("log", (event) => event.detail.text);
//   events: hello, log, state, metrics (frames of the server), up, down (the line itself)

const SHORTEST_MS = 500;
const LONGEST_MS = 8000;
const GONE = new Set([4401, 4404]); // signed out, or no such job for this person: asking again is no use

/** An EventTarget with the frames of a job; `close` ends it. */
export function watch(job) {
  let closed = false;
  /** @type {WebSocket | null} */
  let line = null;
  const target = Object.assign(new EventTarget(), {
    close() {
      closed = true;
      line?.close();
    },
  });
  let pause = SHORTEST_MS;
  const scheme = location.protocol === "https:" ? "wss" : "ws";

  function connect() {
    const socket = new WebSocket(`${scheme}://${location.host}/ws/jobs/${job}/`);
    line = socket;
    let greeted = false;
    socket.addEventListener("message", (event) => {
      const frame = JSON.parse(event.data);
      if (frame.type === "hello") {
        greeted = true;
        pause = SHORTEST_MS;
        target.dispatchEvent(new CustomEvent("up"));
      }
      if (greeted) target.dispatchEvent(new CustomEvent(frame.type, { detail: frame }));
    });
    socket.addEventListener("close", (event) => {
      if (closed) return;
      target.dispatchEvent(new CustomEvent("down", { detail: { code: event.code } }));
      if (GONE.has(event.code)) return;
      setTimeout(() => closed || connect(), pause * (0.75 + Math.random() / 2));
      pause = Math.min(LONGEST_MS, pause * 2);
    });
  }

  connect();
  return target;
}
