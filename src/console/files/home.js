// The first view: whether the server is well, what went wrong lately, what there is most of.
import { may } from "./allowed.js";
import { getJSON, getText, pathOf } from "./api.js";
import { el, explain, show } from "./dom.js";
import { linkTo } from "./relations.js";
import { health, parseMetrics } from "./server.js";

const WARNINGS_MAX = 10, KINDS_SHOWN = 12;

// Kinds with their number of objects, the most numerous first: [{kind, count}].
export function counted(metrics, kinds) {
  const found = [];
  for (const { labels, value } of metrics.get("apiserver_resource_objects") || []) {
    const kind = kinds.find((one) => one.plural === labels.resource && one.group === (labels.group || ""));
    if (kind && value > 0) found.push({ kind, count: value });
  }
  return found.sort((a, b) => b.count - a.count).slice(0, KINDS_SHOWN);
}

async function warnings(kinds, namespace, signal) {
  const kind = kinds.find((one) => one.group === "" && one.plural === "events");
  if (!kind || !may("list", kind)) return null;
  const list = await getJSON(pathOf(kind, namespace) + "?limit=500&fieldSelector=" + encodeURIComponent("type=Warning"), { signal });
  const when = (event) => event.lastTimestamp || event.eventTime || event.metadata.creationTimestamp || "";
  const rows = list.items.sort((a, b) => when(b).localeCompare(when(a))).slice(0, WARNINGS_MAX).map((event) => {
    const about = event.involvedObject, [group] = (about.apiVersion || "").includes("/") ? about.apiVersion.split("/") : [""];
    const aboutKind = kinds.find((one) => one.kind === about.kind && one.group === group), text = about.kind + " " + about.name;
    return el("tr", {}, el("td", {}, when(event)), el("td", {}, aboutKind ? el("a", { href: linkTo(aboutKind, about.namespace, about.name) }, text) : text),
              el("td", {}, event.reason || ""), el("td", { title: event.message }, event.message || ""));
  });
  if (!rows.length) return el("p", { class: "quiet" }, "None.");
  return el("table", {}, el("thead", {}, el("tr", {}, ...["Last seen", "About", "Reason", "Message"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows));
}

async function numbers(kinds) {
  const rows = counted(parseMetrics(await getText("/metrics")), kinds);
  return el("ul", { class: "tiles" }, ...rows.map(({ kind, count }) => el("li", {}, el("a", { href: "#/list/" + [kind.group || "core", kind.version, kind.plural].map(encodeURIComponent).join("/") },
                                                                                el("b", {}, String(count)), " " + kind.kind))));
}

export async function homeView(kinds, namespace, signal) {
  const state = el("div"), more = el("div");
  show(el("h1", {}, "Keelson"), el("p", {}, "Choose a kind on the left, or press / and type a few letters of its name. Control and Enter look for objects by name or label; ? shows every key."), state, more);
  // Each part stands alone: somebody may be permitted one and not the other.
  const part = async (title, making) => {
    try {
      const made = await making;
      if (made) more.append(el("h2", {}, title), made);
    } catch (error) {
      if (!signal.aborted && error.status !== 403) more.append(el("h2", {}, title), el("p", { class: "bad" }, explain(error)));
    }
  };
  await health().then((made) => state.append(made), () => {});
  await part("Warnings" + (namespace ? " in " + namespace : ""), warnings(kinds, namespace, signal));
  await part("Most numerous", numbers(kinds));
}
