// Care of the store: its figures, backups, check and defragmentation.
import { call, getJSON } from "./api.js";
import { bytes, el, explain, mayWrite, show, tell } from "./dom.js";

const PATH = "/console/api/store", REFRESH_MILLISECONDS = 5000;

// Seconds in the two largest units: "3 d 4 h".
export function age(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = Math.max(0, units.findIndex(([, size]) => seconds >= size));
  let left = seconds;
  const parts = [];
  for (const [name, size] of units.slice(seconds < 1 ? 3 : first).slice(0, 2)) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0 || parts.length === 0) parts.push(count + " " + name);
  }
  return parts.join(" ");
}

// Bytes that may still be written: the rest of the quota or the disk, whichever is less.
export function spaceLeft(figures) {
  const quota = figures.quotaBytes > 0 ? figures.quotaBytes - figures.bytes : Infinity;
  return Math.max(0, Math.min(quota, figures.diskFreeBytes));
}

function rows(figures) {
  const list = [["Revision", String(figures.revision)], ["Compacted up to", figures.compactRevision + " (" + (figures.revision - figures.compactRevision) + " revisions of history)"],
                ["Size", bytes(figures.bytes) + ", of which in use " + bytes(figures.bytesInUse)]];
  if (!figures.embedded) return list;
  const last = figures.lastBackup;
  return list.concat([
    ["Space left", bytes(spaceLeft(figures)) + (figures.quotaBytes > 0 ? " (quota " + bytes(figures.quotaBytes) + ", disk " + bytes(figures.diskFreeBytes) + " free)" : " on the disk")],
    ["Last backup", last ? age(last.ageSeconds) + " ago: " + last.name + ", " + bytes(last.bytes) : "none"],
    ["Backups", figures.backups + " in " + figures.backupFolder + ", " + (figures.backupIntervalSeconds > 0 ? "one every " + age(figures.backupIntervalSeconds) : "none by themselves (--backup-interval)")]]);
}

function draw(figures) {
  return el("table", { class: "facts" }, el("tbody", {}, ...rows(figures).map(([name, text]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, text)))));
}

async function download() {
  const answer = await call("POST", PATH + "/download", { accept: "*/*" });
  const name = (/filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition")) || [])[1] || "keelson.tar";
  const url = URL.createObjectURL(await answer.blob());
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
  return name + ": it holds the keys of the cluster. Keep it like a password.";
}

const act = async (name) => (await (await call("POST", PATH + "/" + name)).json()).message;

const STEPS = ["Stop the server.", "keelson backup verify FILE", "keelson backup restore FILE NEW_FOLDER", "keelson --data-dir=NEW_FOLDER, with the old flags; clients list again by themselves."];

export async function storeView(signal) {
  const figures = await getJSON(PATH, { signal });
  const pane = el("div", {}, draw(figures)), outcome = el("p", { role: "status" });
  const button = (text, work, title) => el("button", { title, onclick: async (event) => {
    event.target.disabled = true;
    outcome.className = "quiet";
    outcome.textContent = text + " ...";
    try {
      outcome.textContent = await work();
      outcome.className = "good";
      pane.replaceChildren(draw(await getJSON(PATH, { signal })));
    } catch (error) {
      outcome.textContent = explain(error);
      outcome.className = "bad";
    }
    event.target.disabled = false;
  } }, text);
  const tools = [button("Check", () => act("check"), "read everything with its checksums")];
  if (mayWrite()) {
    tools.push(button("Back up now", () => act("backup"), "with pki, into the backup folder"), button("Download a backup", download, "with pki"),
               button("Defragment", () => act("defragment"), "give space back to the file system"));
  }
  const restore = el("details", {}, el("summary", {}, "How to restore"), el("ol", {}, ...STEPS.map((step) => el("li", {}, step.startsWith("keelson") ? el("code", {}, step) : step))));
  show(el("h1", {}, "Store"), pane, ...(figures.embedded ? [el("div", { class: "tools" }, ...tools), outcome, restore] : [el("p", {}, "The store is an etcd: care for it with etcd's own tools.")]));
  while (!signal.aborted) {
    await new Promise((done) => setTimeout(done, REFRESH_MILLISECONDS));
    if (signal.aborted || document.hidden) continue;
    await getJSON(PATH, { signal }).then((now) => pane.replaceChildren(draw(now)), (error) => signal.aborted || tell(explain(error)));
  }
}
