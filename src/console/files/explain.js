// The text of the schema for the field at the cursor of a YAML editor, as in kubectl explain.
import { getJSON } from "./api.js";
import { el } from "./dom.js";
import { resolve } from "./fields.js";
import { schemaOf } from "./form.js";

// Names of the fields from the top to the line of the cursor, by indentation. Items of lists have no name.
export function pathAt(text, offset) {
  const lines = text.slice(0, offset).split("\n");
  lines[lines.length - 1] += text.slice(offset).split("\n")[0];
  const path = [];
  let limit = Infinity;
  for (const line of lines.reverse()) {
    const match = /^( *)((?:- )*)("[^"]*"|[^\s:#"'-][^:]*):(?: |$)/.exec(line);
    if (!match) continue;
    const dashes = match[1].length, indent = dashes + match[2].length;
    if (indent < limit) {
      path.unshift(match[3].replaceAll('"', ""));
      limit = indent;
    }
    // The list that an item belongs to may begin in the column of its dash.
    if (match[2] && indent === limit) limit = dashes + 1;
    if (limit === 0) break;
  }
  return path;
}

// {type, description} of the field, or null where the schema has no such field.
export function describe(path, schema, schemas) {
  let at = resolve(schema, schemas);
  const into = (next) => { at = next ? resolve(next, schemas) : null; };
  for (const name of path) {
    while (at && at.type === "array") into(at.items);
    if (!at) return null;
    if (at.properties && at.properties[name]) into(at.properties[name]);
    else if (at.additionalProperties && at.additionalProperties !== true) into(at.additionalProperties);
    else return null;
  }
  return at && { type: at.type || (at.properties ? "object" : ""), description: at.description || "" };
}

// A line below the editor that follows its cursor.
export function explainPane(editor, kind) {
  const pane = el("p", { class: "quiet explain", role: "status" });
  const document_ = getJSON("/openapi/v3" + kind.base);
  const update = async () => {
    const path = pathAt(editor.value, editor.selectionStart);
    const { components } = await document_.catch(() => ({ components: { schemas: {} } }));
    const found = describe(path, schemaOf({ components }, kind) || {}, components.schemas);
    pane.replaceChildren(...(found ? [el("b", {}, path.join(".")), found.type ? " <" + found.type + "> " : " ", found.description] : []));
  };
  for (const event of ["click", "keyup", "focus"]) editor.addEventListener(event, update);
  return pane;
}
