// Objects by a form that is made of their kind's schema: a new one, or changes of one that exists. Built-in kinds and custom resources alike.
import { call, getJSON, pathOf } from "./api.js";
import { changing, MANAGER, problem } from "./change.js";
import { el, show, tell } from "./dom.js";
import { part } from "./fields.js";
import { mergePatch } from "./patch.js";
import { editable, toYAML } from "./yaml.js";

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

// A form with the fields of `object`: a dry run with its diff first, then a patch with what was changed and nothing else.
export async function editForm(kind, object, path, reload, signal) {
  const before = editable(object), parts = await partsOf(kind, CHANGEABLE_METADATA, before, signal);
  const changes = () => {
    const wanted = { ...before };
    for (const [name, one] of parts) {
      const entered = one.value();
      if (entered === undefined) delete wanted[name];
      else wanted[name] = entered;
    }
    return mergePatch(before, wanted);
  };
  const { check, save, result } = changing(path, object, changes, reload);
  return el("section", {}, el("p", { class: "quiet" }, "A patch with the changed fields as ", el("code", {}, MANAGER), ": first a dry run, then the change. An emptied field is removed."),
            formOf(parts, check, save), result);
}
