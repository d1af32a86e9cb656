// The console in a real Chromium, driven by Playwright. usage: node console.mjs URL [NAME ...]; console_test.py starts the server and says which tokens it knows.
// KEELSON_PLAYWRIGHT: the node_modules folder with playwright-core and axe-core. KEELSON_CONSOLE_FILES: a folder whose files take the place of the served ones, to try
// changes of the pages without a build.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";  // the server's own authority, on 127.0.0.1
process.removeAllListeners("warning");
const modules = process.env.KEELSON_PLAYWRIGHT;
const { chromium } = createRequire(path.join(modules, "x.js"))("playwright-core");
const axe = readFileSync(path.join(modules, "axe-core/axe.min.js"), "utf8");
const [url, ...chosen] = process.argv.slice(2);
const ADMIN = "admin-token", GUEST = "guest-token";
const MAPS = "/api/v1/namespaces/default/configmaps", DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments", PODS = "/api/v1/namespaces/default/pods";

async function api(method, where, body, type = "application/json") {
  const answer = await fetch(url + where, { method, headers: { Authorization: "Bearer " + ADMIN, "Content-Type": type }, body: body && JSON.stringify(body) });
  const text = await answer.text();
  assert.ok(answer.ok, method + " " + where + ": " + answer.status + " " + text);
  return JSON.parse(text);
}

const apply = (where, manager, body) => api("PATCH", where + "?fieldManager=" + manager, body, "application/apply-patch+yaml");
const configMap = (name, data, labels) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels }, data });
const deployment = (name, replicas) => ({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name }, spec: { replicas, selector: { matchLabels: { app: name } }, template: {
  metadata: { labels: { app: name } }, spec: { containers: [{ name: "main", image: "example.com/web:1", ports: [{ containerPort: 80 }] }] } } } });
const pod = (name, node) => ({ apiVersion: "v1", kind: "Pod", metadata: { name, labels: { "example.com/team": "a-" + name } }, spec: { nodeName: node, containers: [{ name: "c", image: "example.com/" + name }] } });

// No finding of axe, in light and in dark.
async function accessible(page, view) {
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    // Through the debugging protocol: the policy of the page allows no script of others.
    const findings = await page.evaluate(axe + "; axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target.join(' ')).slice(0, 3)))");
    assert.deepEqual(findings, [], view + ", " + colorScheme);
  }
}

async function signIn(page, token) {
  await page.goto(url + "/console");
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#kinds a").first().waitFor();
}
const go = (page, hash) => page.evaluate((to) => { location.hash = to; }, hash);
const row = (page, name) => page.locator("main tbody tr", { has: page.getByRole("link", { name, exact: true }) });
const headings = (page) => page.locator("main th").allTextContents();
const until = async (check, what) => {
  const end = Date.now() + 60000;
  for (;;) {
    try { await check(); return; } catch (error) { if (Date.now() > end) throw new Error(what + ": " + error.message); }
    await new Promise((done) => setTimeout(done, 50));
  }
};

const TESTS = {
  async defaults(page) {
    await apply(DEPLOYMENTS + "/applied", "somebody", deployment("applied", 2));
    await signIn(page, ADMIN);
    await go(page, "#/object/apps/v1/deployments/default/applied");
    const yaml = page.locator("main pre").first();
    await yaml.getByText("terminationMessagePath").waitFor();
    const grey = async () => (await yaml.locator(".default").allTextContents()).join("");
    const all = await yaml.textContent(), greyed = await grey();
    for (const text of ["terminationMessagePath", "revisionHistoryLimit", "dnsPolicy", "protocol: TCP", "uid:", "rollingUpdate:", "maxSurge"]) assert.ok(greyed.includes(text), text + " is not grey:\n" + greyed);
    for (const text of ["replicas: 2", "image:", "containerPort: 80", "apiVersion:", "kind:", "name: applied", "matchLabels"]) {
      assert.ok(all.includes(text), text);
      assert.ok(!greyed.includes(text), text + " is grey:\n" + greyed);
    }
    // What somebody takes over is grey no more.
    await apply(DEPLOYMENTS + "/applied", "another", { apiVersion: "apps/v1", kind: "Deployment", spec: { revisionHistoryLimit: 10 } });
    await signIn(page, ADMIN);
    await go(page, "#/object/apps/v1/deployments/default/applied");
    await yaml.getByText("terminationMessagePath").waitFor();
    assert.ok(!(await grey()).includes("revisionHistoryLimit") && (await grey()).includes("dnsPolicy"));
    await accessible(page, "defaults");
    await page.getByLabel("hide them").check();
    const short = await yaml.textContent();
    assert.ok(!short.includes("terminationMessagePath") && !short.includes("uid:") && short.includes("containerPort: 80"), short);
    await accessible(page, "without defaults");

    // kubectl apply without --server-side owns the defaults, too; its annotation has what it was given.
    const given = deployment("classic", 3);
    await api("POST", DEPLOYMENTS + "?fieldManager=kubectl-client-side-apply",
              { ...given, metadata: { ...given.metadata, annotations: { "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(given) } } });
    await go(page, "#/object/apps/v1/deployments/default/classic");
    await page.getByRole("heading", { name: "default/classic" }).waitFor();
    assert.ok((await grey()).includes("terminationMessagePath") && (await grey()).includes("dnsPolicy"), await grey());
    assert.ok(!(await grey()).includes("replicas") && !(await grey()).includes("image:") && !(await grey()).includes("last-applied"), await grey());

    // A ConfigMap has no defaults: only what the server counts is grey.
    await api("POST", MAPS + "?fieldManager=somebody", configMap("plain", { a: "b" }));
    await go(page, "#/object/core/v1/configmaps/default/plain");
    await page.getByRole("heading", { name: "default/plain" }).waitFor();
    assert.ok(!(await grey()).includes("a: b") && (await grey()).includes("resourceVersion"), await grey());
  },

  // An edit of the YAML: what was changed is sent, and nothing else.
  async edit(page) {
    const at = DEPLOYMENTS + "/edited", mine = (object) => object.metadata.managedFields.filter((entry) => entry.manager === "keelson-console");
    await apply(at, "pipeline", deployment("edited", 2));
    const before = await api("GET", at);
    await signIn(page, ADMIN);
    await go(page, "#/object/apps/v1/deployments/default/edited");
    const edit = async (from, to) => {
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      const text = page.getByLabel("YAML", { exact: true }), old = await text.inputValue();
      assert.ok(old.includes(from), old);
      await text.fill(old.replace(from, to));
      await page.getByRole("button", { name: "Dry run" }).click();
    };
    const save = page.getByRole("button", { name: "Save" });
    // A field that nobody set, and one that is new: no conflict, and no other field changes hands.
    await edit("revisionHistoryLimit: 10", "revisionHistoryLimit: 3\n  paused: true");
    await page.getByText("+  revisionHistoryLimit: 3").waitFor();
    assert.equal(await page.getByText("Conflict").count(), 0);
    await accessible(page, "edit");
    await save.click();
    await page.getByText("Saved.").waitFor();
    let now = await api("GET", at);
    assert.deepEqual(mine(now).map((entry) => [entry.operation, entry.fieldsV1]), [["Update", { "f:spec": { "f:paused": {}, "f:revisionHistoryLimit": {} } }]]);
    const owned = (object) => object.metadata.managedFields.find((entry) => entry.manager === "pipeline").fieldsV1;
    assert.deepEqual(owned(now), owned(before));
    assert.equal(now.spec.revisionHistoryLimit, 3);
    // A field of somebody else is named and needs consent.
    await edit("image: \"example.com/web:1\"", "image: \"example.com/web:2\"");
    await page.getByText('.spec.template.spec.containers[{"name":"main"}].image, managed by pipeline').waitFor();
    assert.ok(await save.isDisabled());
    await accessible(page, "edit, conflict");
    await page.getByLabel("take these fields over").check();
    await save.click();
    await until(async () => assert.equal((await api("GET", at)).spec.template.spec.containers[0].image, "example.com/web:2"), "not saved");
    await until(async () => assert.equal(await page.locator("main textarea").count(), 0), "the saved object is not shown");
    now = await api("GET", at);
    assert.equal(now.spec.template.spec.containers[0].image, "example.com/web:2");
    assert.ok(JSON.stringify(owned(now)).includes("f:replicas") && !JSON.stringify(owned(now)).includes("f:image"), JSON.stringify(owned(now)));
    // A line that is removed is removed from the object. A change of others elsewhere is no conflict, one of the same field is.
    await edit("  paused: true\n", "");
    await page.getByText("-  paused: true").waitFor();
    await api("PATCH", at + "?fieldManager=autoscaler", { spec: { replicas: 5 } }, "application/merge-patch+json");
    await save.click();
    await until(async () => assert.ok(!("paused" in (await api("GET", at)).spec)), "not removed");
    await until(async () => assert.equal(await page.locator("main textarea").count(), 0), "the saved object is not shown");
    assert.equal((await api("GET", at)).spec.replicas, 5);
    await page.locator("main pre", { hasText: "replicas: 5" }).first().waitFor();
    await edit("replicas: 5", "replicas: 6");
    await page.getByText(".spec.replicas, managed by autoscaler").waitFor();
    await api("PATCH", at + "?fieldManager=autoscaler", { spec: { replicas: 7 } }, "application/merge-patch+json");
    await page.getByLabel("take these fields over").check();
    await save.click();
    await page.getByText("Somebody else has changed the same fields").waitFor();
    assert.equal((await api("GET", at)).spec.replicas, 7);
    await page.getByRole("button", { name: "Open the new version" }).click();
    await page.locator("main pre", { hasText: "replicas: 7" }).first().waitFor();
    // Mistakes are told, with their line; nothing is sent.
    await edit("  replicas: 7", "  replicas: : 7");
    await page.getByText("mapping values are not allowed").waitFor();
    await edit("name: edited", "name: another");
    await page.getByText("names another object").waitFor();
    await edit("replicas: 7", "replicas: 7\n  replicaz: 1");
    await page.getByText('unknown field "spec.replicaz"').first().waitFor();
    await edit("replicas: 7", "replicas: 7 # as it was");
    await page.getByText("Nothing is changed.").waitFor();
  },

  // A text with several objects by server-side apply.
  async apply(page) {
    await api("POST", MAPS + "?fieldManager=somebody", configMap("theirs", { a: "b" }));
    await signIn(page, ADMIN);
    await page.getByRole("link", { name: "Apply" }).click();
    const text = page.getByLabel("YAML", { exact: true }), press = (name) => page.getByRole("button", { name }).click();
    await text.fill("---\n# two\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: pasted}\ndata:\n  hello: world\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}\ndata: {a: c}\n");
    await press("Dry run");
    await page.getByText("ConfigMap default/pasted: would be created").waitFor();
    await page.getByText('conflict with "somebody"').first().waitFor();
    assert.ok(await page.getByRole("button", { name: "Apply" }).isDisabled());
    await accessible(page, "apply");
    await page.getByLabel("take over fields of others").check();
    await press("Dry run");
    await page.getByText("ConfigMap default/theirs: would be changed").waitFor();
    await page.getByText("+  a: c").waitFor();
    await press("Apply");
    await page.getByText("Applied.").waitFor();
    assert.equal((await api("GET", MAPS + "/theirs")).data.a, "c");
    assert.deepEqual((await api("GET", MAPS + "/pasted")).metadata.managedFields.map((entry) => [entry.manager, entry.operation]), [["keelson-console", "Apply"]]);
    for (const [wrong, said] of [["a: b: c", "mapping values"], ["a: b", "needs apiVersion"], ["# nothing", "no object in the text"], ["apiVersion: x/v1\nkind: Other\nmetadata: {name: z}", "no kind Other in x"]]) {
      await text.fill(wrong);
      await press("Dry run");
      await page.getByText(said).waitFor();
    }
  },

  async columns(page) {
    await api("POST", PODS, pod("left", "node-a"));
    await api("POST", PODS, pod("right", "node-b"));
    await signIn(page, ADMIN);
    await go(page, "#/list/core/v1/pods");
    await row(page, "left").waitFor();
    assert.ok((await headings(page)).includes("Restarts"));
    await page.getByRole("button", { name: "Columns" }).click();
    await accessible(page, "columns");
    await page.getByRole("checkbox", { name: "Restarts" }).uncheck();
    await until(async () => assert.ok(!(await headings(page)).includes("Restarts") && page.url().includes("column=Name")), "a column is left out");
    // A column of -o wide, and one by a path; the names of both are in the address.
    await page.getByRole("checkbox", { name: "Nominated Node" }).check();
    await until(async () => assert.ok((await headings(page)).includes("Nominated Node")), "a wide column");
    await page.getByLabel("JSONPath of the new column").fill(".spec.containers[?(@.name==\"c\")].image");
    await page.getByLabel("Name of the new column").fill("Image");
    await page.getByRole("button", { name: "Add" }).click();
    await row(page, "left").getByText("example.com/left").waitFor();
    await page.getByLabel("JSONPath of the new column").fill("{.metadata.labels.example\\.com/team}");
    await page.getByRole("button", { name: "Add" }).click();
    await row(page, "right").getByText("a-right").waitFor();
    assert.deepEqual((await headings(page)).slice(-2), ["Image", "com/team"]);
    // Its order.
    await page.getByRole("button", { name: "Move Image:.spec.containers[?(@.name==\"c\")].image to the left" }).click();
    await until(async () => assert.deepEqual((await headings(page)).slice(-3), ["Image", "Nominated Node", "com/team"]), "moved");
    // Sorted by it, filtered by it, and live.
    await page.getByRole("columnheader", { name: "Image" }).click();
    await page.getByRole("columnheader", { name: "Image" }).click();
    assert.equal(await page.locator("main tbody a").first().textContent(), "right");
    await page.getByLabel("Filter rows").fill("example.com/middle");
    await api("POST", PODS, pod("middle", "node-c"));
    await row(page, "middle").getByText("example.com/middle").waitFor();
    assert.equal(await page.locator("main tbody a").count(), 1);
    await page.getByLabel("Filter rows").fill("");
    // Not a path.
    await page.getByLabel("JSONPath of the new column").fill(".spec[");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByText("not a JSONPath").waitFor();
    await accessible(page, "columns, chosen");
    // The address alone gives the view; the choice is kept for its kind, and holds names and paths only.
    const address = page.url();
    const kept = await page.evaluate(() => JSON.stringify(Object.entries(localStorage)));
    assert.equal(JSON.parse(kept).length, 1);
    assert.ok(kept.includes("keelson-columns:/pods") && !kept.includes("token") && !kept.includes("example.com/left"), kept);
    await page.reload();
    await signIn(page, ADMIN);
    await go(page, "#/list/core/v1/configmaps");
    await until(async () => assert.ok((await headings(page)).includes("Data")), "another kind has its own");
    await go(page, "#/list/core/v1/pods");
    await row(page, "left").getByText("example.com/left").waitFor();
    assert.ok(page.url().includes("column=Image"), page.url());
    await page.evaluate(() => localStorage.clear());
    await page.goto(address);
    await page.reload();
    await page.getByLabel("Token").fill(ADMIN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await row(page, "left").getByText("example.com/left").waitFor();
    assert.equal(await page.locator("main tbody a").first().textContent(), "right");
    // Back to the usual ones.
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("button", { name: "Usual columns" }).click();
    await until(async () => assert.ok((await headings(page)).includes("Restarts") && !(await headings(page)).includes("Image")), "usual");
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    assert.ok(!page.url().includes("column="), page.url());
  },

  async keys(page) {
    for (let i = 0; i < 120; i++) await api("POST", MAPS, configMap("key-" + String(i).padStart(3, "0"), { a: "b" }));
    await signIn(page, ADMIN);
    await go(page, "#/list/core/v1/configmaps?fields=metadata.namespace%3Ddefault&filter=key-");
    await row(page, "key-000").waitFor();
    // Rows have the height that scrolling counts with.
    const heights = await page.locator(".scroller tbody tr:not([aria-hidden])").evaluateAll((rows) => rows.map((one) => one.getBoundingClientRect().height));
    assert.ok(heights.length > 20 && heights.every((height) => height === 27), String(heights));
    await page.evaluate(() => document.activeElement.blur());
    for (let i = 0; i < 100; i++) await page.keyboard.press(i % 2 ? "j" : "ArrowDown");
    await page.keyboard.press("k");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "key-098");
    // A change somewhere else draws the table anew and leaves the focus.
    await api("PATCH", MAPS + "/key-090", { data: { a: "c", d: "e" } }, "application/merge-patch+json");
    await row(page, "key-090").getByText("2", { exact: true }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "key-098");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "default/key-098" }).waitFor();
    await page.keyboard.press("e");
    await page.getByLabel("YAML", { exact: true }).waitFor();
    await page.keyboard.press("y");
    await until(async () => assert.equal(await page.locator("main textarea").count(), 0), "back to YAML");
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await accessible(page, "keys");
    await page.keyboard.press("Escape");
    await page.keyboard.press("u");
    await until(async () => assert.ok(page.url().includes("#/list/core/v1/configmaps")), "up");
    await page.keyboard.press("/");
    await page.keyboard.type("que");  // letters that are keys elsewhere are text here
    assert.equal(await page.locator("#search").inputValue(), "que");
  },

  async search(page) {
    await api("POST", MAPS, configMap("labelled-one", { a: "b" }, { "team": "blue" }));
    await signIn(page, ADMIN);
    await page.locator("#search").fill("team=blue");
    await page.keyboard.press("Control+Enter");
    await page.getByText("1 found.").waitFor();
    await page.getByRole("link", { name: "labelled-one" }).waitFor();
    await accessible(page, "labels");
    await page.locator("#search").fill("lblldn");
    await page.keyboard.press("Control+Enter");
    await page.getByText("1 found.").waitFor();
    await page.getByRole("link", { name: "labelled-one" }).waitFor();
  },

  async rights(page) {
    const RBAC = "/apis/rbac.authorization.k8s.io/v1";
    await api("POST", "/api/v1/namespaces", { metadata: { name: "team" } });
    await api("POST", "/api/v1/namespaces", { metadata: { name: "closed" } });
    await api("POST", RBAC + "/namespaces/team/roles", { metadata: { name: "reader" }, rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"] }] });
    await api("POST", RBAC + "/namespaces/team/rolebindings", { metadata: { name: "reader" }, subjects: [{ kind: "User", name: "guest", apiGroup: "rbac.authorization.k8s.io" }],
                                                                roleRef: { kind: "Role", name: "reader", apiGroup: "rbac.authorization.k8s.io" } });
    await api("POST", "/api/v1/namespaces/team/configmaps", configMap("ours", { a: "b" }));
    await signIn(page, ADMIN);
    assert.ok((await page.locator("#kinds > a").count()) > 50 && (await page.locator("#kinds details").count()) === 0, "everything is offered to an administrator");
    await until(async () => {
      await page.goto(url + "/console");
      await page.reload();
      await page.getByLabel("Token").fill(GUEST);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.locator("#kinds details").waitFor();
      // The namespaces that somebody can reach are offered, though they may not list namespaces.
      assert.deepEqual(await page.locator("#namespaces option").evaluateAll((all) => all.map((one) => one.value)), ["team"]);
    }, "namespaces");
    await page.locator("#namespace").fill("team");
    await page.locator("#namespace").press("Enter");
    await page.locator("#namespace").blur();
    await until(async () => assert.deepEqual(await page.locator("#kinds > a").allTextContents(), ["ConfigMap"]), "only what may be listed");
    await accessible(page, "kinds");
    await go(page, "#/list/core/v1/configmaps");
    await row(page, "ours").waitFor();
    assert.equal(await page.getByRole("link", { name: "New" }).count(), 0);
    await go(page, "#/object/core/v1/configmaps/team/ours");
    await page.getByText("a: b").first().waitFor();
    for (const name of ["Edit", "Delete", "Put back"]) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
    await go(page, "#/list/core/v1/secrets");
    await page.getByText("Not permitted").waitFor();
    // Empty is something else.
    await signIn(page, ADMIN);
    await go(page, "#/list/core/v1/persistentvolumes");
    await page.getByText("There are none.").waitFor();
  },

  async unreachable(page) {
    await api("POST", MAPS, configMap("a-here", { a: "b" }));
    await signIn(page, ADMIN);
    await page.route(/[?&]watch=1/, (route) => route.abort("connectionrefused"));
    await go(page, "#/list/core/v1/configmaps?filter=a-");
    await page.getByText("The server cannot be reached").waitFor();
    assert.equal(await row(page, "a-here").count(), 1, "the rows stay");
    await page.unrouteAll();
    await api("POST", MAPS, configMap("a-later", { a: "b" }));
    await row(page, "a-later").waitFor();
    assert.equal(await page.getByText("The server cannot be reached").count(), 0);
  },

  // Every view opens; none asks anybody else.
  async views(page) {
    await api("POST", MAPS, configMap("viewed", { a: "b" }));
    await signIn(page, ADMIN);
    for (const [hash, text] of [["#/", "Choose a kind"], ["#/list/core/v1/configmaps?filter=viewed", "viewed"], ["#/object/core/v1/configmaps/default/viewed", "created"], ["#/new/core/v1/configmaps", "Dry run"],
                                ["#/apply", "Server-side apply"], ["#/find/viewed", "1 found."], ["#/access", "* in *"], ["#/server", "global-default"], ["#/store", "Space left"], ["#/audit", "Requests as they happen"]]) {
      await go(page, hash);
      await page.locator("main").getByText(text).first().waitFor();
      await accessible(page, hash);
    }
  },
};

const browser = await chromium.launch({ executablePath: process.env.KEELSON_CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"] });
let failed = 0;
for (const [name, test] of Object.entries(TESTS)) {
  if (chosen.length && !chosen.includes(name)) continue;
  const context = await browser.newContext({ ignoreHTTPSErrors: true }), page = await context.newPage(), asked = [], broken = [];
  page.setDefaultTimeout(60000);
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => broken.push(error.message));
  const begin = Date.now(), files = process.env.KEELSON_CONSOLE_FILES;
  if (files) await page.route(/\/console(\/[a-z]+\.(js|css|svg|html))?$/, (route) => route.fulfill({ path: path.join(files, path.basename(new URL(route.request().url()).pathname).replace(/^console$/, "index.html")) }));
  try {
    await test(page);
    assert.deepEqual(broken, [], "errors of scripts");
    assert.ok(asked.length > 20, "requests are counted");
    assert.deepEqual(asked.filter((one) => !one.startsWith(url + "/")), [], "requests to elsewhere");
    console.log("  " + name + ": ok (" + ((Date.now() - begin) / 1000).toFixed(1) + " s, " + asked.length + " requests)");
  } catch (error) {
    failed++;
    console.log("  " + name + ": FAILED: " + error.stack + "\n  the page has: " + (await page.locator("body").innerText().catch(() => "")).slice(-1500) + "\n  " + broken.join("\n  "));
  }
  await context.close();
}
await browser.close();
process.exit(failed ? 1 : 0);
