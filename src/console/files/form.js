// Objects by a form that is made of their kind's schema: a new one, or changes of one that exists. Built-in kinds and custom resources alike.
import { call, getJSON, pathOf } from "./api.js";
import { el, explain, show, tell } from "./dom.js";
import { part } from "./fields.js";
import { drawDiff } from "./history.js";
import { changedMeanwhile, mergePatch } from "./patch.js";
import { editable, toYAML } from "./yaml.js";

const MANAGER = "keelson-console", ATTEMPTS_MAX = 5;

// The schema of a kind in the document of its group version.
export function schemaOf(document, kind) {
  return Object.values(document.components.schemas).find((schema) => (schema["x-kubernetes-group-version-kind"] || []).some(
      (row) => row.group === kind.group && row.version === kind.version && row.kind === kind.kind));
}

const TEXTS = { type: "object", additionalProperties: { type: "string" } };
const METADATA = { type: "object", required: ["name"], description: "Name and labels of the object.", properties: {
  name: { type: "string", description: "The name, unique among its kind in the namespace." },
  namespace: { type: "string", description: "The namespace of the object." },
  labels: { ...TEXTS, description: "Names and values by which objects are selected." } } };
const CHANGEABLE_METADATA = { type: "object", description: "Labels and annotations of the object.", properties: {
  labels: METADATA.properties.labels,
  annotations: { ...TEXTS, description: "Names and values for tools and people; objects are not selected by them." } } };

// The parts of an object: [[name, part]], metadata first.
async function partsOf(kind, metadata, initial, signal) {
  const document_ = await getJSON("/openapi/v3" + kind.base, { signal });
  const schemas = document_.components.schemas, schema = schemaOf(document_, kind) || { properties: {} };
  const properties = { ...schema.properties, metadata };
  for (const name of ["apiVersion", "kind", "status"]) delete properties[name];
  return Object.keys(properties).sort((a, b) => (b === "metadata") - (a === "metadata") || a.localeCompare(b))
      .map((name) => [name, part(name, properties[name], schemas, { required: name === "metadata" || name === "spec", initial: initial[name] })]);
}

function problem(error) {
  const causes = ((error.body && error.body.details && error.body.details.causes) || []).map((cause) => el("li", {}, (cause.field || "") + ": " + cause.message));
  return [el("p", { class: "bad" }, error instanceof SyntaxError ? "Not JSON: " + error.message : explain(error)), el("ul", {}, ...causes)];
}

// `check` runs first, by the button or Enter; `act` is the button that writes.
function formOf(parts, check, act) {
  return el("form", { class: "schema", onsubmit: (event) => { event.preventDefault(); check(); } }, ...parts.map(([, one]) => one.element),
            el("div", { class: "tools" }, el("button", {}, "Dry run"), act));
}

export async function newView(kind, namespace, signal) {
  const metadata = structuredClone(METADATA);
  if (!kind.namespaced) delete metadata.properties.namespace;
  else metadata.properties.namespace.default = namespace || "default";
  const parts = await partsOf(kind, metadata, {}, signal);
  const result = el("div", { role: "status" });
  const gather = () => {
    const object = { apiVersion: (kind.group ? kind.group + "/" : "") + kind.version, kind: kind.kind };
    for (const [name, one] of parts) {
      const entered = one.value();
      if (entered !== undefined) object[name] = entered;
    }
    return object;
  };
  const send = async (dry) => {
    try {
      const object = gather(), entered = object.metadata || {};
      const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict", ...(dry ? { dryRun: "All" } : {}) });
      const answer = await (await call("POST", pathOf(kind, entered.namespace || namespace || "default") + "?" + query, { type: "application/json", body: JSON.stringify(object) })).json();
      delete answer.metadata.managedFields;
      if (dry) return result.replaceChildren(el("h2", {}, "Dry run"), el("pre", { tabindex: "0" }, toYAML(answer)));
      tell("Created.");
      location.hash = "#/object/" + [kind.group || "core", kind.version, kind.plural, answer.metadata.namespace || "-", answer.metadata.name].map(encodeURIComponent).join("/");
    } catch (error) {
      result.replaceChildren(...problem(error));
    }
  };
  const create = el("button", { type: "button", class: "primary", onclick: () => send(false) }, "Create");
  show(el("h1", {}, "New " + kind.kind), el("p", { class: "quiet" }, "Fields with * are required. Empty fields are left to their defaults."), formOf(parts, () => send(true), create), result);
}

// Sends a merge patch that was made from `object`, with the newest version as its precondition. Concurrent changes by others are not a conflict
// unless they are in the fields of the patch: controllers write the status of some objects every few seconds. Resolves to
// {clashes} or {current, outcome}.
export async function sendPatch(path, object, patch, dry) {
  const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict", ...(dry ? { dryRun: "All" } : {}) });
  for (let attempt = 1;; attempt++) {
    const current = await getJSON(path);
    if (current.metadata.uid !== object.metadata.uid) return { clashes: [".metadata.uid"] };
    const clashes = changedMeanwhile(patch, editable(object), editable(current));
    if (clashes.length) return { clashes };
    const body = JSON.stringify({ ...patch, metadata: { ...patch.metadata, resourceVersion: current.metadata.resourceVersion } });
    try {
      return { current, outcome: await (await call("PATCH", path + "?" + query, { type: "application/merge-patch+json", body })).json() };
    } catch (error) {
      if (error.status !== 409 || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

// A form with the fields of `object`: a dry run with its diff first, then a patch with what was changed and nothing else.
export async function editForm(kind, object, path, reload, signal) {
  const before = editable(object), parts = await partsOf(kind, CHANGEABLE_METADATA, before, signal);
  const result = el("div", { role: "status" });
  let checked = "";
  const changes = () => {
    const wanted = { ...before };
    for (const [name, one] of parts) {
      const entered = one.value();
      if (entered === undefined) delete wanted[name];
      else wanted[name] = entered;
    }
    return mergePatch(before, wanted);
  };
  const send = async (dry) => {
    try {
      const patch = changes();
      if (!Object.keys(patch).length) return result.replaceChildren(el("p", {}, "Nothing is changed."));
      // The dry run's result is what is written.
      const again = dry || JSON.stringify(patch) !== checked;
      const { clashes, current, outcome } = await sendPatch(path, object, patch, again);
      if (clashes) {
        return result.replaceChildren(el("p", { class: "bad" }, "Somebody else has changed the same fields since this form was opened:"), el("ul", {}, ...clashes.map((field) => el("li", {}, field))),
                                      el("div", { class: "tools" }, el("button", { type: "button", onclick: reload }, "Open the new version")));
      }
      if (!again) {
        tell("Saved.");
        return reload();
      }
      checked = JSON.stringify(patch);
      save.disabled = false;
      result.replaceChildren(el("h2", {}, "Dry run"), drawDiff(toYAML(editable(current)), toYAML(editable(outcome))));
    } catch (error) {
      result.replaceChildren(...problem(error));
    }
  };
  const save = el("button", { type: "button", class: "primary", disabled: true, onclick: () => send(false) }, "Save");
  return el("section", {}, el("p", { class: "quiet" }, "A patch with the changed fields as ", el("code", {}, MANAGER), ": first a dry run, then the change. An emptied field is removed."),
            formOf(parts, () => send(true), save), result);
}
