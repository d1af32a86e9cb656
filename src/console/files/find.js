// Objects of any kind by a part of their name or letters of it in order, or by a label (app=web). Kinds are listed one after the other, names only, to limit the load of a search.
import { may } from "./allowed.js";
import { getJSON, pathOf } from "./api.js";
import { el, show } from "./dom.js";

const NAMES_MAX = 2000, ROWS_MAX = 200;
const ACCEPT = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

// 0: the name has the text; 1: it has its letters in order; -1: neither.
export function rank(name, text) {
  if (name.includes(text)) return 0;
  let at = 0;
  for (const letter of name) if (letter === text[at]) at++;
  return at >= text.length ? 1 : -1;
}

export async function findView(text, kinds, namespace, signal) {
  const wanted = text.toLowerCase(), byLabel = /^[\w./-]+(=|!=| in | notin )/.test(text), exact = el("tbody"), near = [], note = el("p", { class: "quiet", role: "status" });
  const head = el("tr", {}, ...["Kind", "Namespace", "Name"].map((name) => el("th", { scope: "col" }, name)));
  show(el("h1", {}, (byLabel ? "Labels " : "Names with “") + text + (byLabel ? "" : "”")), note, el("table", {}, el("thead", {}, head), exact));
  const skipped = [], cut = [];
  let found = 0;
  for (const kind of kinds) {
    if (signal.aborted || found >= ROWS_MAX) break;
    if (kind.plural === "events") continue;
    if (!may("list", kind)) { skipped.push(kind.plural); continue; }
    note.textContent = "Looking at " + kind.plural + " …";
    let list;
    try {
      list = await getJSON(pathOf(kind, namespace) + "?limit=" + NAMES_MAX + (byLabel ? "&labelSelector=" + encodeURIComponent(text) : ""), { accept: ACCEPT, signal });
    } catch (error) {
      if (signal.aborted) return;
      skipped.push(kind.plural);
      continue;
    }
    if (list.metadata.continue) cut.push(kind.plural);
    for (const { metadata } of list.items || []) {
      const place = byLabel ? 0 : rank(metadata.name.toLowerCase(), wanted);
      if (place < 0 || found >= ROWS_MAX || (place > 0 && near.length >= ROWS_MAX)) continue;
      found += place === 0 ? 1 : 0;
      const link = "#/object/" + [kind.group || "core", kind.version, kind.plural, metadata.namespace || "-", metadata.name].map(encodeURIComponent).join("/");
      (place === 0 ? exact.append.bind(exact) : near.push.bind(near))(el("tr", {}, el("td", {}, kind.kind), el("td", {}, metadata.namespace || ""), el("td", {}, el("a", { href: link }, metadata.name))));
    }
  }
  if (signal.aborted) return;
  // Letters in order fit many names: they are shown where no name has the text itself.
  if (found === 0) { exact.append(...near); found = near.length; }
  const parts = [found >= ROWS_MAX ? "The first " + ROWS_MAX + "." : found + " found."];
  if (cut.length) parts.push("Only the first " + NAMES_MAX + " of: " + cut.join(", ") + ".");
  if (skipped.length) parts.push("Not permitted or not readable: " + skipped.join(", ") + ".");
  note.textContent = parts.join(" ");
}
