// The user's permissions by SelfSubjectRulesReview: only permitted actions are offered. The server decides all the same.
import { call } from "./api.js";

let rules = null;  // null: not known, everything is offered

export async function learnRules(namespace, signal) {
  rules = null;
  const body = JSON.stringify({ apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace: namespace || "default" } });
  try {
    const { status } = await (await call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", { type: "application/json", body, signal })).json();
    if (!status.incomplete) rules = status.resourceRules || [];
  } catch { /* not known */ }
}

// Whether one of the rules gives the verb on the resource; those for certain objects count for these alone.
export function ruleAllows(rule, verb, group, resource, name) {
  const has = (list, ...wanted) => (list || []).some((item) => item === "*" || wanted.includes(item));
  const names = rule.resourceNames || [];
  const resources = resource.includes("/") ? [resource, "*/" + resource.split("/")[1]] : [resource];
  return has(rule.verbs, verb) && has(rule.apiGroups, group) && has(rule.resources, ...resources) && (!names.length || names.includes(name));
}

export function may(verb, kind, name = "", subresource = "") {
  const resource = kind.plural + (subresource ? "/" + subresource : "");
  return rules === null || rules.some((rule) => ruleAllows(rule, verb, kind.group, resource, name));
}
