// Values without a manager in managedFields: defaults and other server-set fields.
const CLIENT_SIDE = "kubectl-client-side-apply", LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
// Never in managedFields, although chosen by a user.
const IDENTITY = { "f:apiVersion": {}, "f:kind": {}, "f:metadata": { "f:name": {}, "f:namespace": {}, "f:generateName": {} } };

const isObject = (value) => value !== null && typeof value === "object";

function isItem(name, item, index) {
  try {
    if (name.startsWith("k:")) return isObject(item) && Object.entries(JSON.parse(name.slice(2))).every(([key, value]) => item[key] === value);
    if (name.startsWith("v:")) return JSON.stringify(item) === JSON.stringify(JSON.parse(name.slice(2)));
  } catch { /* not a name that the server writes */ }
  return name === "i:" + index;
}

// The entries of all managers' trees for one member.
function below(trees, value, key) {
  if (!Array.isArray(value)) return trees.map((tree) => tree["f:" + key]).filter((tree) => tree !== undefined);
  return trees.flatMap((tree) => Object.keys(tree).filter((name) => isItem(name, value[key], key)).map((name) => tree[name]));
}

// kubectl apply without --server-side owns defaults, too: what it was given is in its annotation.
function given(tree, value, text) {
  if (!isObject(text) || Object.keys(tree).length === 0) return tree;
  const kept = {};
  for (const [name, inner] of Object.entries(tree)) {
    if (name === ".") { kept[name] = inner; continue; }
    if (name.startsWith("f:")) {
      const key = name.slice(2);
      if (key in text) kept[name] = given(inner, isObject(value) ? value[key] : undefined, text[key]);
      continue;
    }
    // Items have the place in the text that they have in the object, unless they were reordered: then they count as owned.
    const index = Array.isArray(value) ? value.findIndex((item, at) => isItem(name, item, at)) : -1;
    const item = index >= 0 && Array.isArray(text) ? text[index] : undefined;
    kept[name] = given(inner, value && value[index], isObject(item) ? item : undefined);
  }
  return Object.keys(kept).length ? kept : { ".": {} };
}

function treesOf(object) {
  const { managedFields, annotations } = object.metadata;
  let text = null;
  try { text = JSON.parse((annotations || {})[LAST_APPLIED]); } catch { /* not applied by kubectl */ }
  const trees = managedFields.map(({ manager, operation, subresource, fieldsV1 }) => {
    const tree = fieldsV1 || {};
    if (!text || manager !== CLIENT_SIDE || operation !== "Update" || subresource) return tree;
    return given(tree, object, { ...text, metadata: { ...text.metadata, annotations: { ...(text.metadata || {}).annotations, [LAST_APPLIED]: "" } } });
  });
  return [IDENTITY, ...trees.filter((tree) => Object.keys(tree).length > 0)];
}

// JSON pointers of the topmost values without a manager; none when the object has no managedFields.
export function unowned(object) {
  const found = new Set();
  if (!(object.metadata && object.metadata.managedFields || []).length) return found;
  const visit = (value, trees, path) => {
    if (trees.some((tree) => Object.keys(tree).length === 0)) return;  // a manager owns all of it
    if (trees.length === 0) { found.add(path); return; }
    if (!isObject(value)) return;
    for (const key of Object.keys(value)) {
      if (path === "/metadata" && key === "managedFields") continue;
      visit(value[key], below(trees, value, Array.isArray(value) ? Number(key) : key), path + "/" + key);
    }
  };
  visit(object, treesOf(object), "");
  return found;
}
