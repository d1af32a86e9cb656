// Earlier versions of one object: who changed what and when, each with its diff, and a way back. Versions are read from the store's own
// history: a list at an exact revision that selects one name is a single read. Compacted versions are gone, and the page says so.
import { call, getJSON, pathOf } from "./api.js";
import { el, explain, tell } from "./dom.js";
import { mergePatch } from "./patch.js";
import { diffLines, editable, toYAML } from "./yaml.js";

const MANAGER = "keelson-console", VERSIONS_PAGE = 10;

// The object as it was just before `version`; null when it did not exist. Throws 410 when that history is gone.
async function versionBefore(kind, object, version, signal) {
  const query = new URLSearchParams({ fieldSelector: "metadata.name=" + object.metadata.name, resourceVersionMatch: "Exact",
                                      resourceVersion: (BigInt(version) - 1n).toString() });
  const list = await getJSON(pathOf(kind, object.metadata.namespace) + "?" + query, { signal });
  const found = (list.items || [])[0];
  return found && found.metadata.uid === object.metadata.uid ? { apiVersion: object.apiVersion, kind: object.kind, ...found } : null;
}

const keyOf = (entry) => [entry.manager, entry.operation, entry.subresource || "", entry.apiVersion].join("|");

// Whether a set of fields has one that the older set has not.
function gained(older, newer) {
  return Object.entries(newer || {}).some(([key, below]) => !older || !(key in older) || gained(older[key], below));
}

// The managers that wrote the newer version: [{manager, operation, subresource, time}]. A manager that only lost fields to another is none of them.
export function changers(older, newer) {
  const before = new Map(((older && older.metadata.managedFields) || []).map((entry) => [keyOf(entry), entry]));
  return (newer.metadata.managedFields || []).filter((entry) => {
    const known = before.get(keyOf(entry));
    return !known || known.time !== entry.time || gained(known.fieldsV1, entry.fieldsV1);
  });
}

// The compared form: without fields that change with every write.
function comparable(object) {
  if (object === null) return "";
  const copy = structuredClone(object);
  delete copy.metadata.managedFields;
  delete copy.metadata.resourceVersion;
  return toYAML(copy);
}

export function drawDiff(before, after) {
  const rows = diffLines(before, after).filter((line) => line[0] !== " ");
  if (!rows.length) return el("p", {}, "No difference.");
  return el("pre", { tabindex: "0" }, ...rows.map((line) => el("span", { class: line[0] === "+" ? "added" : "removed" }, line + "\n")));
}

// Asks for a dry run of the way back, shows its diff, and does it on a second click. The current version is a precondition.
async function putBack(path, current, wanted, pane, reload) {
  const patch = mergePatch(editable(current), editable(wanted));
  if (!Object.keys(patch).length) return pane.replaceChildren(el("p", {}, "Nothing that can be set differs: only the status did."));
  patch.metadata = { ...patch.metadata, resourceVersion: current.metadata.resourceVersion };
  const send = (dry) => call("PATCH", path + "?" + new URLSearchParams({ fieldManager: MANAGER, ...(dry ? { dryRun: "All" } : {}) }),
                             { type: "application/merge-patch+json", body: JSON.stringify(patch) }).then((answer) => answer.json());
  try {
    const outcome = await send(true);
    const sure = el("button", { class: "primary", onclick: async () => {
      try { await send(false); tell("Put back."); reload(); } catch (error) { tell(explain(error)); }
    } }, "Put back now");
    pane.replaceChildren(el("h3", {}, "Dry run"), drawDiff(toYAML(editable(current)), toYAML(editable(outcome))), el("div", { class: "tools" }, sure));
    sure.focus();
  } catch (error) {
    pane.replaceChildren(el("p", { class: "bad" }, explain(error)));
  }
}

// A section with the versions of `current`, the newest first; older ones on request.
export function historyPane(kind, current, path, reload, mayWrite, signal) {
  const rows = el("tbody"), pane = el("div"), note = el("p", { class: "quiet" });
  const older = el("button", { hidden: true, onclick: () => load() }, "Older versions");
  let version = current;

  function row(newer, before) {
    const who = changers(before, newer);
    const when = who.map((entry) => entry.time || "").sort().pop() || (before === null ? newer.metadata.creationTimestamp : "");
    const names = who.map((entry) => entry.manager + (entry.subresource ? " (" + entry.subresource + ")" : "")).join(", ");
    const changed = diffLines(comparable(before), comparable(newer)).filter((line) => line[0] !== " ").length;
    const show = el("button", { onclick: () => pane.replaceChildren(el("h3", {}, "Version " + newer.metadata.resourceVersion), drawDiff(comparable(before), comparable(newer))) }, "Show");
    const undo = newer !== current && mayWrite ? el("button", { onclick: () => putBack(path, current, newer, pane, reload) }, "Put back") : "";
    rows.append(el("tr", {}, el("td", {}, when), el("td", {}, names || "not known"), el("td", {}, before === null ? "created" : changed + " lines"),
                   el("td", {}, newer.metadata.resourceVersion), el("td", {}, show, " ", undo)));
  }
  async function load() {
    older.hidden = true;
    for (let i = 0; i < VERSIONS_PAGE && version !== null && !signal.aborted; i++) {
      let before;
      try {
        before = await versionBefore(kind, current, version.metadata.resourceVersion, signal);
      } catch (error) {
        if (signal.aborted) return;
        note.textContent = error.status === 410 ? "Older versions were compacted; --etcd-compaction-interval sets how long they are kept." : explain(error);
        return;
      }
      row(version, before);
      version = before;
    }
    older.hidden = version === null;
  }
  load();
  const head = el("tr", {}, ...["When", "Who", "What", "Version", ""].map((name) => el("th", { scope: "col" }, name || el("span", { class: "unseen" }, "Actions"))));
  return el("div", {}, el("table", {}, el("thead", {}, head), rows), note, el("div", { class: "tools" }, older), pane);
}
