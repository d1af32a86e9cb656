// Routes of the console: the view is the URL. Hidden tabs hold no watch.
import { accessView } from "./access.js";
import { learnRules, may } from "./allowed.js";
import { applyView } from "./apply.js";
import { auditView } from "./audit.js";
import { call, discover, getJSON, hasToken, setToken } from "./api.js";
import { el, explain, isTyping, show } from "./dom.js";
import { findView } from "./find.js";
import { newView } from "./form.js";
import { homeView } from "./home.js";
import { objectView } from "./object.js";
import { serverView } from "./server.js";
import { endSession, hasSession, openLink } from "./session.js";
import { storeView } from "./store.js";
import { tableView } from "./table.js";

let kinds = [];
let running = new AbortController();
const search = document.getElementById("search"), namespaceBox = document.getElementById("namespace");

function drawKinds() {
  const text = search.value.toLowerCase();
  // Letters in order: "dpl" finds Deployment.
  const inOrder = (name) => {
    let at = 0;
    for (const letter of name.toLowerCase()) if (letter === text[at]) at++;
    return at >= text.length;
  };
  const matches = (kind) => inOrder(kind.kind) || inOrder(kind.plural) || kind.group.includes(text);
  const pane = document.getElementById("kinds");
  pane.replaceChildren();
  const draw = (place, some) => {
    let group = null;
    for (const kind of some) {
      if (kind.group !== group) place.append(el("h2", {}, kind.group || "core"));
      group = kind.group;
      const link = "#/list/" + [kind.group || "core", kind.version, kind.plural].map(encodeURIComponent).join("/");
      place.append(el("a", { href: link, "aria-current": location.hash.split("?")[0] === link ? "page" : undefined }, kind.kind));
    }
  };
  const found = kinds.filter(matches), closed = found.filter((kind) => !may("list", kind));
  draw(pane, found.filter((kind) => may("list", kind)));
  if (!closed.length) return;
  const rest = el("details", { open: text !== "" }, el("summary", {}, closed.length + " that you may not list"));
  draw(rest, closed);
  pane.append(rest);
}

function find(group, version, plural) {
  return kinds.find((kind) => (kind.group || "core") === group && kind.version === version && kind.plural === plural);
}

async function route() {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  drawKinds();
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...words] = path.split("/").map(decodeURIComponent);
  try {
    if (view === "server") return await serverView(signal);
    if (view === "store") return await storeView(signal);
    if (view === "audit") return await auditView(new URLSearchParams(query), signal);
    if (view === "access") return await accessView(namespaceBox.value, signal);
    if (view === "apply") return applyView(kinds, namespaceBox.value);
    if (view === "find" && words[0]) return await findView(words[0], kinds, namespaceBox.value, signal);
    const kind = find(...words.slice(0, 3));
    if (view === "list" && kind) return await tableView(kind, kind.namespaced ? namespaceBox.value : "", new URLSearchParams(query), signal);
    if (view === "new" && kind) return await newView(kind, namespaceBox.value, signal);
    if (view === "object" && kind) return await objectView(kind, words[3] === "-" ? "" : words[3], words[4], kinds, signal);
    await homeView(kinds, namespaceBox.value, signal);
  } catch (error) {
    if (!signal.aborted) show(el("p", { class: "bad" }, explain(error)));
  }
}

function signIn(reason) {
  const box = el("input", { type: "password", size: "60", "aria-label": "Token", autocomplete: "off" });
  const form = el("form", { onsubmit: (event) => { event.preventDefault(); setToken(box.value); begin(); } }, box, " ", el("button", { class: "primary" }, "Sign in"));
  show(el("h1", {}, "Sign in"), el("p", { class: "bad" }, reason),
       el("p", {}, "Use a browser with a client certificate, or paste a bearer token, such as one of ", el("code", {}, "kubectl create token NAME"), ". It is kept in this page only."), form,
       el("p", {}, "On the machine of the server, ", el("code", {}, "keelson console"), " prints a link that signs in."));
  box.focus();
}

async function begin(problem = "") {
  try {
    const review = await (await call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                                     { type: "application/json", body: '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}' })).json();
    const user = review.status.userInfo.username;
    if (user === "system:anonymous") return signIn(problem || "Nobody is signed in.");
    document.getElementById("user").textContent = user;
    document.getElementById("signout").hidden = !hasSession();
    [kinds] = await Promise.all([discover(), learnRules(namespaceBox.value)]);
  } catch (error) {
    return signIn(hasToken() ? explain(error) : problem || "Nobody is signed in.");
  }
  // Users who may not list namespaces choose among those with a role binding of theirs, or type a name.
  getJSON("/api/v1/namespaces?limit=500").then((list) => document.getElementById("namespaces").replaceChildren(
      ...list.items.map((item) => el("option", { value: item.metadata.name }))), async () => {
    namespaceBox.placeholder = "your namespace";
    const mine = await getJSON("/console/api/namespaces").catch(() => []);
    document.getElementById("namespaces").replaceChildren(...mine.map((name) => el("option", { value: name })));
  });
  await route();
}

search.addEventListener("input", drawKinds);
search.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || search.value === "") return;
  // Enter goes to the first kind; with Control, or when no kind fits, it looks for names.
  const first = document.querySelector("#kinds a");
  location.hash = first && !event.ctrlKey ? first.getAttribute("href") : "#/find/" + encodeURIComponent(search.value);
});
namespaceBox.addEventListener("change", () => learnRules(namespaceBox.value).then(route));
document.getElementById("readonly").addEventListener("change", route);
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    search.select();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping() || document.querySelector("dialog[open]")) return;
  const offered = [...document.querySelectorAll("main [data-key]")].find((element) => element.dataset.key === event.key);
  if (event.key === "/") search.focus();
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (offered) offered.click();
  else return;
  event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (!/^#\/(list|audit|server)\b/.test(location.hash)) return;
  if (document.hidden) running.abort();
  else route();
});
document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
window.addEventListener("hashchange", () => (location.hash.startsWith("#link=") ? openLink().then(begin) : route()));
document.getElementById("signout").addEventListener("click", () => endSession().then(() => location.reload()));
openLink().then(begin);
