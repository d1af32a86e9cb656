// Calls to the API server as the user: with the browser's client certificate, or a token that is kept in memory only.
let token = "";

export function setToken(text) { token = text.trim(); }
export function hasToken() { return token !== ""; }

export class APIError extends Error {
  constructor(status, body) {
    super(body && body.message ? body.message : "HTTP " + status);
    this.status = status;
    this.body = body;
  }
}

export async function call(method, path, options = {}) {
  const headers = { Accept: options.accept || "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  if (options.type) headers["Content-Type"] = options.type;
  const answer = await fetch(path, { method, headers, body: options.body, signal: options.signal, cache: "no-store", redirect: "error" });
  if (answer.ok) return answer;
  let body = null;
  try { body = JSON.parse(await answer.text()); } catch { /* not JSON: the status tells enough */ }
  throw new APIError(answer.status, body);
}

export async function getJSON(path, options) { return (await call("GET", path, options)).json(); }
export async function getText(path) { return (await call("GET", path, { accept: "text/plain, */*" })).text(); }

export const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

// A WebSocket of this server with one of the subprotocols. Browsers set no headers there: a token goes as a subprotocol.
export function socket(path, protocols) {
  const bytes = new TextEncoder().encode(token);
  const encoded = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return new WebSocket("wss://" + location.host + path, token ? [...protocols, "base64url.bearer.authorization.k8s.io." + encoded] : protocols);
}

// The lines of an answer as they come, until `signal` ends it.
export async function* lines(path, options) {
  const answer = await call("GET", path, options);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    for (let end = buffer.indexOf("\n"); end >= 0; end = buffer.indexOf("\n")) {
      const line = buffer.slice(0, end);
      buffer = buffer.slice(end + 1);
      yield line;
    }
  }
}

// The events of a watch, one by one, until `signal` ends it. Throws what the server says when it ends the watch with an error.
export async function* watch(path, options) {
  for await (const line of lines(path, options)) {
    if (line === "") continue;
    const event = JSON.parse(line);
    if (event.type === "ERROR") throw new APIError(event.object.code, event.object);
    yield event;
  }
}

// Every kind that can be listed, from aggregated discovery: {group, version, kind, plural, namespaced, verbs, path}.
export async function discover() {
  const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  const answers = await Promise.all(["/api", "/apis"].map((path) => getJSON(path, { accept })));
  const kinds = [];
  for (const group of answers.flatMap((answer) => answer.items || [])) {
    const name = (group.metadata && group.metadata.name) || "";
    const seen = new Set();
    for (const version of group.versions || []) {
      for (const resource of version.resources || []) {
        if (!resource.verbs.includes("list") || seen.has(resource.resource)) continue;
        seen.add(resource.resource);
        const base = name === "" ? "/api/" + version.version : "/apis/" + name + "/" + version.version;
        kinds.push({ group: name, version: version.version, kind: resource.responseKind.kind, plural: resource.resource,
                     namespaced: resource.scope === "Namespaced", verbs: resource.verbs, base });
      }
    }
  }
  return kinds.sort((a, b) => a.group.localeCompare(b.group) || a.kind.localeCompare(b.kind));
}

export function pathOf(kind, namespace, name) {
  let path = kind.base;
  if (kind.namespaced && namespace) path += "/namespaces/" + encodeURIComponent(namespace);
  path += "/" + kind.plural;
  return name ? path + "/" + encodeURIComponent(name) : path;
}
