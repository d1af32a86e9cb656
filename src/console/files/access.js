// Access reviews: your own rules in a namespace, and a check for any user.
import { call } from "./api.js";
import { el, explain, show } from "./dom.js";

const GROUP = "authorization.k8s.io/v1";

async function review(kind, spec, signal) {
  const path = "/apis/" + GROUP + "/" + kind.toLowerCase() + "s";
  const body = JSON.stringify({ apiVersion: GROUP, kind, spec });
  return (await (await call("POST", path, { type: "application/json", body, signal })).json()).status;
}

function box(name, label, value = "", placeholder = "") {
  return el("label", {}, label + " ", el("input", { name, value, placeholder, autocomplete: "off" }));
}

const list = (items, none) => (items && items.length ? items.map((item) => (item === "" ? "core" : item)).join(", ") : none);

// Rows of SelfSubjectRulesReview: [[verbs, what, names]], resources first.
export function ruleRows(status) {
  const rows = (status.resourceRules || []).map((rule) => [list(rule.verbs, ""), list(rule.resources, "") + " in " + list(rule.apiGroups, "no group"), list(rule.resourceNames, "all")]);
  return rows.concat((status.nonResourceRules || []).map((rule) => [list(rule.verbs, ""), list(rule.nonResourceURLs, ""), ""]));
}

function rulesTable(status) {
  const head = el("tr", {}, ...["Verbs", "What", "Names"].map((name) => el("th", { scope: "col" }, name)));
  const body = ruleRows(status).map((row) => el("tr", {}, ...row.map((cell) => el("td", { title: cell }, cell))));
  return el("div", {}, status.incomplete ? el("p", { class: "quiet" }, "The list is not complete: an authorizer cannot list its rules. " + (status.evaluationError || "")) : "",
            el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}

export async function accessView(namespace, signal) {
  const rules = el("div"), answer = el("p", { role: "status" });
  const mine = el("form", { class: "tools", onsubmit: async (event) => {
    event.preventDefault();
    try {
      rules.replaceChildren(rulesTable(await review("SelfSubjectRulesReview", { namespace: mine.elements.namespace.value }, signal)));
    } catch (error) {
      rules.replaceChildren(el("p", { class: "bad" }, explain(error)));
    }
  } }, box("namespace", "Namespace", namespace || "default"), el("button", {}, "Show"));
  const question = el("form", { class: "tools", onsubmit: async (event) => {
    event.preventDefault();
    const value = (name) => question.elements[name].value.trim();
    const resourceAttributes = { namespace: value("namespace"), verb: value("verb"), group: value("group"), resource: value("resource"), name: value("name") };
    const groups = value("groups").split(",").map((group) => group.trim()).filter((group) => group);
    const other = value("user") || groups.length;
    const spec = other ? { resourceAttributes, user: value("user"), groups } : { resourceAttributes };
    try {
      const status = await review(other ? "SubjectAccessReview" : "SelfSubjectAccessReview", spec, signal);
      answer.className = status.allowed ? "good" : "bad";
      answer.textContent = (status.allowed ? "Yes. " : "No. ") + (status.reason || status.evaluationError || "");
    } catch (error) {
      answer.className = "bad";
      answer.textContent = explain(error);
    }
  } }, box("user", "User", "", "you"), box("groups", "Groups"), box("verb", "Verb", "get"), box("group", "API group", "", "core"), box("resource", "Resource", "pods"),
  box("namespace", "Namespace", namespace, "all"), box("name", "Name", "", "all"), el("button", {}, "Ask"));
  show(el("h1", {}, "Access"), el("h2", {}, "What you may do in a namespace"), mine, rules, el("h2", {}, "May somebody do something?"), question, answer);
  mine.requestSubmit();
}
