// Changes of an object as a JSON merge patch: making one, and detecting concurrent changes of the same fields.
const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// Equality of JSON values; members of maps have no order.
export function same(a, b) {
  if (a === b) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object" || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}

// The merge patch (RFC 7386) that makes `to` of `from`. Lists are replaced as a whole.
export function mergePatch(from, to) {
  const patch = {};
  for (const key of Object.keys(from)) if (!(key in to)) patch[key] = null;
  for (const [key, value] of Object.entries(to)) {
    if (isMap(value) && isMap(from[key])) {
      const inner = mergePatch(from[key], value);
      if (Object.keys(inner).length) patch[key] = inner;
    } else if (!(key in from) || !same(value, from[key])) {
      patch[key] = value;
    }
  }
  return patch;
}

// Paths of the fields that the patch sets and that differ between `before`, which the patch was made from, and `now`.
export function changedMeanwhile(patch, before, now, path = "") {
  return Object.entries(patch).flatMap(([key, value]) => {
    const old = before[key], current = now[key];
    if (isMap(value) && isMap(old) && isMap(current)) return changedMeanwhile(value, old, current, path + "." + key);
    return same(old, current) ? [] : [path + "." + key];
  });
}
