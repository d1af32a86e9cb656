// One object: its YAML, an edit by server-side apply or by a form with a dry run and its diff first, its history, events, owners, dependents and users.
import { may } from "./allowed.js";
import { call, getJSON, pathOf } from "./api.js";
import { el, explain, mayWrite, show, tell } from "./dom.js";
import { explainPane } from "./explain.js";
import { editForm } from "./form.js";
import { drawDiff, historyPane } from "./history.js";
import { unowned } from "./owned.js";
import { copyCommand, portForwardCommand, shellPane } from "./pod.js";
import { remove } from "./table.js";
import { editable, toYAML, yamlLines } from "./yaml.js";

const MANAGER = "keelson-console", DEPENDENTS_MAX = 500;

function linkTo(kind, namespace, name) {
  return "#/object/" + [kind.group || "core", kind.version, kind.plural, (kind.namespaced && namespace) || "-", name].map(encodeURIComponent).join("/");
}

async function owners(object, kinds) {
  const rows = [];
  for (const reference of object.metadata.ownerReferences || []) {
    const group = reference.apiVersion.includes("/") ? reference.apiVersion.split("/")[0] : "";
    const kind = kinds.find((candidate) => candidate.group === group && candidate.kind === reference.kind);
    const text = reference.kind + " " + reference.name;
    rows.push(el("li", {}, kind ? el("a", { href: linkTo(kind, object.metadata.namespace, reference.name) }, text) : text));
  }
  return rows.length ? el("ul", {}, ...rows) : el("p", { class: "quiet" }, "none");
}

// Kinds that controllers own objects of. Others are found by following owners upwards.
const OWNED = [["", "pods"], ["apps", "replicasets"], ["apps", "controllerrevisions"], ["batch", "jobs"], ["discovery.k8s.io", "endpointslices"], ["", "persistentvolumeclaims"]];

async function dependents(object, kinds, signal) {
  const namespace = object.metadata.namespace, rows = [];
  if (!namespace) return null;
  for (const [group, plural] of OWNED) {
    const kind = kinds.find((candidate) => candidate.group === group && candidate.plural === plural);
    if (!kind) continue;
    const accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    const list = await getJSON(pathOf(kind, namespace) + "?limit=" + DEPENDENTS_MAX, { accept, signal }).catch(() => ({ items: [] }));
    for (const item of list.items || []) {
      if ((item.metadata.ownerReferences || []).some((reference) => reference.uid === object.metadata.uid))
        rows.push(el("li", {}, el("a", { href: linkTo(kind, namespace, item.metadata.name) }, kind.kind + " " + item.metadata.name)));
    }
  }
  return rows.length ? el("ul", {}, ...rows) : el("p", { class: "quiet" }, "none found");
}

async function events(object, signal) {
  const selector = encodeURIComponent("involvedObject.uid=" + object.metadata.uid);
  const base = object.metadata.namespace ? "/api/v1/namespaces/" + encodeURIComponent(object.metadata.namespace) : "/api/v1";
  const list = await getJSON(base + "/events?limit=100&fieldSelector=" + selector, { signal });
  if (!list.items.length) return el("p", { class: "quiet" }, "none");
  return el("table", {}, el("thead", {}, el("tr", {}, ...["Last seen", "Type", "Reason", "Message"].map((name) => el("th", { scope: "col" }, name)))),
            el("tbody", {}, ...list.items.map((event) => el("tr", {}, el("td", {}, event.lastTimestamp || event.eventTime || ""), el("td", {}, event.type || ""),
                                                               el("td", {}, event.reason || ""), el("td", { title: event.message }, event.message || "")))));
}

const USES = { configmaps: ["configMap", "configMapRef", "configMapKeyRef"], secrets: ["secret", "secretRef", "secretKeyRef", "imagePullSecrets"],
               persistentvolumeclaims: ["persistentVolumeClaim"], serviceaccounts: ["serviceAccountName"] };

// Whether a pod's spec names `name` below one of the members.
export function refersTo(value, members, name, inside = false) {
  if (value === null || typeof value !== "object") return inside && value === name;
  return Object.entries(value).some(([key, item]) => {
    const named = Array.isArray(value) ? inside : members.includes(key) || (inside && ["name", "secretName", "claimName"].includes(key));
    return refersTo(item, members, name, named);
  });
}

// Pods that use a ConfigMap, Secret, claim or service account, or that a Service sends to.
async function users(kind, object, kinds, signal) {
  const namespace = object.metadata.namespace, name = object.metadata.name;
  const podKind = kinds.find((candidate) => candidate.group === "" && candidate.plural === "pods");
  if (!namespace || kind.group !== "" || !podKind) return null;
  const link = (pod) => el("li", {}, el("a", { href: linkTo(podKind, namespace, pod) }, "Pod " + pod));
  if (kind.plural === "services") {
    const slices = await getJSON("/apis/discovery.k8s.io/v1/namespaces/" + encodeURIComponent(namespace) + "/endpointslices?limit=" + DEPENDENTS_MAX + "&labelSelector=" +
                                 encodeURIComponent("kubernetes.io/service-name=" + name), { signal });
    const pods = slices.items.flatMap((slice) => slice.endpoints || []).map((endpoint) => endpoint.targetRef).filter((target) => target && target.kind === "Pod");
    return pods.length ? el("ul", {}, ...pods.map((target) => link(target.name))) : el("p", { class: "quiet" }, "no pods");
  }
  if (!USES[kind.plural]) return null;
  const list = await getJSON(pathOf(podKind, namespace) + "?limit=" + DEPENDENTS_MAX, { signal });
  const rows = list.items.filter((pod) => refersTo(pod.spec, USES[kind.plural], name)).map((pod) => link(pod.metadata.name));
  return rows.length ? el("ul", {}, ...rows) : el("p", { class: "quiet" }, "no pod" + (list.metadata.continue ? " among the first " + DEPENDENTS_MAX : ""));
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

function editor(kind, object, path, reload) {
  const text = el("textarea", { "aria-label": "YAML", spellcheck: "false" });
  text.value = toYAML(editable(object));
  const result = el("div"), force = el("input", { type: "checkbox", id: "force" });
  const apply = el("button", { class: "primary", disabled: true }, "Apply");
  const send = (dry) => call("PATCH", path + "?" + new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict", ...(dry ? { dryRun: "All" } : {}), ...(force.checked ? { force: "true" } : {}) }),
                             { type: "application/apply-patch+yaml", body: text.value }).then((answer) => answer.json());
  const check = el("button", { onclick: async () => {
    apply.disabled = true;
    try {
      const outcome = await send(true);
      result.replaceChildren(el("h2", {}, "Dry run"), drawDiff(toYAML(editable(object)), toYAML(editable(outcome))));
      apply.disabled = false;
    } catch (error) {
      const causes = ((error.body && error.body.details && error.body.details.causes) || []).map((cause) => el("li", {}, (cause.field || "") + ": " + cause.message));
      result.replaceChildren(el("p", { class: "bad" }, explain(error)), el("ul", {}, ...causes),
                             error.status === 409 ? el("p", {}, "Others manage these fields. Leave them out of the text, or take them over with the box above.") : "");
    }
  } }, "Dry run");
  text.addEventListener("input", () => { apply.disabled = true; });
  force.addEventListener("change", () => { apply.disabled = true; });
  apply.addEventListener("click", async () => {
    try { await send(false); tell("Applied."); reload(); } catch (error) { tell(explain(error)); }
  });
  return el("section", {}, el("p", { class: "quiet" }, "Server-side apply as ", el("code", {}, MANAGER), ": first a dry run, then the change. Fields that you remove stay if others manage them."),
            text, explainPane(text, kind), el("div", { class: "tools" }, check, apply, force, el("label", { for: "force" }, "take over fields of others")), result);
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
  await part("Owners", owners(object, kinds));
  await part("Owned by it", dependents(object, kinds, signal));
  await part(kind.plural === "services" ? "Sends to" : "Used by", users(kind, object, kinds, signal));
  await part("Events", events(object, signal));
}
