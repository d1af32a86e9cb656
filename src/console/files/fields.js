// Fields of a form that is made of a schema in OpenAPI v3. Each part is {element, value()}: value() is undefined while nothing is entered. A part
// that is made with an initial value and is not touched gives back that very value, also where the schema does not describe it. Parts are
// made when they are opened, since schemas are large and some refer to themselves.
import { el } from "./dom.js";

let number = 0;

export function resolve(schema, schemas) {
  const reference = schema.$ref || (schema.allOf && schema.allOf.length === 1 && schema.allOf[0].$ref);
  if (!reference) return schema;
  return { ...schemas[reference.replace("#/components/schemas/", "")], ...(schema.description ? { description: schema.description } : {}) };
}

const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isEmpty = (value) => value === null || (typeof value === "object" && Object.keys(value).length === 0);

// options: required, initial, item (a list's: an empty text counts as entered), multiline.
export function part(name, schema, schemas, options = {}) {
  schema = resolve(schema, schemas);
  const { initial } = options;
  if (schema.properties && (initial === undefined || initial === null || isMap(initial))) return group(name, schema, schemas, options);
  if (schema.type === "array" && (initial === undefined || initial === null || Array.isArray(initial))) return list(name, schema, schemas, initial);
  if (schema.type === "object" && schema.additionalProperties && (initial === undefined || initial === null || isMap(initial))) return entries(name, schema, schemas, initial);
  return scalar(name, schema, options);
}

function labelled(name, schema, input, required) {
  const id = "field-" + number++;
  input.id = id;
  const hint = schema.description ? el("small", { id: id + "-hint", class: "quiet" }, schema.description) : null;
  if (hint) input.setAttribute("aria-describedby", id + "-hint");
  return el("div", { class: "field" }, el("label", { for: id }, name + (required ? " *" : "")), input, hint);
}

function scalar(name, schema, { required, initial, item, multiline }) {
  const given = initial !== undefined && initial !== null;
  // Values that the schema does not allow or describe are shown as JSON.
  const type = given && typeof initial === "object" ? "any" : schema.type || (schema["x-kubernetes-int-or-string"] || schema.oneOf ? "string" : "any");
  let choices = schema.enum || (type === "boolean" ? [true, false] : null);
  if (choices && given && !choices.includes(initial)) choices = [...choices, initial];
  const isJSON = type === "any" || type === "object";
  const text = !given ? "" : choices || isJSON ? JSON.stringify(initial) : String(initial);
  const placeholder = schema.default !== undefined && typeof schema.default !== "object" ? String(schema.default) : isJSON ? "JSON" : "";
  let input;
  if (choices) {
    input = el("select", {}, el("option", { value: "" }, ""), ...choices.map((choice) => el("option", { value: JSON.stringify(choice) }, String(choice))));
  } else if (type === "string" && (multiline || text.includes("\n"))) {
    input = el("textarea", { rows: String(Math.min(text.split("\n").length, 20)), placeholder, spellcheck: "false" });
  } else {
    const isNumber = type === "integer" || type === "number";
    input = el("input", { type: isNumber ? "number" : "text", step: type === "number" ? "any" : undefined, placeholder, autocomplete: "off" });
  }
  input.value = text;
  const untouched = input.value;
  const value = () => {
    if (initial !== undefined && input.value === untouched) return initial;
    if (input.value === "") return item && type === "string" && !choices ? "" : undefined;
    if (choices || isJSON) return JSON.parse(input.value);
    if (type === "integer" || type === "number") return Number(input.value);
    // A port or percentage: digits alone are a number.
    if (!schema.type && /^\d+$/.test(input.value)) return Number(input.value);
    return input.value;
  };
  return { element: labelled(name, schema, input, required), value };
}

function folded(name, description, open, fill) {
  const details = el("details", { open }, el("summary", {}, name));
  if (description) details.append(el("small", { class: "quiet" }, description));
  let filled = false;
  const fillOnce = () => { if (!filled) { filled = true; fill(details); } };
  if (open) fillOnce();
  else details.addEventListener("toggle", fillOnce);
  return details;
}

// Fields that are set come first; the others are folded away, unless nothing is set yet.
function group(name, schema, schemas, { required, initial }) {
  const parts = [], given = isMap(initial) ? initial : {}, needed = new Set(schema.required || []);
  const names = Object.keys(schema.properties).sort((a, b) => needed.has(b) - needed.has(a) || a.localeCompare(b));
  const shown = isEmpty(given) ? names : names.filter((child) => child in given || needed.has(child));
  const make = (children) => children.map((child) => {
    const one = part(child, schema.properties[child], schemas, { required: needed.has(child), initial: given[child] });
    parts.push([child, one]);
    return one.element;
  });
  const fill = (details) => {
    details.append(...make(shown));
    const rest = names.filter((child) => !shown.includes(child));
    if (rest.length) details.append(folded("More fields of " + name + " (" + rest.length + ")", "", false, (more) => more.append(...make(rest))));
  };
  const element = folded(name + (required ? " *" : ""), schema.description, required || !isEmpty(given), fill);
  const value = () => {
    if (!parts.length) return initial;
    const made = new Set(parts.map(([child]) => child));
    const kept = Object.entries(given).filter(([child]) => !made.has(child));
    const found = [...kept, ...parts.map(([child, one]) => [child, one.value()]).filter(([, entered]) => entered !== undefined)];
    if (found.length) return Object.fromEntries(found);
    return initial !== undefined && isEmpty(initial) ? initial : undefined;
  };
  return { element, value };
}

// Parts that grow by a button. `make(index, initial)` makes one, `gather` the value of all.
function many(name, schema, initial, make, gather) {
  const parts = new Set(), rows = el("div"), present = initial || [];
  const append = (value) => {
    const one = make(parts.size, value);
    const row = el("div", { class: "item" }, one.element, el("button", { type: "button", "aria-label": "Remove item", onclick: () => { parts.delete(one); row.remove(); } }, "Remove"));
    parts.add(one);
    rows.append(row);
  };
  for (const value of present) append(value);
  const add = el("button", { type: "button", onclick: () => append(undefined) }, "Add to " + name);
  const element = folded(name, schema.description, present.length > 0, (details) => details.append(rows, add));
  const value = () => {
    const values = [...parts].map((one) => one.value()).filter((entered) => entered !== undefined);
    return values.length ? gather(values) : undefined;
  };
  return { element, value };
}

function list(name, schema, schemas, initial) {
  const title = (index, value) => (isMap(value) && typeof value.name === "string" ? index + ": " + value.name : String(index));
  const made = many(name, schema, initial, (index, value) => part(title(index, value), schema.items || {}, schemas, { required: true, item: true, initial: value }), (values) => values);
  return { element: made.element, value: () => made.value() ?? (initial !== undefined && isEmpty(initial) ? initial : undefined) };
}

function entries(name, schema, schemas, initial) {
  const make = (index, entry) => {
    const [known, content] = entry || [];
    const key = scalar("key", { type: "string" }, { required: true, initial: known });
    const below = part("value", schema.additionalProperties === true ? {} : schema.additionalProperties, schemas, { required: true, multiline: true, initial: content });
    return { element: el("div", {}, key.element, below.element), value: () => (key.value() === undefined ? undefined : [key.value(), below.value() === undefined ? "" : below.value()]) };
  };
  const made = many(name, schema, initial && Object.entries(initial), make, (values) => Object.fromEntries(values));
  return { element: made.element, value: () => made.value() ?? (initial !== undefined && isEmpty(initial) ? initial : undefined) };
}
