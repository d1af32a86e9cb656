// Objects of any kind by a part of their name. Each kind is asked for names only, one after the other, so that a search is no storm.
import { getJSON, pathOf } from "./api.js";
import { el, show } from "./dom.js";

const NAMES_MAX = 2000, ROWS_MAX = 200;
const ACCEPT = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

export async function findView(text, kinds, namespace, signal) {
  const wanted = text.toLowerCase(), rows = el("tbody"), note = el("p", { class: "quiet", role: "status" });
  const head = el("tr", {}, ...["Kind", "Namespace", "Name"].map((name) => el("th", { scope: "col" }, name)));
  show(el("h1", {}, "Names with “" + text + "”"), note, el("table", {}, el("thead", {}, head), rows));
  const skipped = [], cut = [];
  let found = 0;
  for (const kind of kinds) {
    if (signal.aborted || found >= ROWS_MAX) break;
    if (kind.plural === "events") continue;
    note.textContent = "Looking at " + kind.plural + " …";
    let list;
    try {
      list = await getJSON(pathOf(kind, namespace) + "?limit=" + NAMES_MAX, { accept: ACCEPT, signal });
    } catch (error) {
      if (signal.aborted) return;
      skipped.push(kind.plural);
      continue;
    }
    if (list.metadata.continue) cut.push(kind.plural);
    for (const { metadata } of list.items || []) {
      if (!metadata.name.toLowerCase().includes(wanted) || found >= ROWS_MAX) continue;
      found++;
      const link = "#/object/" + [kind.group || "core", kind.version, kind.plural, metadata.namespace || "-", metadata.name].map(encodeURIComponent).join("/");
      rows.append(el("tr", {}, el("td", {}, kind.kind), el("td", {}, metadata.namespace || ""), el("td", {}, el("a", { href: link }, metadata.name))));
    }
  }
  if (signal.aborted) return;
  const parts = [found >= ROWS_MAX ? "The first " + ROWS_MAX + "." : found + " found."];
  if (cut.length) parts.push("Only the first " + NAMES_MAX + " of: " + cut.join(", ") + ".");
  if (skipped.length) parts.push("Not permitted or not readable: " + skipped.join(", ") + ".");
  note.textContent = parts.join(" ");
}
