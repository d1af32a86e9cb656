// One object: its YAML, an edit of it or by a form with a dry run and its diff first, its history, events, owners, dependents and users.
import { may } from "./allowed.js";
import { call, getJSON, pathOf } from "./api.js";
import { el, explain, mayWrite, show, tell } from "./dom.js";
import { editor } from "./edit.js";
import { editForm } from "./form.js";
import { historyPane } from "./history.js";
import { unowned } from "./owned.js";
import { copyCommand, portForwardCommand, shellPane } from "./pod.js";
import { relations, users } from "./relations.js";
import { remove } from "./table.js";
import { toYAML, yamlLines } from "./yaml.js";

async function events(object, signal) {
  const selector = encodeURIComponent("involvedObject.uid=" + object.metadata.uid);
  const base = object.metadata.namespace ? "/api/v1/namespaces/" + encodeURIComponent(object.metadata.namespace) : "/api/v1";
  const list = await getJSON(base + "/events?limit=100&fieldSelector=" + selector, { signal });
  if (!list.items.length) return el("p", { class: "quiet" }, "none");
  return el("table", {}, el("thead", {}, el("tr", {}, ...["Last seen", "Type", "Reason", "Message"].map((name) => el("th", { scope: "col" }, name)))),
            el("tbody", {}, ...list.items.map((event) => el("tr", {}, el("td", {}, event.lastTimestamp || event.eventTime || ""), el("td", {}, event.type || ""),
                                                               el("td", {}, event.reason || ""), el("td", { title: event.message }, event.message || "")))));
}

const LOG_LINES = 500;
async function logs(path, object, pane, signal) {
  const text = el("pre", { tabindex: "0", class: "log" });
  const choice = el("select", { "aria-label": "Container" }, ...object.spec.containers.map((container) => el("option", {}, container.name)));
  let reading = new AbortController();
  const read = async () => {
    reading.abort();
    reading = new AbortController();
    signal.addEventListener("abort", () => reading.abort());
    const mine = reading.signal;
    text.textContent = "";
    try {
      const answer = await call("GET", path + "/log?" + new URLSearchParams({ container: choice.value, tailLines: LOG_LINES, follow: "true" }), { accept: "*/*", signal: mine });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        text.append(part.value);
        while (text.childNodes.length > LOG_LINES) text.firstChild.remove();
        text.scrollTop = text.scrollHeight;
      }
    } catch (error) {
      if (!mine.aborted) text.textContent = explain(error);
    }
  };
  choice.addEventListener("change", read);
  pane.replaceChildren(el("div", { class: "tools" }, choice), text);
  await read();
}

// The object as YAML: fields without a manager are grey, or left out.
function yamlPane(object) {
  const grey = unowned(object), shown = structuredClone(object);
  delete shown.metadata.managedFields;
  const all = yamlLines(shown, grey), text = el("pre", { tabindex: "0" });
  const hide = el("input", { type: "checkbox", id: "hide-defaults" });
  const draw = () => {
    const runs = [];
    for (const line of all) {
      if (line.grey && hide.checked) continue;
      if (!runs.length || runs.at(-1).grey !== line.grey) runs.push({ grey: line.grey, text: "" });
      runs.at(-1).text += line.text + "\n";
    }
    text.replaceChildren(...runs.map((run) => (run.grey ? el("span", { class: "default" }, run.text) : run.text)));
  };
  hide.addEventListener("change", draw);
  draw();
  const count = all.filter((line) => line.grey).length;
  if (!count) return el("div", {}, text);
  return el("div", {}, el("p", { class: "tools legend" }, el("span", {}, el("span", { class: "default" }, "grey"), ": filled in by the server, owned by nobody (" + count + " of " + all.length + " lines)"), hide,
                          el("label", { for: "hide-defaults" }, "hide them")), text);
}

export async function objectView(kind, namespace, name, kinds, signal) {
  const path = pathOf(kind, namespace, name);
  const reload = () => objectView(kind, namespace, name, kinds, signal).catch((error) => tell(explain(error)));
  const object = await getJSON(path, { signal });
  const fields = object.metadata.managedFields;
  const pane = el("div", {}, yamlPane(object));
  const managed = fields ? el("details", {}, el("summary", {}, "Who set what (managedFields)"), el("pre", {}, toYAML(fields))) : null;
  const command = "kubectl get " + kind.plural + (kind.group ? "." + kind.group : "") + (namespace ? " -n " + namespace : "") + " " + name + " -o yaml";
  const buttons = [];
  const offer = (text, key, onclick) => buttons.push(el("button", { "data-key": key, "aria-keyshortcuts": key, title: "Key: " + key, onclick }, text));
  const isPod = kind.group === "" && kind.plural === "pods";
  const mayChange = (verb) => mayWrite() && kind.verbs.includes(verb) && may(verb, kind, name);
  offer("YAML", "y", () => pane.replaceChildren(yamlPane(object)));
  offer("Copy as kubectl", "c", () => copyCommand(command));
  if (isPod && may("get", kind, name, "log")) offer("Log", "l", () => logs(path, object, pane, signal));
  if (isPod && mayWrite() && may("create", kind, name, "exec")) offer("Shell", "s", () => shellPane(path, object, pane, signal, "exec"));
  if (isPod && mayWrite() && may("create", kind, name, "attach")) offer("Attach", "a", () => shellPane(path, object, pane, signal, "attach"));
  if (kind.group === "" && ["pods", "services"].includes(kind.plural)) offer("Port forward", "p", () => copyCommand(portForwardCommand(object, kind)));
  if (mayChange("patch")) {
    const openForm = () => editForm(kind, object, path, reload, signal).then((form) => pane.replaceChildren(form), (error) => tell(explain(error)));
    offer("Edit", "e", () => pane.replaceChildren(editor(kind, object, path, reload)));
    offer("Edit as form", "f", openForm);
  }
  if (mayChange("delete")) offer("Delete", "d", async () => {
    if (!confirm("Delete " + kind.kind + " " + name + "?")) return;
    try { await remove(kind, namespace, name); tell("Deleted."); history.back(); } catch (error) { tell(explain(error)); }
  });
  for (const [text, key] of [["History", "h"], ["Events", "v"]])
    offer(text, key, () => [...related.querySelectorAll("h2")].find((title) => title.textContent === text)?.scrollIntoView());
  const related = el("div");
  const listLink = "#/list/" + [kind.group || "core", kind.version, kind.plural].map(encodeURIComponent).join("/");
  show(el("h1", {}, el("a", { href: listLink, "data-key": "u", "aria-keyshortcuts": "u", title: "All of them. Key: u" }, kind.kind), " " + (namespace ? namespace + "/" : "") + name), el("div", { class: "tools" }, ...buttons), pane, managed || "", related);
  const part = async (title, making) => {
    try {
      const content = await making;
      if (content) related.append(el("h2", {}, title), content);
    } catch (error) {
      if (!signal.aborted) related.append(el("h2", {}, title), el("p", { class: "bad" }, explain(error)));
    }
  };
  if (kind.verbs.includes("list")) await part("History", historyPane(kind, object, path, reload, mayChange("patch"), signal));
  await part("Owners and owned", relations(kind, object, kinds, signal));
  await part(kind.plural === "services" ? "Sends to" : "Used by", users(kind, object, kinds, signal));
  await part("Events", events(object, signal));
}
