-- The script of a page of events. It reads the page's data and draws them by DOM functions alone: no text of an event
-- is ever read as HTML. The page names its SHA-256 in the Content-Security-Policy: html/page.lua.
--
-- The fragment of the page's address holds the filter, so that a link keeps it: #filter=web&hide=Normal&view=1.
-- open=all opens the details of all lanes.
return [==[
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const view of data.views) {
    view.events = view.events || [];
    view.suppressed = view.suppressed || [];
  }
  const OBJECTS_A_STEP = 200;  // more are drawn when the reader asks for them
  const EVENTS_A_LANE = 50;    // in the details of a lane
  const COLUMNS = 120;         // of the overview
  const STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 2592000]
    .map((seconds) => seconds * 1000);

  // Control characters and those that change the direction of text are shown as their code.
  const HIDDEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
  const visible = (text) => String(text).replace(HIDDEN,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = visible(text);
    return element;
  };
  const place = (element, left, width) => {
    element.style.left = left * 100 + "%";
    if (width !== undefined) element.style.width = width * 100 + "%";
    return element;
  };
  const number = (n) => n.toLocaleString("en-US");
  const pad = (n) => String(n).padStart(2, "0");
  const day = (t) => new Date(t).toISOString().slice(0, 10);
  const clock = (t) => new Date(t).toISOString().slice(11, 19);
  const lasting = (ms) => {
    let s = Math.round(ms / 1000);
    if (s < 120) return s + " s";
    const parts = [[86400, "d"], [3600, "h"], [60, "min"]];
    const words = [];
    for (const [size, unit] of parts) {
      if (s >= size && words.length < 2) { words.push(Math.floor(s / size) + " " + unit); s %= size; }
    }
    return words.join(" ");
  };

  const state = { filter: "", hidden: new Set(), order: "time", view: 0, from: null, to: null, open: false,
    shown: OBJECTS_A_STEP };

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    state.filter = given.get("filter") || "";
    state.hidden = new Set((given.get("hide") || "").split(",").filter(Boolean));
    state.order = ["time", "count", "name"].includes(given.get("order")) ? given.get("order") : "time";
    state.view = Math.min(Math.max(parseInt(given.get("view") || "0", 10) || 0, 0), data.views.length - 1);
    state.open = given.get("open") === "all";
    const from = Number(given.get("from")), to = Number(given.get("to")), whole = extent(data.views[state.view]);
    // An address has whole milliseconds, and may have been damaged where it was copied.
    const fits = whole.known && from >= whole.from - 1 && to <= whole.to + 1 && from < to;
    [state.from, state.to] = fits ? [from, to] : [null, null];
  }

  function writeAddress() {
    const kept = new URLSearchParams();
    if (state.filter) kept.set("filter", state.filter);
    if (state.hidden.size) kept.set("hide", [...state.hidden].join(","));
    if (state.order !== "time") kept.set("order", state.order);
    if (state.view) kept.set("view", state.view);
    if (state.open) kept.set("open", "all");
    if (state.from) { kept.set("from", Math.round(state.from)); kept.set("to", Math.round(state.to)); }
    history.replaceState(null, "", "#" + kept);
  }

  // ---- which events are drawn, and in which time ----

  function searched(item) {
    item.searched = item.searched || [item.object, item.namespace, item.reason, item.message, item.source, item.related,
      item.type].join("\n").toLowerCase();
    return item.searched;
  }

  function chosen(view) {
    const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (item) => !state.hidden.has(item.type) && words.every((word) => searched(item).includes(word));
    return { events: view.events.filter(fits), shades: view.suppressed.filter(fits) };
  }

  function extent(view) {
    let from = Infinity, to = -Infinity;
    for (const item of view.events.concat(view.suppressed)) {
      if (item.first !== undefined) { from = Math.min(from, item.first); to = Math.max(to, item.last); }
    }
    if (from > to) return { from: 0, to: 1, known: false };
    const margin = Math.max((to - from) * 0.01, 1000);
    return { from: from - margin, to: to + margin, known: true };
  }

  // Objects, each with its lanes: events of one reason and type share a lane.
  function group(found) {
    const objects = new Map();
    const laneOf = (item) => {
      const key = item.namespace + "\n" + item.object;
      if (!objects.has(key)) objects.set(key, { item, lanes: new Map(), count: 0, first: Infinity });
      const object = objects.get(key);
      object.first = Math.min(object.first, item.first === undefined ? Infinity : item.first);
      const name = item.type + "\n" + item.reason;
      if (!object.lanes.has(name)) object.lanes.set(name, { item, events: [], shades: [], count: 0, fates: new Map() });
      return [object, object.lanes.get(name)];
    };
    for (const event of found.events) {
      const [object, lane] = laneOf(event);
      lane.events.push(event);
      lane.count += event.count;
      object.count += event.count;
    }
    for (const shade of found.shades) {
      const [, lane] = laneOf(shade);
      lane.shades.push(shade);
      lane.fates.set(shade.fate, (lane.fates.get(shade.fate) || 0) + shade.count);
    }
    const orders = {
      time: (a, b) => (a.first > b.first) - (a.first < b.first),
      count: (a, b) => b.count - a.count,
      name: (a, b) => (a.item.object > b.item.object) - (a.item.object < b.item.object),
    };
    return [...objects.values()].sort(orders[state.order]);
  }

  // ---- drawing ----

  // Without an event whose time is known there is no range, and no axis.
  const range = { from: 0, to: 1, known: false, at: (t) => (t - range.from) / (range.to - range.from) };

  function ticks() {
    if (!range.known) return { step: 0, found: [] };
    const step = STEPS.find((s) => (range.to - range.from) / s <= 8) || Math.ceil((range.to - range.from) / 8);
    const found = [];
    for (let t = Math.ceil(range.from / step) * step; t <= range.to; t += step) found.push(t);
    return { step, found };
  }

  function drawOverview(found) {
    const overview = document.getElementById("overview");
    overview.replaceChildren();
    const columns = Array.from({ length: COLUMNS }, () => ({ Normal: 0, Warning: 0 }));
    const width = (range.to - range.from) / COLUMNS;
    for (const event of found.events) {
      if (event.first === undefined) continue;
      const from = Math.floor((event.first - range.from) / width), to = Math.floor((event.last - range.from) / width);
      const share = event.count / (to - from + 1);
      for (let i = Math.max(from, 0); i <= Math.min(to, COLUMNS - 1); i++) {
        columns[i][event.type === "Warning" ? "Warning" : "Normal"] += share;
      }
    }
    const most = Math.max(...columns.map((c) => c.Normal + c.Warning), 1e-9);
    columns.forEach((c, i) => {
      if (!(c.Normal + c.Warning)) return;
      const column = place(make("div", "column"), i / COLUMNS, 0.85 / COLUMNS);
      for (const type of ["Warning", "Normal"]) {
        const part = make("i", type === "Warning" ? "warning" : "");
        part.style.height = (c[type] ? Math.max(c[type] / most * 52, 1) : 0) + "px";
        column.append(part);
      }
      column.title = "about " + number(Math.round(c.Normal + c.Warning)) + " at " + clock(range.from + (i + 0.5) * width);
      overview.append(column);
    });
    const { step, found: times } = ticks();
    let shownDay = "", right = -Infinity;
    for (const t of times) {
      const text = step >= 86400000 ? day(t) : clock(t).slice(0, step < 60000 ? 8 : 5);
      const at = range.at(t);
      const label = place(make("span", "tick" + (at < 0.04 ? " first" : at > 0.96 ? " last" : "")), at);
      label.textContent = step < 86400000 && day(t) !== shownDay ? day(t).slice(5) + " " + text : text;
      overview.append(label);
      const box = label.getBoundingClientRect();
      if (box.left < right + 6) { label.remove(); continue; }  // it would overlap the one before
      right = box.right;
      shownDay = day(t);
    }
  }

  function drawTrack(lane, most) {
    const track = make("div", "track");
    for (const t of ticks().found) track.append(place(make("div", "rule"), range.at(t)));
    for (const event of lane.events) {
      if (event.first === undefined) continue;
      const left = range.at(event.first);
      const once = event.count === 1;
      const bar = place(make("div", "bar" + (event.type === "Warning" ? " warning" : "") + (once ? " once" : "")),
        left, once ? undefined : range.at(event.last) - left);
      const height = once ? 7 : 6 + 16 * Math.log(event.count) / Math.log(Math.max(most, 2));
      bar.style.height = height + "px";
      track.append(bar);
    }
    for (const shade of lane.shades) {
      const left = range.at(shade.first);
      const drawn = place(make("div", "shade"), left, range.at(shade.last) - left);
      drawn.title = visible(number(shade.count) + " " + shade.fate + ": " + shade.why);
      track.append(drawn);
    }
    return track;
  }

  function drawDetails(lane) {
    const details = make("div", "details");
    const table = make("table"), head = make("tr");
    for (const title of ["first (UTC)", "last", "count", "source", "related", "message"]) head.append(make("th", "", title));
    table.append(head);
    const row = (cells, message) => {
      const line = make("tr");
      for (const cell of cells) line.append(make("td", "", cell));
      const last = make("td", "message");
      last.append(make("bdi", "", message));
      line.append(last);
      table.append(line);
    };
    for (const event of lane.events.slice(0, EVENTS_A_LANE)) {
      const known = event.first !== undefined;
      row([known ? day(event.first) + " " + clock(event.first) : "unknown",
        known && event.last !== event.first ? clock(event.last) + " (after " + lasting(event.last - event.first) + ")" : "",
        number(event.count), event.source || "", event.related || ""], event.message);
    }
    for (const shade of lane.shades.slice(0, EVENTS_A_LANE)) {
      row([day(shade.first) + " " + clock(shade.first), clock(shade.last), number(shade.count), shade.fate, ""],
        shade.why);
    }
    const left = lane.events.length - EVENTS_A_LANE;
    if (left > 0) row(["", "", "", "", ""], "and " + number(left) + " more events with this reason");
    details.append(table);
    return details;
  }

  function drawObject(object, most) {
    const section = make("section", "object"), header = make("header");
    const slash = object.item.object.indexOf("/");
    header.append(make("span", "quiet", object.item.object.slice(0, slash + 1)));
    const name = make("b");
    name.append(make("bdi", "", object.item.object.slice(slash + 1)));
    header.append(name);
    if (object.item.namespace) header.append(make("span", "quiet", "  in " + object.item.namespace));
    section.append(header);
    for (const lane of object.lanes.values()) {
      const button = make("button", "lane"), label = make("span", "label");
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      label.append(make("bdi", "reason", lane.item.reason || "(no reason)"),
        make("span", "count", "\u00d7" + number(lane.count)
          + [...lane.fates].map(([fate, count]) => ", " + number(count) + " " + fate).join("")));
      button.append(label, drawTrack(lane, most));
      let details = null;
      const toggle = () => {
        if (details) { details.remove(); details = null; } else { details = drawDetails(lane); button.after(details); }
        button.setAttribute("aria-expanded", String(details !== null));
      };
      button.addEventListener("click", toggle);
      section.append(button);
      if (state.open) toggle();
    }
    return section;
  }

  function drawFacts(view, found) {
    const facts = document.getElementById("facts");
    facts.replaceChildren();
    const occurrences = found.events.reduce((sum, event) => sum + event.count, 0);
    const warnings = found.events.reduce((sum, event) => sum + (event.type === "Warning" ? event.count : 0), 0);
    const listed = [["events", number(found.events.length)], ["occurrences", number(occurrences)],
      ["of them warnings", number(warnings)]].concat(view.facts || []);
    for (const [title, value] of listed) {
      const fact = make("div", "fact");
      fact.append(make("dt", "", title), make("dd", "", value));
      facts.append(fact);
    }
  }

  function draw() {
    const view = data.views[state.view], found = chosen(view), whole = extent(view);
    range.known = Boolean(state.from) || whole.known;
    range.from = state.from || whole.from;
    range.to = state.to || whole.to;
    const inRange = (item) => item.first === undefined ? !state.from : item.last >= range.from && item.first <= range.to;
    found.events = found.events.filter(inRange);
    found.shades = found.shades.filter(inRange);
    drawFacts(view, found);
    drawOverview(found);
    state.drawn = found;
    document.getElementById("span").textContent = !range.known ? "" :
      day(range.from) + " " + clock(range.from) + " UTC, " + lasting(range.to - range.from);
    document.getElementById("whole").hidden = !state.from;
    document.getElementById("hatched").hidden = !view.suppressed.length;
    const rows = document.getElementById("rows"), objects = group(found);
    const most = found.events.reduce((n, event) => Math.max(n, event.count), 1);
    rows.replaceChildren(...objects.slice(0, state.shown).map((object) => drawObject(object, most)));
    if (!objects.length) rows.append(make("div", "empty", "No event matches."));
    if (objects.length > state.shown) {
      const more = make("button", "more", "Show " + number(Math.min(OBJECTS_A_STEP, objects.length - state.shown))
        + " more of " + number(objects.length) + " objects");
      more.addEventListener("click", () => { state.shown += OBJECTS_A_STEP; draw(); });
      rows.append(more);
    }
    writeAddress();
  }

  // ---- controls ----

  function wireBrush() {
    const overview = document.getElementById("overview");
    let start = null, brush = null;
    const at = (event) => {
      const box = overview.getBoundingClientRect();
      return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    };
    overview.addEventListener("pointerdown", (event) => {
      if (!range.known) return;
      start = at(event);
      brush = place(make("div", "brush"), start, 0);
      overview.append(brush);
      overview.setPointerCapture(event.pointerId);
    });
    overview.addEventListener("pointermove", (event) => {
      if (start !== null) place(brush, Math.min(start, at(event)), Math.abs(at(event) - start));
    });
    overview.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const low = Math.min(start, at(event)), high = Math.max(start, at(event));
      const width = range.to - range.from, from = range.from;
      start = null;
      if (high - low > 0.005) {
        state.from = from + low * width;
        state.to = from + high * width;
      }
      draw();
    });
  }

  function wire() {
    const filter = document.getElementById("filter"), order = document.getElementById("order");
    filter.value = state.filter;
    filter.addEventListener("input", () => { state.filter = filter.value; state.shown = OBJECTS_A_STEP; draw(); });
    order.value = state.order;
    order.addEventListener("change", () => { state.order = order.value; draw(); });
    for (const button of document.querySelectorAll("[data-type]")) {
      const type = button.dataset.type;
      button.setAttribute("aria-pressed", String(!state.hidden.has(type)));
      button.addEventListener("click", () => {
        if (!state.hidden.delete(type)) state.hidden.add(type);
        button.setAttribute("aria-pressed", String(!state.hidden.has(type)));
        draw();
      });
    }
    document.getElementById("whole").addEventListener("click", () => { state.from = state.to = null; draw(); });
    const views = document.getElementById("views");
    if (data.views.length > 1) {
      data.views.forEach((view, i) => {
        const tab = make("button", "toggle plain", view.name);
        tab.setAttribute("role", "tab");
        tab.setAttribute("aria-selected", String(i === state.view));
        tab.addEventListener("click", () => {
          state.view = i;
          [...views.children].forEach((other, j) => other.setAttribute("aria-selected", String(i === j)));
          draw();
        });
        views.append(tab);
      });
      views.hidden = false;
    }
    wireBrush();
    window.addEventListener("resize", () => drawOverview(state.drawn));
  }

  document.getElementById("title").textContent = visible(data.title);
  document.getElementById("subtitle").textContent = visible(data.subtitle);
  document.getElementById("hatched").lastElementChild.textContent = visible(data.hatched || "");
  readAddress();
  wire();
  draw();
})();
]==]
