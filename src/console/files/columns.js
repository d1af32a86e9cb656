// The columns of a table: those of the server's Table, or chosen ones, among them JSONPaths, written as kubectl's custom columns (Node:.spec.nodeName).
// A choice is in the address, and kept for its kind in this browser: names and paths, never values.
import { el, tell } from "./dom.js";
import { cellOf, compile } from "./jsonpath.js";

const OWN = /^([^:]+):(\s*[.{[$].*)$/;
const keyOf = (kind) => "keelson-columns:" + kind.group + "/" + kind.plural;

export function storedChoice(kind) {
  try {
    const stored = JSON.parse(localStorage.getItem(keyOf(kind)));
    return Array.isArray(stored) ? stored.filter((text) => typeof text === "string") : [];
  } catch {
    return [];  // nothing may be stored here
  }
}

export function storeChoice(kind, choice) {
  try {
    if (choice.length) localStorage.setItem(keyOf(kind), JSON.stringify(choice));
    else localStorage.removeItem(keyOf(kind));
  } catch { /* the address has it */ }
}

export const isOwn = (text) => OWN.test(text);

// [{name, description, text, cell(row)}] of the choice. Names that are neither a column of the table nor a path are left out.
export function chosenColumns(definitions, choice) {
  return choice.flatMap((text) => {
    const index = definitions.findIndex((column) => column.name === text);
    if (index >= 0) return [{ name: text, description: definitions[index].description, text, cell: (row) => row.cells[index] }];
    const own = OWN.exec(text);
    if (!own) return [];
    let values = () => [];
    try { values = compile(own[2]); } catch (error) { tell(error.message); }
    return [{ name: own[1], description: own[2].trim(), text, cell: (row) => cellOf(values(row.object)) }];
  });
}

// Columns of lower priority are kubectl's -o wide.
export function usualColumns(definitions, wide) {
  return definitions.flatMap((column, index) => (wide || column.priority === 0
    ? [{ name: column.name, description: column.description, text: column.name, cell: (row) => row.cells[index] }] : []));
}

// Choice and order of the columns: boxes, and a JSONPath to add. `change` gets the new choice, empty for the usual ones.
export function columnsPane(definitions, shown, change) {
  const texts = shown.map((column) => column.text);
  const names = [...texts, ...definitions.map((column) => column.name).filter((name) => !texts.includes(name))];
  const rows = names.map((text, at) => {
    const box = el("input", { type: "checkbox", id: "column-" + at, checked: at < texts.length });
    box.addEventListener("change", () => change(box.checked ? [...texts, text] : texts.filter((other) => other !== text)));
    const swap = () => change(texts.map((other, i) => (i === at - 1 ? text : i === at ? texts[at - 1] : other)));
    const first = at === 0 || at >= texts.length;
    return el("li", {}, box, " ", el("label", { for: "column-" + at }, text), " ", first ? "" : el("button", { type: "button", "aria-label": "Move " + text + " to the left", onclick: swap }, "←"));
  });
  const name = el("input", { "aria-label": "Name of the new column", placeholder: "Name: Node", size: "12" });
  const path = el("input", { "aria-label": "JSONPath of the new column", placeholder: "JSONPath: .spec.nodeName", size: "36", spellcheck: "false" });
  const problem = el("p", { class: "bad", role: "status" });
  const add = el("form", { class: "tools", onsubmit: (event) => {
    event.preventDefault();
    const text = (name.value.trim().replaceAll(":", " ") || path.value.trim().split(/[.[\]{}]+/).filter(Boolean).pop() || "") + ":" + path.value.trim().replace(/^(?=[^.{[$])/, ".");
    try {
      compile(path.value);
      if (!isOwn(text)) throw new Error("not a JSONPath: " + path.value);
      change([...texts, text]);
    } catch (error) {
      problem.textContent = error.message;
    }
  } }, name, path, el("button", {}, "Add"), el("button", { type: "button", onclick: () => change([]) }, "Usual columns"));
  return el("section", { class: "columns", "aria-label": "Columns" }, el("ul", {}, ...rows), add, problem);
}
