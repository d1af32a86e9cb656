// The neighbourhood of one object: the tree of its owners and of what it owns, and the pods that use it or that it sends to.
import { may } from "./allowed.js";
import { getJSON, pathOf } from "./api.js";
import { el } from "./dom.js";

const ITEMS_MAX = 500, OWNERS_MAX = 5, DEPTH_MAX = 8;
const META = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json", METAS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

export function linkTo(kind, namespace, name) {
  return "#/object/" + [kind.group || "core", kind.version, kind.plural, (kind.namespaced && namespace) || "-", name].map(encodeURIComponent).join("/");
}

// Kinds that the usual controllers own objects of; the others are looked at on request.
const OWNED = [["apps", "replicasets"], ["batch", "jobs"], ["", "pods"], ["apps", "controllerrevisions"], ["discovery.k8s.io", "endpointslices"], ["", "persistentvolumeclaims"]];
const isUsual = (kind) => OWNED.some(([group, plural]) => kind.group === group && kind.plural === plural);

// The owners above `metadata`, the nearest first: [{text, link, note}]. Of several owners the controller is followed.
async function ownersAbove(metadata, kinds, signal) {
  const chain = [];
  let { ownerReferences: references, namespace } = metadata;
  while (references && references.length && chain.length < OWNERS_MAX) {
    const followed = references.find((reference) => reference.controller) || references[0];
    const others = references.filter((reference) => reference !== followed).map((reference) => reference.kind + " " + reference.name);
    const group = followed.apiVersion.includes("/") ? followed.apiVersion.split("/")[0] : "";
    const kind = kinds.find((candidate) => candidate.group === group && candidate.kind === followed.kind);
    const owner = { text: followed.kind + " " + followed.name, link: kind && linkTo(kind, namespace, followed.name), note: others.length ? "and " + others.join(", ") : "" };
    chain.push(owner);
    if (!kind) return chain;
    try {
      const found = await getJSON(pathOf(kind, namespace, followed.name), { accept: META, signal });
      if (found.metadata.uid !== followed.uid) { owner.note = "gone: another object has its name"; return chain; }
      references = found.metadata.ownerReferences;
    } catch (error) {
      owner.note = error.status === 404 ? "gone" : "not readable";
      return chain;
    }
  }
  return chain;
}

// Items of the kinds by the uid of their owners: uid -> [{kind, metadata}].
async function byOwner(kinds, namespace, signal, tellKind = () => {}) {
  const found = new Map();
  for (const kind of kinds) {
    tellKind(kind);
    const list = await getJSON(pathOf(kind, namespace) + "?limit=" + ITEMS_MAX, { accept: METAS, signal }).catch(() => ({ items: [] }));
    for (const { metadata } of list.items || []) {
      for (const { uid } of metadata.ownerReferences || []) found.set(uid, [...(found.get(uid) || []), { kind, metadata }]);
    }
  }
  return found;
}

// What is below the object with this uid, as a nested list; null when there is nothing.
function below(uid, found, depth = 0) {
  const items = depth < DEPTH_MAX ? found.get(uid) || [] : [];
  if (!items.length) return null;
  return el("ul", {}, ...items.map(({ kind, metadata }) => el("li", {}, el("a", { href: linkTo(kind, metadata.namespace, metadata.name) }, kind.kind + " " + metadata.name), below(metadata.uid, found, depth + 1))));
}

export async function relations(kind, object, kinds, signal) {
  const { metadata } = object, note = el("p", { class: "quiet", role: "status" }), tree = el("div", { class: "tree" });
  const chain = await ownersAbove(metadata, kinds, signal);
  const inPlace = (candidate) => candidate.namespaced === Boolean(metadata.namespace) && candidate.plural !== "events" && may("list", candidate);
  const draw = (found) => {
    let part = el("ul", {}, el("li", {}, el("b", {}, kind.kind + " " + metadata.name), below(metadata.uid, found)));
    for (const { text, link, note: said } of chain) part = el("ul", {}, el("li", {}, link ? el("a", { href: link }, text) : text, said ? el("span", { class: "quiet" }, " " + said) : "", part));
    tree.replaceChildren(part);
    note.textContent = !chain.length && !found.get(metadata.uid) ? "No owner, and nothing found that it owns." : "";
  };
  draw(metadata.namespace ? await byOwner(kinds.filter((one) => isUsual(one) && inPlace(one)), metadata.namespace, signal) : new Map());
  const everywhere = el("button", { onclick: async () => {
    everywhere.disabled = true;
    draw(await byOwner(kinds.filter(inPlace), metadata.namespace, signal, (one) => { note.textContent = "Looking at " + one.plural + " …"; }));
    everywhere.disabled = false;
  } }, "Look in every kind");
  return el("div", {}, tree, note, el("div", { class: "tools" }, everywhere));
}

const USES = { configmaps: ["configMap", "configMapRef", "configMapKeyRef"], secrets: ["secret", "secretRef", "secretKeyRef", "imagePullSecrets"],
               persistentvolumeclaims: ["persistentVolumeClaim"], serviceaccounts: ["serviceAccountName"] };

// Whether a pod's spec names `name` below one of the members.
export function refersTo(value, members, name, inside = false) {
  if (value === null || typeof value !== "object") return inside && value === name;
  return Object.entries(value).some(([key, item]) => {
    const named = Array.isArray(value) ? inside : members.includes(key) || (inside && ["name", "secretName", "claimName"].includes(key));
    return refersTo(item, members, name, named);
  });
}

// Pods that use a ConfigMap, Secret, claim or service account, or that a Service sends to.
export async function users(kind, object, kinds, signal) {
  const namespace = object.metadata.namespace, name = object.metadata.name;
  const podKind = kinds.find((candidate) => candidate.group === "" && candidate.plural === "pods");
  if (!namespace || kind.group !== "" || !podKind) return null;
  const link = (pod) => el("li", {}, el("a", { href: linkTo(podKind, namespace, pod) }, "Pod " + pod));
  if (kind.plural === "services") {
    const slices = await getJSON("/apis/discovery.k8s.io/v1/namespaces/" + encodeURIComponent(namespace) + "/endpointslices?limit=" + ITEMS_MAX + "&labelSelector=" +
                                 encodeURIComponent("kubernetes.io/service-name=" + name), { signal });
    const pods = slices.items.flatMap((slice) => slice.endpoints || []).map((endpoint) => endpoint.targetRef).filter((target) => target && target.kind === "Pod");
    return pods.length ? el("ul", {}, ...pods.map((target) => link(target.name))) : el("p", { class: "quiet" }, "no pods");
  }
  if (!USES[kind.plural]) return null;
  const list = await getJSON(pathOf(podKind, namespace) + "?limit=" + ITEMS_MAX, { signal });
  const rows = list.items.filter((pod) => refersTo(pod.spec, USES[kind.plural], name)).map((pod) => link(pod.metadata.name));
  return rows.length ? el("ul", {}, ...rows) : el("p", { class: "quiet" }, "no pod" + (list.metadata.continue ? " among the first " + ITEMS_MAX : ""));
}
