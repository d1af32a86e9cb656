// A live table of one kind: pages from the server, one watch for what is on the screen, and only the rows in view in the document.
import { call, getJSON, pathOf, watch, TABLE } from "./api.js";
import { el, explain, mayWrite, show, tell } from "./dom.js";

// The first page is small, to be there at once; later ones are for whoever scrolls on.
const PAGE = 500, LATER_PAGE = 2500, ROW_PIXELS = 27, SPARE_ROWS = 20, AHEAD_ROWS = 200, RETRY_MILLISECONDS = 2000;

export async function tableView(kind, namespace, parameters, signal) {
  const state = { columns: [], rows: new Map(), more: "", left: 0, loading: null, gone: new Set(), version: "", order: [], sort: -1, down: false, drawing: false };
  if (parameters.get("sort")) state.wanted = { name: parameters.get("sort").replace(/^-/, ""), down: parameters.get("sort").startsWith("-") };
  const count = el("span", { class: "quiet" });
  const filter = el("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows", value: parameters.get("filter") || "" });
  const selector = el("input", { placeholder: "Labels: app=web", "aria-label": "Label selector", value: parameters.get("labels") || "" });
  const fields = el("input", { placeholder: "Fields: metadata.name=a", "aria-label": "Field selector", value: parameters.get("fields") || "" });
  const wide = el("input", { type: "checkbox", id: "wide", checked: parameters.get("wide") === "1" });
  const more = el("button", { hidden: true }, "Load more");
  const head = el("tr"), body = el("tbody");
  const before = el("tr", { "aria-hidden": "true" }), after = el("tr", { "aria-hidden": "true" });
  const scroller = el("div", { class: "scroller", tabindex: "0" }, el("table", {}, el("thead", {}, head), body));
  show(el("h1", {}, kind.kind, " ", el("span", { class: "quiet" }, (kind.group || "core") + "/" + kind.version)),
       el("div", { class: "tools" }, filter, selector, fields, el("label", { for: "wide" }, "wide"), wide, more, count, kind.verbs.includes("create") && mayWrite() ? el("a", { href: location.hash.split("?")[0].replace("#/list/", "#/new/") }, "New") : ""), scroller);

  const keyOf = (row) => (row.object.metadata.namespace || "") + "/" + row.object.metadata.name;
  const visible = () => {
    const text = filter.value.toLowerCase();
    return text === "" ? state.order : state.order.filter((row) => row.cells.some((cell) => String(cell).toLowerCase().includes(text)));
  };

  function draw() {
    const rows = visible();
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW_PIXELS) - SPARE_ROWS);
    const last = Math.min(rows.length, first + Math.ceil(scroller.clientHeight / ROW_PIXELS) + 2 * SPARE_ROWS);
    before.style.height = first * ROW_PIXELS + "px";
    after.style.height = (rows.length - last) * ROW_PIXELS + "px";
    body.replaceChildren(before, ...rows.slice(first, last).map(drawRow), after);
    count.textContent = rows.length + (state.more ? " and " + (state.left || "") + " more" : "") + (rows.length === state.order.length ? "" : " of " + state.order.length);
  }
  // Many events and scroll steps between two frames are one drawing. Near the end of what is loaded the next page is fetched.
  function drawSoon() {
    if (state.drawing) return;
    state.drawing = true;
    requestAnimationFrame(() => {
      state.drawing = false;
      if (state.stale) arrange();
      else draw();
      const seen = (scroller.scrollTop + scroller.clientHeight) / ROW_PIXELS;
      if (state.more && filter.value === "" && scroller.scrollTop > 0 && seen > state.order.length - AHEAD_ROWS) loadPage().catch((error) => tell(explain(error)));
    });
  }
  function drawRow(row) {
    const metadata = row.object.metadata;
    const link = "#/object/" + [kind.group || "core", kind.version, kind.plural, metadata.namespace || "-", metadata.name].map(encodeURIComponent).join("/");
    const cells = row.cells.map((cell, i) => el("td", {}, i === 0 ? el("a", { href: link }, String(cell)) : cell === null ? "" : String(cell)));
    if (kind.namespaced && !namespace) cells.unshift(el("td", {}, metadata.namespace || ""));
    return el("tr", { class: row.changed ? "changed" : undefined }, ...cells);
  }
  function arrange() {
    state.stale = false;
    state.order = [...state.rows.values()];
    if (state.sort >= 0) {
      const compare = (a, b) => String(a.cells[state.sort]).localeCompare(String(b.cells[state.sort]), undefined, { numeric: true });
      state.order.sort((a, b) => (state.down ? -1 : 1) * compare(a, b));
    }
    draw();
  }
  function setColumns(definitions) {
    state.columns = definitions;
    const cells = definitions.map((column, i) => el("th", { scope: "col", title: column.description, onclick: () => {
      state.down = state.sort === i && !state.down;
      state.sort = i;
      arrange();
      remember();
    } }, column.name));
    if (state.wanted) {
      state.sort = definitions.findIndex((column) => column.name === state.wanted.name);
      state.down = state.wanted.down;
      state.wanted = null;
    }
    if (kind.namespaced && !namespace) cells.unshift(el("th", { scope: "col" }, "Namespace"));
    head.replaceChildren(...cells);
  }
  // Columns of lower priority are kubectl's -o wide.
  const isShown = (column) => wide.checked || column.priority === 0;
  const narrow = (table, row) => ({ ...row, cells: row.cells.filter((_, i) => isShown((table.columnDefinitions || state.all)[i])) });
  function take(table) {
    if (table.columnDefinitions && table.columnDefinitions.length) {
      state.all = table.columnDefinitions;
      setColumns(table.columnDefinitions.filter(isShown));
    }
    // Later pages show the state of the first one: what the watch has told since is newer.
    for (const row of table.rows || []) {
      const key = keyOf(row), known = state.rows.get(key);
      if (!state.gone.has(key) && !(known && known.changed)) state.rows.set(key, narrow({ columnDefinitions: state.all }, row));
    }
  }
  const query = (extra) => {
    const search = new URLSearchParams(extra);
    if (selector.value) search.set("labelSelector", selector.value);
    if (fields.value) search.set("fieldSelector", fields.value);
    return pathOf(kind, namespace) + "?" + search;
  };
  function loadPage() {
    state.loading ||= fetchPage().finally(() => { state.loading = null; });
    return state.loading;
  }
  async function fetchPage() {
    const extra = { limit: state.more ? LATER_PAGE : PAGE };
    if (state.more) extra.continue = state.more;
    const table = await getJSON(query(extra), { accept: TABLE, signal });
    take(table);
    if (!state.more) state.version = table.metadata.resourceVersion;
    state.more = table.metadata.continue || "";
    state.left = table.metadata.remainingItemCount || 0;
    more.hidden = !state.more;
    arrange();
  }
  async function follow() {
    while (!signal.aborted) {
      try {
        for await (const event of watch(query({ watch: 1, resourceVersion: state.version, allowWatchBookmarks: true }), { accept: TABLE, signal })) {
          const rows = event.object.rows || [];
          for (const row of rows) {
            state.version = row.object.metadata.resourceVersion || state.version;
            if (event.type === "BOOKMARK") continue;
            if (event.type === "DELETED") { state.rows.delete(keyOf(row)); state.gone.add(keyOf(row)); continue; }
            state.gone.delete(keyOf(row));
            state.rows.set(keyOf(row), { ...narrow({ columnDefinitions: state.all }, row), changed: true });
          }
          if (event.type !== "BOOKMARK") { state.stale = true; drawSoon(); }
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 410) { state.rows.clear(); state.gone.clear(); state.more = ""; await loadPage().catch(() => {}); }
        else if (error.status === 403) { tell("No live updates: " + error.message); return; }
      }
      await new Promise((done) => setTimeout(done, RETRY_MILLISECONDS));
    }
  }
  // The view is the URL: all that was chosen is in it.
  function address() {
    const chosen = { labels: selector.value, fields: fields.value, filter: filter.value, wide: wide.checked ? "1" : "",
                     sort: state.sort >= 0 ? (state.down ? "-" : "") + state.columns[state.sort].name : "" };
    const search = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value !== "")).toString();
    return location.hash.split("?")[0] + (search ? "?" + search : "");
  }
  function remember() { history.replaceState(null, "", address()); }
  filter.addEventListener("input", () => { draw(); remember(); });
  scroller.addEventListener("scroll", drawSoon);
  for (const box of [selector, fields, wide]) box.addEventListener("change", () => { location.hash = address(); });
  more.addEventListener("click", () => loadPage().catch((error) => tell(explain(error))));
  await loadPage();
  if (kind.verbs.includes("watch")) follow();
}

export async function remove(kind, namespace, name) {
  await call("DELETE", pathOf(kind, namespace, name) + "?propagationPolicy=Background");
}
