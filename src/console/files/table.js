// A live table of one kind: pages from the server, one watch for what is on the screen, and only the rows in view in the document.
import { may } from "./allowed.js";
import { call, getJSON, pathOf, watch, TABLE } from "./api.js";
import { chosenColumns, columnsPane, isOwn, storeChoice, storedChoice, usualColumns } from "./columns.js";
import { el, explain, isTyping, mayWrite, show, tell } from "./dom.js";

// The first page is small, to be there at once; later ones are for scrolling.
const PAGE = 500, LATER_PAGE = 2500, ROW_PIXELS = 27, SPARE_ROWS = 20, AHEAD_ROWS = 200, RETRY_MILLISECONDS = 2000;

// The kind whose chooser of columns is open: it stays open while columns are chosen.
let choosing = null;

export async function tableView(kind, namespace, parameters, signal) {
  const state = { columns: [], rows: new Map(), more: "", left: 0, loading: null, gone: new Set(), version: "", order: [], sort: -1, down: false, drawing: false };
  if (parameters.get("sort")) state.wanted = { name: parameters.get("sort").replace(/^-/, ""), down: parameters.get("sort").startsWith("-") };
  let choice = parameters.getAll("column");
  if (!choice.length) choice = storedChoice(kind);
  // A path is looked up in the whole object, which is requested only then and is not kept.
  const whole = choice.some(isOwn);
  const count = el("span", { class: "quiet" });
  const filter = el("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows", value: parameters.get("filter") || "" });
  const selector = el("input", { placeholder: "Labels: app=web", "aria-label": "Label selector", value: parameters.get("labels") || "" });
  const fields = el("input", { placeholder: "Fields: metadata.name=a", "aria-label": "Field selector", value: parameters.get("fields") || "" });
  const wide = el("input", { type: "checkbox", id: "wide", checked: parameters.get("wide") === "1", disabled: choice.length > 0 });
  const more = el("button", { hidden: true }, "Load more");
  const columns = el("button", { "data-key": "c", "aria-keyshortcuts": "c", title: "Key: c", "aria-expanded": "false" }, "Columns"), chooser = el("div");
  const head = el("tr"), body = el("tbody");
  const before = el("tr", { "aria-hidden": "true" }), after = el("tr", { "aria-hidden": "true" });
  const scroller = el("div", { class: "scroller", tabindex: "0" }, el("table", {}, el("thead", {}, head), body));
  show(el("h1", {}, kind.kind, " ", el("span", { class: "quiet" }, (kind.group || "core") + "/" + kind.version)),
       el("div", { class: "tools" }, filter, selector, fields, el("label", { for: "wide" }, "wide"), wide, columns, more, count, kind.verbs.includes("create") && mayWrite() && may("create", kind) ? el("a", { href: location.hash.split("?")[0].replace("#/list/", "#/new/"), "data-key": "n", "aria-keyshortcuts": "n", title: "Key: n" }, "New") : ""), chooser, scroller);

  const keyOf = (row) => (row.object.metadata.namespace || "") + "/" + row.object.metadata.name;
  const visible = () => {
    const text = filter.value.toLowerCase();
    return text === "" ? state.order : state.order.filter((row) => row.cells.some((cell) => String(cell).toLowerCase().includes(text)));
  };

  function draw() {
    const rows = visible();
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW_PIXELS) - SPARE_ROWS);
    const last = Math.min(rows.length, first + Math.ceil(scroller.clientHeight / ROW_PIXELS) + 2 * SPARE_ROWS);
    const held = heldRow();
    before.style.height = first * ROW_PIXELS + "px";
    after.style.height = (rows.length - last) * ROW_PIXELS + "px";
    body.replaceChildren(before, ...rows.slice(first, last).map(drawRow), after);
    if (held !== null) [...body.querySelectorAll("a")].find((link) => link.dataset.row === held)?.focus({ preventScroll: true });
    count.textContent = state.trouble || countText(rows.length);
  }
  function countText(shown) {
    if (shown === 0 && state.loaded && !state.more) return state.order.length ? "0 of " + state.order.length : "There are none.";
    return shown + (state.more ? " and " + (state.left || "") + " more" : "") + (shown === state.order.length ? "" : " of " + state.order.length);
  }
  // The row that has the focus; drawing anew keeps it.
  function heldRow() { return body.contains(document.activeElement) ? document.activeElement.dataset.row : null; }
  function move(step) {
    const rows = visible(), held = heldRow();
    if (!rows.length) return;
    const next = Math.min(rows.length - 1, Math.max(0, (held === null ? (step > 0 ? -1 : rows.length) : rows.findIndex((row) => keyOf(row) === held)) + step));
    const top = next * ROW_PIXELS, height = scroller.clientHeight - 2 * ROW_PIXELS;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top > scroller.scrollTop + height) scroller.scrollTop = top - height;
    draw();
    [...body.querySelectorAll("a")].find((link) => link.dataset.row === keyOf(rows[next]))?.focus({ preventScroll: true });
  }
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || isTyping()) return;
    event.preventDefault();
    move(step);
  }, { signal });
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
    const cells = row.cells.map((cell, i) => el("td", {}, i === 0 ? el("a", { href: link, "data-row": keyOf(row) }, cell === null || cell === "" ? metadata.name : String(cell)) : cell === null ? "" : String(cell)));
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
  function setColumns() {
    state.columns = choice.length ? chosenColumns(state.all, choice) : [];
    if (!state.columns.length) state.columns = usualColumns(state.all, wide.checked);
    const cells = state.columns.map((column, i) => el("th", { scope: "col", title: column.description, onclick: () => {
      state.down = state.sort === i && !state.down;
      state.sort = i;
      arrange();
      remember();
    } }, column.name));
    if (state.wanted) {
      state.sort = state.columns.findIndex((column) => column.name === state.wanted.name);
      state.down = state.wanted.down;
      state.wanted = null;
    }
    if (kind.namespaced && !namespace) cells.unshift(el("th", { scope: "col" }, "Namespace"));
    head.replaceChildren(...cells);
  }
  const reduced = (row) => ({ object: { metadata: { name: row.object.metadata.name, namespace: row.object.metadata.namespace } }, cells: state.columns.map((column) => column.cell(row)) });
  function take(table) {
    if (table.columnDefinitions && table.columnDefinitions.length) {
      state.all = table.columnDefinitions;
      setColumns();
    }
    // Later pages show the state of the first one: events of the watch are newer.
    for (const row of table.rows || []) {
      const key = keyOf(row), known = state.rows.get(key);
      if (!state.gone.has(key) && !(known && known.changed)) state.rows.set(key, reduced(row));
    }
  }
  function choose(wanted) {
    storeChoice(kind, wanted);
    choice = wanted;
    location.hash = address();
  }
  function drawChooser() {
    columns.setAttribute("aria-expanded", String(choosing === kind));
    chooser.replaceChildren(...(choosing === kind ? [columnsPane(state.all || [], state.columns, choose)] : []));
  }
  columns.addEventListener("click", () => {
    choosing = choosing === kind ? null : kind;
    drawChooser();
  });
  const query = (extra) => {
    const search = new URLSearchParams(extra);
    if (selector.value) search.set("labelSelector", selector.value);
    if (fields.value) search.set("fieldSelector", fields.value);
    if (whole) search.set("includeObject", "Object");
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
    state.loaded = true;
    arrange();
  }
  async function follow() {
    while (!signal.aborted) {
      try {
        for await (const event of watch(query({ watch: 1, resourceVersion: state.version, allowWatchBookmarks: true }), { accept: TABLE, signal })) {
          const rows = event.object.rows || [];
          if (state.trouble) { state.trouble = ""; draw(); }
          for (const row of rows) {
            state.version = row.object.metadata.resourceVersion || state.version;
            if (event.type === "BOOKMARK") continue;
            if (event.type === "DELETED") { state.rows.delete(keyOf(row)); state.gone.add(keyOf(row)); continue; }
            state.gone.delete(keyOf(row));
            state.rows.set(keyOf(row), { ...reduced(row), changed: true });
          }
          if (event.type !== "BOOKMARK") { state.stale = true; drawSoon(); }
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 410) { state.rows.clear(); state.gone.clear(); state.more = ""; await loadPage().catch(() => {}); }
        else if (error.status === 403) { tell("No live updates: " + error.message); return; }
        else if (error.status === undefined) { state.trouble = "The server cannot be reached; these rows may be old. Trying again …"; draw(); }
      }
      await new Promise((done) => setTimeout(done, RETRY_MILLISECONDS));
    }
  }
  // The view is the URL: all that was chosen is in it.
  function address() {
    const chosen = { labels: selector.value, fields: fields.value, filter: filter.value, wide: wide.checked ? "1" : "",
                     sort: state.sort >= 0 ? (state.down ? "-" : "") + state.columns[state.sort].name : "" };
    const search = new URLSearchParams([...Object.entries(chosen).filter(([, value]) => value !== ""), ...choice.map((text) => ["column", text])]).toString();
    return location.hash.split("?")[0] + (search ? "?" + search : "");
  }
  function remember() { history.replaceState(null, "", address()); }
  filter.addEventListener("input", () => { draw(); remember(); });
  scroller.addEventListener("scroll", drawSoon);
  for (const box of [selector, fields, wide]) box.addEventListener("change", () => { location.hash = address(); });
  more.addEventListener("click", () => loadPage().catch((error) => tell(explain(error))));
  await loadPage();
  if (choice.length) remember();
  if (choosing === kind) { drawChooser(); columns.focus(); }
  if (kind.verbs.includes("watch")) follow();
}

export async function remove(kind, namespace, name) {
  await call("DELETE", pathOf(kind, namespace, name) + "?propagationPolicy=Background");
}
