// JSONPath as kubectl takes it for columns: .a.b, ['a'], [0], [-1], [*], .*, ..a, [?(@.type=="Ready")]; braces around it and `\.` in names are allowed.
const STEP = /^(?:\.\.(?<deep>(?:\\.|[^.[\]{}\\])+)|\.(?<name>(?:\\.|[^.[\]{}\\])+)|\[(?:(?<quote>['"])(?<quoted>.*?)\k<quote>|(?<index>-?\d+)|(?<all>\*)|\?\((?<filter>(?:"[^"]*"|'[^']*'|[^()'"])*)\))\])/;
const FILTER = /^\s*@(?<path>[^=!<>\s]*)\s*(?:(?<operator>==|!=|<=|>=|<|>)\s*(?<literal>"[^"]*"|'[^']*'|-?\d+(?:\.\d+)?|true|false|null))?\s*$/;
const COMPARE = { "==": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b };

const isObject = (value) => value !== null && typeof value === "object";
const members = (value) => (isObject(value) ? Object.values(value) : []);
const member = (value, name) => (isObject(value) && !Array.isArray(value) && Object.hasOwn(value, name) ? [value[name]] : []);

function deep(value, name) {
  return [...member(value, name), ...members(value).flatMap((item) => deep(item, name))];
}

function filterOf(text) {
  const found = FILTER.exec(text);
  if (!found) throw new Error("not a filter: " + text);
  const { path, operator, literal } = found.groups;
  const values = compile(path || ".");
  if (!operator) return (item) => values(item).length > 0;
  const wanted = /^['"]/.test(literal) ? literal.slice(1, -1) : JSON.parse(literal);
  return (item) => values(item).some((value) => COMPARE[operator](value, wanted));
}

function stepOf({ deep: deepName, name, quoted, index, all, filter }) {
  const plain = (text) => text.replace(/\\(.)/g, "$1");
  if (deepName !== undefined) return (value) => deep(value, plain(deepName));
  if (name === "*" || all) return members;
  if (name !== undefined) return (value) => member(value, plain(name));
  if (quoted !== undefined) return (value) => member(value, quoted);
  if (index !== undefined) return (value) => (Array.isArray(value) && value.at(Number(index)) !== undefined ? [value.at(Number(index))] : []);
  const holds = filterOf(filter);
  return (value) => (Array.isArray(value) ? value.filter(holds) : []);
}

// A function from an object to the values that the path finds. Throws if the text is not a path.
export function compile(text) {
  let rest = text.trim().replace(/^\{(.*)\}$/, "$1").trim().replace(/^\$/, "");
  const steps = [];
  if (rest === ".") rest = "";
  else if (rest !== "" && !/^[.[]/.test(rest)) rest = "." + rest;
  while (rest !== "") {
    const found = STEP.exec(rest);
    if (!found) throw new Error("not a JSONPath: " + text + " (at " + rest + ")");
    steps.push(stepOf(found.groups));
    rest = rest.slice(found[0].length);
  }
  return (object) => steps.reduce((values, step) => values.flatMap(step), [object]);
}

// The text of a cell: strings as they are, other values as JSON.
export function cellOf(values) {
  return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(",");
}
