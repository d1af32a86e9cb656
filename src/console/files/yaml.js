// JSON values as YAML text, as kubectl prints them. Reading YAML is left to the server (change.js).
const PLAIN = /^[A-Za-z_./$][A-Za-z0-9_./$ -]*$/;
const WORDS = new Set(["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", ".inf", ".nan"]);

function scalar(value) {
  if (value === null || typeof value !== "string") return JSON.stringify(value);
  if (PLAIN.test(value) && !value.endsWith(" ") && !WORDS.has(value.toLowerCase())) return value;
  return JSON.stringify(value);
}

// Adds {text, grey} for each line. `grey` has the JSON pointers of what is printed grey, with all below it.
function lines(value, indent, out, grey, path = "", inside = false) {
  const pad = " ".repeat(indent);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const here = path + "/" + index, isGrey = inside || grey.has(here);
      if (isEmpty(item) || typeof item !== "object" || item === null) {
        out.push({ text: pad + "- " + inline(item), grey: isGrey });
      } else {
        const inner = [];
        lines(item, indent + 2, inner, grey, here, isGrey);
        inner[0].text = pad + "- " + inner[0].text.slice(indent + 2);
        out.push(...inner);
      }
    }
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    const name = pad + scalar(key) + ":", here = path + "/" + key, isGrey = inside || grey.has(here);
    const push = (text) => out.push({ text, grey: isGrey });
    if (typeof item === "string" && item.includes("\n") && !/[\r\t]|^\s|[ ]\n/.test(item) && /[^\n]/.test(item)) {
      const chomp = item.endsWith("\n\n") ? "+" : item.endsWith("\n") ? "" : "-";
      const text = chomp === "" ? item.slice(0, -1) : chomp === "+" ? item.slice(0, -1) : item;
      push(name + " |" + chomp);
      for (const line of text.split("\n")) push(line === "" ? "" : pad + "  " + line);
    } else if (isEmpty(item) || typeof item !== "object" || item === null) {
      push(name + " " + inline(item));
    } else {
      push(name);
      lines(item, Array.isArray(item) ? indent : indent + 2, out, grey, here, isGrey);
    }
  }
}

function isEmpty(value) { return value !== null && typeof value === "object" && Object.keys(value).length === 0; }
function inline(value) { return isEmpty(value) ? (Array.isArray(value) ? "[]" : "{}") : scalar(value); }

export function yamlLines(value, grey = new Set()) {
  if (isEmpty(value) || value === null || typeof value !== "object") return [{ text: inline(value), grey: grey.has("") }];
  const out = [];
  lines(value, 0, out, grey);
  return out;
}

export function toYAML(value) { return yamlLines(value).map((line) => line.text).join("\n") + "\n"; }

// Lines of both texts with "+", "-" or " " before them, by the longest common subsequence. Texts beyond the bound are reported as replaced.
const DIFF_MAX = 3000;
export function diffLines(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  if (a.length > DIFF_MAX || b.length > DIFF_MAX) return [...a.map((line) => "-" + line), ...b.map((line) => "+" + line)];
  const width = b.length + 1, length = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i * width + j] = a[i] === b[j] ? length[(i + 1) * width + j + 1] + 1 : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push(" " + a[i]); i++; j++; }
    else if (j < b.length && (i === a.length || length[i * width + j + 1] > length[(i + 1) * width + j])) { out.push("+" + b[j]); j++; }
    else { out.push("-" + a[i]); i++; }
  }
  return out;
}

// The edited form: without server-set fields. managedFields must not be in an apply request.
export function editable(object) {
  const copy = structuredClone(object);
  const metadata = copy.metadata || {};
  for (const field of ["managedFields", "creationTimestamp", "generation", "resourceVersion", "uid", "selfLink"]) delete metadata[field];
  delete copy.status;
  return copy;
}
