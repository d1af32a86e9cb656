// A new object by a form that is made of its kind's schema in OpenAPI v3: built-in kinds and custom resources alike. Parts of the form are
// made when they are opened, since schemas are large and some refer to themselves.
import { call, getJSON, pathOf } from "./api.js";
import { el, explain, show, tell } from "./dom.js";
import { toYAML } from "./yaml.js";

const MANAGER = "keelson-console";
let number = 0;

export function resolve(schema, schemas) {
  const reference = schema.$ref || (schema.allOf && schema.allOf.length === 1 && schema.allOf[0].$ref);
  if (!reference) return schema;
  return { ...schemas[reference.replace("#/components/schemas/", "")], ...(schema.description ? { description: schema.description } : {}) };
}

// One part of the form: {element, value()}; value() is undefined while nothing is entered.
function part(name, schema, schemas, required) {
  schema = resolve(schema, schemas);
  if (schema.properties) return group(name, schema, schemas, required);
  if (schema.type === "array") return many(name, schema, (index) => part(String(index), schema.items || {}, schemas, true), (values) => values);
  if (schema.type === "object" && schema.additionalProperties) return entries(name, schema, schemas);
  return scalar(name, schema, required);
}

function labelled(name, schema, input, required) {
  const id = "field-" + number++;
  input.id = id;
  const hint = schema.description ? el("small", { id: id + "-hint", class: "quiet" }, schema.description) : null;
  if (hint) input.setAttribute("aria-describedby", id + "-hint");
  return el("div", { class: "field" }, el("label", { for: id }, name + (required ? " *" : "")), input, hint);
}

function scalar(name, schema, required) {
  const type = schema.type || (schema["x-kubernetes-int-or-string"] || schema.oneOf ? "string" : "any");
  const choices = schema.enum || (type === "boolean" ? [true, false] : null);
  const placeholder = schema.default !== undefined && typeof schema.default !== "object" ? String(schema.default) : type === "any" || type === "object" ? "JSON" : "";
  const input = choices ? el("select", {}, el("option", { value: "" }, ""), ...choices.map((choice) => el("option", { value: JSON.stringify(choice) }, String(choice))))
                        : el("input", { type: type === "integer" || type === "number" ? "number" : "text", step: type === "number" ? "any" : undefined, placeholder, autocomplete: "off" });
  const value = () => {
    if (input.value === "") return undefined;
    if (choices || type === "any" || type === "object") return JSON.parse(input.value);
    if (type === "integer" || type === "number") return Number(input.value);
    // A port or percentage: digits alone are a number.
    if (!schema.type && /^\d+$/.test(input.value)) return Number(input.value);
    return input.value;
  };
  return { element: labelled(name, schema, input, required), value };
}

function folded(name, schema, required, fill) {
  const details = el("details", { open: required }, el("summary", {}, name + (required ? " *" : "")));
  if (schema.description) details.append(el("small", { class: "quiet" }, schema.description));
  let filled = false;
  const open = () => { if (!filled) { filled = true; fill(details); } };
  if (required) open();
  else details.addEventListener("toggle", open);
  return details;
}

function group(name, schema, schemas, required) {
  const parts = [];
  const fill = (details) => {
    const needed = new Set(schema.required || []);
    const names = Object.keys(schema.properties).sort((a, b) => needed.has(b) - needed.has(a) || a.localeCompare(b));
    for (const child of names) parts.push([child, part(child, schema.properties[child], schemas, needed.has(child))]);
    details.append(...parts.map(([, one]) => one.element));
  };
  const element = folded(name, schema, required, fill);
  const value = () => {
    const found = parts.map(([child, one]) => [child, one.value()]).filter(([, entered]) => entered !== undefined);
    return found.length ? Object.fromEntries(found) : undefined;
  };
  return { element, value };
}

// A list of parts that grows by a button.
function many(name, schema, make, gather) {
  const parts = new Set(), rows = el("div");
  const add = el("button", { type: "button", onclick: () => {
    const one = make(parts.size);
    const row = el("div", { class: "item" }, one.element, el("button", { type: "button", "aria-label": "Remove item", onclick: () => { parts.delete(one); row.remove(); } }, "Remove"));
    parts.add(one);
    rows.append(row);
  } }, "Add to " + name);
  const element = folded(name, schema, false, (details) => details.append(rows, add));
  const value = () => {
    const values = [...parts].map((one) => one.value()).filter((entered) => entered !== undefined);
    return values.length ? gather(values) : undefined;
  };
  return { element, value };
}

function entries(name, schema, schemas) {
  const make = (index) => {
    const key = scalar("key", { type: "string" }, true);
    const content = part("value", schema.additionalProperties === true ? {} : schema.additionalProperties, schemas, true);
    return { element: el("div", {}, key.element, content.element), value: () => (key.value() === undefined ? undefined : [key.value(), content.value() === undefined ? "" : content.value()]) };
  };
  return many(name, schema, make, (values) => Object.fromEntries(values));
}

// The schema of a kind in the document of its group version.
export function schemaOf(document, kind) {
  return Object.values(document.components.schemas).find((schema) => (schema["x-kubernetes-group-version-kind"] || []).some(
      (row) => row.group === kind.group && row.version === kind.version && row.kind === kind.kind));
}

const METADATA = { type: "object", required: ["name"], description: "Name and labels of the object.", properties: {
  name: { type: "string", description: "The name, unique among its kind in the namespace." },
  namespace: { type: "string", description: "The namespace of the object." },
  labels: { type: "object", description: "Names and values by which objects are selected.", additionalProperties: { type: "string" } } } };

export async function newView(kind, namespace, signal) {
  const document_ = await getJSON("/openapi/v3" + kind.base, { signal });
  const schemas = document_.components.schemas, schema = schemaOf(document_, kind) || { properties: {} };
  const properties = { ...schema.properties, metadata: structuredClone(METADATA) };
  for (const name of ["apiVersion", "kind", "status"]) delete properties[name];
  if (!kind.namespaced) delete properties.metadata.properties.namespace;
  else properties.metadata.properties.namespace.default = namespace || "default";
  const parts = Object.keys(properties).sort((a, b) => (b === "metadata") - (a === "metadata") || a.localeCompare(b))
      .map((name) => [name, part(name, properties[name], schemas, name === "metadata" || name === "spec")]);
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
      const object = gather(), metadata = object.metadata || {};
      const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict", ...(dry ? { dryRun: "All" } : {}) });
      const answer = await (await call("POST", pathOf(kind, metadata.namespace || namespace || "default") + "?" + query, { type: "application/json", body: JSON.stringify(object) })).json();
      delete answer.metadata.managedFields;
      if (dry) return result.replaceChildren(el("h2", {}, "Dry run"), el("pre", { tabindex: "0" }, toYAML(answer)));
      tell("Created.");
      location.hash = "#/object/" + [kind.group || "core", kind.version, kind.plural, answer.metadata.namespace || "-", answer.metadata.name].map(encodeURIComponent).join("/");
    } catch (error) {
      const causes = ((error.body && error.body.details && error.body.details.causes) || []).map((cause) => el("li", {}, (cause.field || "") + ": " + cause.message));
      result.replaceChildren(el("p", { class: "bad" }, error instanceof SyntaxError ? "Not JSON: " + error.message : explain(error)), el("ul", {}, ...causes));
    }
  };
  const form = el("form", { class: "schema", onsubmit: (event) => { event.preventDefault(); send(true); } }, ...parts.map(([, one]) => one.element),
                  el("div", { class: "tools" }, el("button", {}, "Dry run"), el("button", { type: "button", class: "primary", onclick: () => send(false) }, "Create")));
  show(el("h1", {}, "New " + kind.kind), el("p", { class: "quiet" }, "Fields with * are required. Empty fields are left to their defaults."), form, result);
}
