// Objects from a YAML text by server-side apply, as kubectl apply --server-side does it: a dry run with the diff of each first; conflicts are named with their fields.
import { call, getJSON, pathOf } from "./api.js";
import { MANAGER, problem, readYAML } from "./change.js";
import { el, explain, mayWrite, show, tell } from "./dom.js";
import { drawDiff } from "./history.js";
import { editable, toYAML } from "./yaml.js";

// The documents of a text that hold more than comments.
export function documents(text) {
  return text.split(/^---(?:[ \t].*)?$/m).filter((part) => /^[ \t]*[^\s#]/m.test(part));
}

const known = (message) => Object.assign(new Error(message), { status: 0 });

// Where an object goes: {kind, namespace, path, name}.
export function placeOf(object, kinds, namespace) {
  const { apiVersion, kind: name, metadata } = object || {};
  if (!apiVersion || !name || !metadata || !metadata.name) throw known("An object needs apiVersion, kind and metadata.name.");
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const found = kinds.find((kind) => kind.group === group && kind.kind === name);
  if (!found) throw known("This server has no kind " + name + " in " + (group || "the core group") + ".");
  const kind = { ...found, version, base: group ? "/apis/" + group + "/" + version : "/api/" + version };
  const place = kind.namespaced ? metadata.namespace || namespace || "default" : "";
  return { kind, namespace: place, name: metadata.name, path: pathOf(kind, place, metadata.name) };
}

async function read(text) {
  const objects = [];
  for (const one of documents(text)) {
    const value = await readYAML(one);
    objects.push(...(value && value.kind === "List" ? value.items || [] : [value]));
  }
  if (!objects.length) throw known("There is no object in the text.");
  return objects;
}

export function applyView(kinds, namespace) {
  const text = el("textarea", { "aria-label": "YAML", spellcheck: "false", placeholder: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: greeting\ndata:\n  hello: world" });
  const result = el("div", { role: "status" }), force = el("input", { type: "checkbox", id: "force" });
  const send = async (object, { path }, dry) => {
    const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict", ...(dry ? { dryRun: "All" } : {}), ...(force.checked ? { force: "true" } : {}) });
    return (await call("PATCH", path + "?" + query, { type: "application/apply-patch+yaml", body: JSON.stringify(object) })).json();
  };
  // One object's part of the result, and whether it went well.
  const one = async (object, dry) => {
    let place = null;
    const title = () => (place ? place.kind.kind + " " + (place.namespace ? place.namespace + "/" : "") + place.name : "An object");
    try {
      place = placeOf(object, kinds, namespace);
      const current = await getJSON(place.path).catch((error) => { if (error.status === 404) return null; throw error; });
      const outcome = await send(object, place, dry);
      const before = current ? toYAML(editable(current)) : "", after = toYAML(editable(outcome));
      const said = (dry ? "would be " : "") + (current ? (before === after ? "unchanged" : "changed") : "created");
      const link = "#/object/" + [place.kind.group || "core", place.kind.version, place.kind.plural, place.namespace || "-", place.name].map(encodeURIComponent).join("/");
      return [true, el("div", {}, el("h2", {}, dry ? title() : el("a", { href: link }, title()), ": " + said), dry && before !== after ? drawDiff(before, after) : "")];
    } catch (error) {
      const advice = error.status === 409 ? el("p", {}, "Others manage these fields. Leave them out of the text, or take them over with the box above.") : "";
      return [false, el("div", {}, el("h2", {}, title()), ...problem(error), advice)];
    }
  };
  const all = async (dry) => {
    apply.disabled = true;
    try {
      const outcomes = [];
      for (const object of await read(text.value)) outcomes.push(await one(object, dry));
      result.replaceChildren(...outcomes.map(([, part]) => part));
      apply.disabled = !dry || !outcomes.every(([good]) => good);
      if (!dry) tell(outcomes.every(([good]) => good) ? "Applied." : "Not everything was applied.");
    } catch (error) {
      result.replaceChildren(el("p", { class: "bad" }, explain(error)));
    }
  };
  const apply = el("button", { class: "primary", disabled: true, onclick: () => all(false) }, "Apply");
  text.addEventListener("input", () => { apply.disabled = true; });
  force.addEventListener("change", () => { apply.disabled = true; });
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) all(true); });
  const tools = mayWrite() ? [el("button", { onclick: () => all(true) }, "Dry run"), apply, force, el("label", { for: "force" }, "take over fields of others")] : [el("p", {}, "Read only.")];
  show(el("h1", {}, "Apply YAML"), el("p", { class: "quiet" }, "Server-side apply as ", el("code", {}, MANAGER), ", one object or several with --- between them. Control and Enter make the dry run."),
       text, el("div", { class: "tools" }, ...tools), result);
  text.focus();
}
