// Shells in a pod and attaching to it, over a WebSocket with the subprotocol v5.channel.k8s.io: the first byte of each
// message is its channel.
import { socket } from "./api.js";
import { el, tell } from "./dom.js";
import { keyText, Screen } from "./terminal.js";

const STDIN = 0, STDOUT = 1, STDERR = 2, ERROR = 3, RESIZE = 4, CLOSE = 255;
const ROWS = 24, EARLY_MAX = 1000;

function message(channel, bytes) {
  const all = new Uint8Array(1 + bytes.length);
  all[0] = channel;
  all.set(bytes, 1);
  return all;
}

// The server's final status, in plain words.
export function outcome(status) {
  if (status.status === "Success") return "The command has ended.";
  const code = ((status.details && status.details.causes) || []).find((cause) => cause.reason === "ExitCode");
  return code ? "The command has ended with exit code " + code.message + "." : status.message || "The command has failed.";
}

function drawLine(line, cursor) {
  const row = el("div");
  let text = "", style = "";
  const flush = () => { if (text) row.append(style ? el("span", { class: style }, text) : text); text = ""; };
  for (let x = 0; x < Math.max(line.length, cursor + 1); x++) {
    const cell = line[x] || { c: " ", s: "" };
    const wanted = x === cursor ? (cell.s + " cursor").trim() : cell.s;
    if (wanted !== style) { flush(); style = wanted; }
    text += cell.c;
  }
  flush();
  if (!row.hasChildNodes()) row.append("\u00a0");
  return row;
}

class Terminal {
  constructor(url, tty, signal, ended) {
    this.tty = tty;
    this.early = []; // typed before the connection is open
    this.pane = el("div", { class: "terminal", tabindex: "0", role: "textbox", "aria-multiline": "true", "aria-label": "Terminal. Control and ] leave it." });
    this.screen = new Screen(80, ROWS);
    this.decoders = { [STDOUT]: new TextDecoder(), [STDERR]: new TextDecoder() };
    this.encoder = new TextEncoder();
    this.ended = ended;
    this.pane.addEventListener("keydown", (event) => this.key(event));
    this.pane.addEventListener("paste", (event) => { event.preventDefault(); this.send(STDIN, event.clipboardData.getData("text").replaceAll("\n", "\r")); });
    this.connection = socket(url, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    this.connection.binaryType = "arraybuffer";
    this.connection.addEventListener("open", () => { this.fit(); this.early.splice(0).forEach((bytes) => this.connection.send(bytes)); });
    this.connection.addEventListener("message", (event) => this.receive(new Uint8Array(event.data)));
    this.connection.addEventListener("close", () => this.end("The connection is closed."));
    signal.addEventListener("abort", () => this.close());
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.pane);
    this.draw();
  }

  send(channel, text) {
    const state = this.connection.readyState;
    if (state === WebSocket.OPEN) this.connection.send(message(channel, this.encoder.encode(text)));
    else if (state === WebSocket.CONNECTING && channel === STDIN && this.early.length < EARLY_MAX) this.early.push(message(channel, this.encoder.encode(text)));
  }

  receive(bytes) {
    const channel = bytes[0], rest = bytes.subarray(1);
    if (channel === STDOUT || channel === STDERR) {
      const text = this.decoders[channel].decode(rest, { stream: true });
      this.screen.write(this.tty ? text : text.replaceAll("\n", "\r\n"));
      this.drawSoon();
    } else if (channel === ERROR && rest.length) {
      this.end(outcome(JSON.parse(new TextDecoder().decode(rest))));
    }
  }

  key(event) {
    if (event.ctrlKey && event.key === "]") { event.preventDefault(); this.pane.blur(); this.pane.previousElementSibling?.querySelector("button")?.focus(); return; }
    const text = keyText(event, this.screen.applicationKeys);
    if (text === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.send(STDIN, this.tty ? text : text.replaceAll("\r", "\n"));
  }

  // The size in characters follows the size of the pane.
  fit() {
    const probe = el("span", {}, "0".repeat(100));
    this.pane.append(probe);
    const width = probe.getBoundingClientRect().width / 100;
    probe.remove();
    const columns = Math.max(20, Math.floor((this.pane.clientWidth - 24) / (width || 8)));
    if (columns !== this.screen.columns) this.screen.resize(columns, ROWS);
    this.send(RESIZE, JSON.stringify({ Width: this.screen.columns, Height: ROWS }));
  }

  drawSoon() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => { this.drawing = 0; this.draw(); });
  }

  draw() {
    const { screen } = this;
    const old = screen.other ? [] : screen.history;
    this.pane.replaceChildren(...old.map((line) => drawLine(line, -1)), ...screen.lines.map((line, y) => drawLine(line, screen.cursor && !this.over && y === screen.y ? Math.min(screen.x, screen.columns - 1) : -1)));
    this.pane.scrollTop = this.pane.scrollHeight;
  }

  end(text) {
    if (this.over) return;
    this.over = true;
    this.watcher.disconnect();
    this.drawSoon();
    this.ended(text);
  }

  close() {
    if (this.connection.readyState === WebSocket.OPEN && this.connection.protocol.startsWith("v5")) this.connection.send(new Uint8Array([CLOSE, STDIN]));
    this.connection.close();
  }
}

// Words of a command: separated by spaces, with quotes around those that hold some.
export function words(text) {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3]);
}

export function shellPane(path, object, pane, signal, verb) {
  const choice = el("select", { "aria-label": "Container" }, ...object.spec.containers.map((container) => el("option", {}, container.name)));
  const command = el("input", { value: "/bin/sh", "aria-label": "Command", size: "40" });
  const state = el("p", { class: "quiet", role: "status" }), place = el("div");
  let current = new AbortController();
  const begin = () => {
    current.abort();
    current = new AbortController();
    signal.addEventListener("abort", () => current.abort());
    // A container that was started without a terminal has none to attach to.
    const tty = verb === "exec" || object.spec.containers.find((container) => container.name === choice.value).tty === true;
    const query = new URLSearchParams({ container: choice.value, stdin: "true", stdout: "true", tty: String(tty) });
    if (verb === "exec") words(command.value).forEach((word) => query.append("command", word));
    if (!tty) query.append("stderr", "true");
    const mine = current.signal;
    const terminal = new Terminal(path + "/" + verb + "?" + query, tty, mine, (text) => { if (!mine.aborted) state.textContent = text; });
    state.textContent = "Control and ] leave the terminal.";
    place.replaceChildren(terminal.pane);
    terminal.pane.focus();
  };
  const button = el("button", { class: "primary" }, "Connect");
  const form = el("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); begin(); } }, choice, verb === "exec" ? command : null, button);
  pane.replaceChildren(form, state, place);
  button.focus();
}

// A browser cannot forward ports: the command that can.
export function portForwardCommand(object, kind) {
  const container = (object.spec.containers || []).flatMap((item) => item.ports || []).map((port) => port.containerPort);
  const ports = kind.plural === "services" ? (object.spec.ports || []).map((port) => port.port) : container;
  return "kubectl port-forward -n " + object.metadata.namespace + " " + (kind.plural === "services" ? "service/" : "pod/") + object.metadata.name + " " +
         (ports.length ? ports.map((port) => (port < 1024 ? port + 8000 : port) + ":" + port).join(" ") : "8080:80");
}

export function copyCommand(command) { navigator.clipboard.writeText(command).then(() => tell(command), () => tell(command)); }
