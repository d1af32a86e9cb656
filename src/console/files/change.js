// Changes of one object by any editor: a dry run with its diff first, then a patch with only the changed fields. Fields of other managers are named before
// they are taken over.
import { call, getJSON } from "./api.js";
import { el, explain, tell } from "./dom.js";
import { drawDiff } from "./history.js";
import { changedMeanwhile } from "./patch.js";
import { editable, toYAML } from "./yaml.js";

export const MANAGER = "keelson-console";
const ATTEMPTS_MAX = 5, FIELDS_SHOWN_MAX = 20;

// Converts YAML text to a value, on the server.
export async function readYAML(text, signal) {
  return (await call("POST", "/console/api/yaml", { type: "application/yaml", body: text, signal })).json();
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

function step(name) {
  if (name.startsWith("f:")) return "." + name.slice(2);
  return "[" + name.slice(2) + "]";
}

// Paths of a manager's fields in `before` that are not in `after`.
function lost(before, after, path = "") {
  return Object.entries(before || {}).flatMap(([name, below]) => {
    const kept = after && after[name];
    if (name === ".") return kept ? [] : [path];
    return Object.keys(below).length ? lost(below, kept, path + step(name)) : kept ? [] : [path + step(name)];
  });
}

// Fields that other managers lose: [{manager, field}], from the managedFields of the dry run's result.
export function takenFrom(before, after) {
  const keyOf = (entry) => [entry.manager, entry.operation, entry.subresource || ""].join("|");
  const left = new Map((after.metadata.managedFields || []).map((entry) => [keyOf(entry), entry.fieldsV1]));
  return (before.metadata.managedFields || []).filter((entry) => entry.manager !== MANAGER && !entry.subresource)
      .flatMap((entry) => lost(entry.fieldsV1, left.get(keyOf(entry))).map((field) => ({ manager: entry.manager, field })));
}

// The error, with the fields that the server names.
export function problem(error) {
  const causes = ((error.body && error.body.details && error.body.details.causes) || []).map((cause) => el("li", {}, (cause.field || "") + ": " + cause.message));
  return [el("p", { class: "bad" }, error instanceof SyntaxError ? "Not JSON: " + error.message : explain(error)), el("ul", {}, ...causes)];
}

// Lists the fields that are taken from others and a box for consent; `onchange(given)` is called with its state.
function consent(taken, onchange) {
  const rows = taken.slice(0, FIELDS_SHOWN_MAX).map(({ manager, field }) => el("li", {}, el("code", {}, field), ", managed by ", el("b", {}, manager)));
  if (taken.length > rows.length) rows.push(el("li", {}, "and " + (taken.length - rows.length) + " more"));
  const box = el("input", { type: "checkbox", id: "take-over", onchange: () => onchange(box.checked) });
  return el("div", { class: "warning" }, el("p", {}, "Conflict: others manage fields that this changes. They may set them again."), el("ul", {}, ...rows), box, " ", el("label", { for: "take-over" }, "take these fields over"));
}

// The parts of an editor: `check()` makes the dry run and shows it in `result`, `save` is the button that writes, `outdate()` disables it after another change of
// the text. `changes()` returns the merge patch from `object`.
export function changing(path, object, changes, reload) {
  const result = el("div", { role: "status" });
  let checked = "";
  const send = async (dry) => {
    try {
      const patch = await changes();
      if (!Object.keys(patch).length) return result.replaceChildren(el("p", {}, "Nothing is changed."));
      // The dry run's result is what is written.
      const again = dry || JSON.stringify(patch) !== checked;
      const { clashes, current, outcome } = await sendPatch(path, object, patch, again);
      if (clashes) {
        return result.replaceChildren(el("p", { class: "bad" }, "Somebody else has changed the same fields since this was opened:"), el("ul", {}, ...clashes.map((field) => el("li", {}, field))),
                                      el("div", { class: "tools" }, el("button", { type: "button", onclick: reload }, "Open the new version")));
      }
      if (!again) {
        tell("Saved.");
        return reload();
      }
      checked = JSON.stringify(patch);
      const taken = takenFrom(current, outcome);
      save.disabled = taken.length > 0;
      result.replaceChildren(el("h2", {}, "Dry run"), drawDiff(toYAML(editable(current)), toYAML(editable(outcome))),
                             taken.length ? consent(taken, (given) => { save.disabled = !given; }) : "");
    } catch (error) {
      result.replaceChildren(...problem(error));
    }
  };
  const save = el("button", { type: "button", class: "primary", disabled: true, onclick: () => send(false) }, "Save");
  return { check: () => { save.disabled = true; return send(true); }, save, result, outdate: () => { save.disabled = true; } };
}
