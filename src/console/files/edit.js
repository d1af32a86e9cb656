// One object as YAML in an editor. The text is compared with the object that was shown and only the changed fields are sent, so that defaulted fields and
// those of other managers stay as they are.
import { changing, MANAGER, readYAML } from "./change.js";
import { el } from "./dom.js";
import { explainPane } from "./explain.js";
import { mergePatch } from "./patch.js";
import { editable, toYAML } from "./yaml.js";

const identity = ({ apiVersion, kind, metadata }) => JSON.stringify([apiVersion, kind, metadata && metadata.name, (metadata && metadata.namespace) || ""]);

// The merge patch from `before` to what the text says.
export function changesOf(before, wanted) {
  if (wanted === null || typeof wanted !== "object" || Array.isArray(wanted)) throw Object.assign(new Error("The text is not an object."), { status: 0 });
  if (identity(wanted) !== identity(before)) throw Object.assign(new Error("The text names another object: an edit leaves apiVersion, kind, name and namespace as they are."), { status: 0 });
  return mergePatch(before, editable(wanted));
}

export function editor(kind, object, path, reload) {
  const before = editable(object), text = el("textarea", { "aria-label": "YAML", spellcheck: "false" });
  text.value = toYAML(before);
  const { check, save, result, outdate } = changing(path, object, async () => changesOf(before, await readYAML(text.value)), reload);
  text.addEventListener("input", outdate);
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) check(); });
  return el("section", {}, el("p", { class: "quiet" }, "What you change is sent as a patch by ", el("code", {}, MANAGER), ", nothing else: first a dry run, then the change. Control and Enter make the dry run."),
            text, explainPane(text, kind), el("div", { class: "tools" }, el("button", { onclick: check }, "Dry run"), save), result);
}
