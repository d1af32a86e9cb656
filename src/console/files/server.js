// The server itself: health with reasons, requests, watches, memory by resource, queues of flow control, flags in force.
import { getJSON, getText, lines } from "./api.js";
import { bytes, el, explain, show } from "./dom.js";
import { age } from "./store.js";

const REFRESH_MILLISECONDS = 2000, ROWS = 12, SLOWEST_ROWS = 8, EVENTS_MAX = 1000;

// Samples of Prometheus' text format: name -> [{labels, value}].
export function parseMetrics(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match) continue;
    const labels = {};
    for (const pair of (match[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[pair[1]] = pair[2].replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    const value = match[3] === "+Inf" ? Infinity : Number(match[3]);
    if (!found.has(match[1])) found.set(match[1], []);
    found.get(match[1]).push({ labels, value });
  }
  return found;
}

const sum = (metrics, name, keep = () => true) => (metrics.get(name) || []).filter(keep).reduce((total, sample) => total + sample.value, 0);

function table(names, rows) {
  return el("table", {}, el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name)))),
            el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, String(cell)))))));
}

// Requests by verb and resource between two readings (or since the start): [[name, per second, mean milliseconds, errors]].
export function requestRows(now, before, seconds) {
  const rows = new Map();
  const add = (metrics, sign) => {
    for (const { labels, value } of metrics.get("apiserver_request_total") || []) {
      if (labels.verb === "WATCH" || labels.verb === "CONNECT") continue;
      const key = labels.verb + " " + (labels.resource || "-") + (labels.group ? "." + labels.group : "");
      const row = rows.get(key) || rows.set(key, { count: 0, errors: 0, seconds: 0 }).get(key);
      row.count += sign * value;
      if (labels.code.startsWith("5")) row.errors += sign * value;
    }
    for (const { labels, value } of metrics.get("apiserver_request_duration_seconds_sum") || []) {
      const row = rows.get(labels.verb + " " + (labels.resource || "-") + (labels.group ? "." + labels.group : ""));
      if (row) row.seconds += sign * value;
    }
  };
  add(now, 1);
  if (before) add(before, -1);
  return [...rows].filter(([, row]) => row.count > 0).sort((a, b) => b[1].count - a[1].count)
      .map(([name, row]) => [name, (row.count / seconds).toFixed(1), ((1000 * row.seconds) / row.count).toFixed(2), row.errors]);
}

function resourceRows(metrics) {
  const rows = new Map();
  const add = (name, field, keep) => {
    for (const { labels, value } of metrics.get(name) || []) {
      if (keep && !keep(labels)) continue;
      const key = labels.resource + (labels.group ? "." + labels.group : "");
      const row = rows.get(key) || rows.set(key, { objects: 0, bytes: 0, watches: 0 }).get(key);
      row[field] += value;
    }
  };
  add("apiserver_resource_objects", "objects");
  add("apiserver_resource_size_estimate_bytes", "bytes");
  add("apiserver_longrunning_requests", "watches", (labels) => labels.verb === "WATCH");
  return [...rows].filter(([, row]) => row.objects > 0 || row.watches > 0).sort((a, b) => b[1].bytes - a[1].bytes).slice(0, ROWS)
      .map(([name, row]) => [name, row.objects, bytes(row.bytes), row.watches]);
}

function levelRows(metrics) {
  const rows = new Map();
  const add = (name, field) => {
    for (const { labels, value } of metrics.get(name) || []) {
      const row = rows.get(labels.priority_level) || rows.set(labels.priority_level, { seats: 0, running: 0, queued: 0, rejected: 0 }).get(labels.priority_level);
      row[field] += value;
    }
  };
  add("apiserver_flowcontrol_current_limit_seats", "seats");
  add("apiserver_flowcontrol_current_executing_requests", "running");
  add("apiserver_flowcontrol_current_inqueue_requests", "queued");
  add("apiserver_flowcontrol_rejected_requests_total", "rejected");
  return [...rows].sort().map(([name, row]) => [name, row.seats, row.running, row.queued, row.rejected]);
}

const milliseconds = (event) => Date.parse(event.stageTimestamp) - Date.parse(event.requestReceivedTimestamp);

// Clients among the events: [[user and program, requests, errors, slowest milliseconds]]. Watches are not requests here.
export function clientRows(events) {
  const rows = new Map();
  for (const event of events) {
    if (event.stage !== "ResponseComplete" || event.verb === "watch") continue;
    const key = (event.user.username || "-") + ", " + (event.userAgent || "-").split(" ")[0];
    const row = rows.get(key) || rows.set(key, { count: 0, errors: 0, slowest: 0 }).get(key);
    row.count++;
    if (event.responseStatus && event.responseStatus.code >= 400) row.errors++;
    row.slowest = Math.max(row.slowest, milliseconds(event));
  }
  return [...rows].sort((a, b) => b[1].count - a[1].count).map(([name, row]) => [name, row.count, row.errors, row.slowest]);
}

// The slowest of the events: [[request, user, milliseconds, code]].
export function slowestRows(events) {
  return events.filter((event) => event.stage === "ResponseComplete" && event.verb !== "watch").sort((a, b) => milliseconds(b) - milliseconds(a)).slice(0, SLOWEST_ROWS)
      .map((event) => [event.verb + " " + event.requestURI, event.user.username || "-", milliseconds(event), event.responseStatus ? event.responseStatus.code : ""]);
}

// Audit events while the page is open, the newest EVENTS_MAX. Metrics do not distinguish clients.
function followEvents(signal) {
  const state = { events: [], problem: "" };
  (async () => {
    for await (const line of lines("/console/api/audit", { accept: "*/*", signal })) {
      if (line !== "") state.events.push(JSON.parse(line));
      if (state.events.length > EVENTS_MAX) state.events.shift();
    }
  })().catch((error) => { state.problem = explain(error); });
  return state;
}

export async function health() {
  const text = await getText("/readyz?verbose").catch((error) => (error.status === 500 ? error.message : Promise.reject(error)));
  const bad = text.split("\n").filter((line) => line.startsWith("[-]"));
  return bad.length ? el("pre", { class: "bad" }, bad.join("\n")) : el("p", { class: "good" }, "ready: every check passes");
}

async function certificates() {
  const { certificates: found } = await getJSON("/console/api/store");
  return table(["Flag", "File", "Ends in"], found.map((one) => [one.flag, one.file, one.secondsLeft > 0 ? age(one.secondsLeft) : "it has ended"]));
}

export async function serverView(signal) {
  const version = await getJSON("/version");
  const healthPane = el("div"), figures = el("div"), flags = el("details", {}, el("summary", {}, "Flags in force"));
  const ends = el("div");
  certificates().then((made) => ends.append(el("h2", {}, "Certificates"), made), (error) => ends.append(el("h2", {}, "Certificates"), el("p", { class: "bad" }, explain(error))));
  show(el("h1", {}, "Server " + version.gitVersion), healthPane, figures, ends, flags);
  flags.addEventListener("toggle", async () => {
    if (flags.open && flags.children.length === 1)
      flags.append(el("pre", {}, await getText("/flagz").catch((error) => explain(error))));
  });
  const seen = followEvents(signal);
  let before = null, at = 0;
  while (!signal.aborted) {
    try {
      healthPane.replaceChildren(await health());
      const now = parseMetrics(await getText("/metrics")), time = performance.now();
      const started = sum(now, "process_start_time_seconds");
      const seconds = before ? (time - at) / 1000 : Math.max(1, Date.now() / 1000 - started);
      const watches = sum(now, "apiserver_longrunning_requests", (sample) => sample.labels.verb === "WATCH");
      figures.replaceChildren(
          el("p", {}, "memory " + bytes(sum(now, "process_resident_memory_bytes")) + ", watches " + watches + ", store " + bytes(sum(now, "apiserver_storage_size_bytes")) +
             ", up since " + new Date(started * 1000).toISOString()),
          el("h2", {}, before ? "Requests, last two seconds" : "Requests since the start"), table(["Request", "per s", "mean ms", "5xx"], requestRows(now, before, seconds).slice(0, ROWS)),
          el("h2", {}, "Clients, while this page is open"),
          seen.problem ? el("p", { class: "bad" }, seen.problem) : table(["User, program", "Requests", "4xx and 5xx", "Slowest ms"], clientRows(seen.events).slice(0, ROWS)),
          el("h2", {}, "Slowest requests, while this page is open"), table(["Request", "User", "ms", "Code"], slowestRows(seen.events)),
          el("h2", {}, "Largest resources"), table(["Resource", "Objects", "Bytes", "Watches"], resourceRows(now)),
          el("h2", {}, "Flow control"), table(["Level", "Seats", "Running", "Queued", "Rejected"], levelRows(now)));
      before = now;
      at = time;
    } catch (error) {
      figures.replaceChildren(el("p", { class: "bad" }, explain(error)));
    }
    await new Promise((done) => setTimeout(done, REFRESH_MILLISECONDS));
    while (document.hidden && !signal.aborted) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
  }
}
