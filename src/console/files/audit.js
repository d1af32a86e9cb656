// Audit events as they happen. The server records them only while a viewer is connected.
import { lines } from "./api.js";
import { el, explain, show } from "./dom.js";

const ROWS_MAX = 1000, AGAIN_MILLISECONDS = 1000;
const FILTERS = ["user", "verb", "resource"];

// One event as the cells of a row.
export function eventCells(event) {
  const object = event.objectRef || {};
  const what = object.resource ? [object.resource + (object.subresource ? "/" + object.subresource : ""), object.namespace, object.name].filter(Boolean).join(" ") : event.requestURI;
  const code = event.responseStatus ? event.responseStatus.code : "";
  const user = event.user.username || "";
  const took = Date.parse(event.stageTimestamp) - Date.parse(event.requestReceivedTimestamp);
  return [event.stageTimestamp.slice(11, 23), event.impersonatedUser ? user + " as " + event.impersonatedUser.username : user, event.verb, what, String(code),
          event.stage === "ResponseStarted" ? "begins" : took + " ms", (event.sourceIPs || []).join(" ")];
}

function row(event) {
  const bad = event.responseStatus && event.responseStatus.code >= 400;
  return el("tr", { title: event.requestURI + "\n" + (event.userAgent || "") }, ...eventCells(event).map((cell, i) => el("td", i === 4 && bad ? { class: "bad" } : {}, cell)));
}

async function follow(query, body, state, signal) {
  for await (const line of lines("/console/api/audit?" + query, { accept: "*/*", signal })) {
    if (line === "") continue;
    body.prepend(row(JSON.parse(line)));
    while (body.children.length > ROWS_MAX) body.lastChild.remove();
    state.textContent = body.children.length + " events, newest first";
  }
}

export async function auditView(parameters, signal) {
  const body = el("tbody"), state = el("p", { class: "quiet", role: "status" }, "waiting for events");
  const boxes = FILTERS.map((name) => el("input", { name, value: parameters.get(name) || "", placeholder: "any", autocomplete: "off", id: "audit-" + name }));
  const form = el("form", { class: "tools", onsubmit: (event) => {
    event.preventDefault();
    location.hash = "#/audit?" + new URLSearchParams(boxes.filter((box) => box.value !== "").map((box) => [box.name, box.value.trim()]));
  } }, ...FILTERS.flatMap((name, i) => [el("label", { for: "audit-" + name }, name), boxes[i]]), el("button", {}, "Filter"));
  const table = el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Audit events" },
                   el("table", {}, el("thead", {}, el("tr", {}, ...["Time", "User", "Verb", "Object", "Code", "Took", "From"].map((name) => el("th", { scope: "col" }, name)))), body));
  show(el("h1", {}, "Audit"), el("p", {}, "Requests as they happen, recorded while a page like this one is open. Bodies are never shown."), form, state, table);
  // A stream that ends (a restart, a lost connection) is opened again; events that are still kept come once more.
  while (!signal.aborted) {
    try {
      body.replaceChildren();
      await follow(new URLSearchParams(boxes.map((box) => [box.name, box.value.trim()])), body, state, signal);
    } catch (error) {
      if (signal.aborted) return;
      state.textContent = explain(error);
      if (error.status === 403 || error.status === 401) return;
    }
    await new Promise((done) => setTimeout(done, AGAIN_MILLISECONDS));
  }
}
