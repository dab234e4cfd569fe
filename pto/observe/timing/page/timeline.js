// The timeline page: lanes of pipes, drawn on one canvas. All data stands in `DATA`; no network.
"use strict";
const LANE = 22, RULER = 24, LABEL = 96;
const HEIGHTS = { core: 24, head: 20, lane: LANE, counter: 34 };
const ORDER = ["S", "MTE2", "MTE1", "M", "V", "FIX", "MTE3"];
const canvas = document.getElementById("canvas"), stage = document.getElementById("stage");
const pen = canvas.getContext("2d"), tip = document.getElementById("tip");
const state = { from: 0, to: 1, top: 0, hover: null, chosen: null, range: null, line: null, critical: false };
const ink = {};  // colours of the theme, from the style sheet
function theme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "line", "paper", "pane", "mark", "hatch", "range", "hbm", "l2", "light", "pale"])
    ink[name] = style.getPropertyValue(`--${name}`).trim();
}

// ---- layout: rows from top to bottom; a core is closed until it is clicked, but for the slowest
let whole = 0, rows = [], bottom = 0;
const cores = [];
for (const run of DATA.runs) {
  const parts = [run, ...run.parts];
  for (const part of parts) {
    whole = Math.max(whole, part.end);
    part.byPipe = part.pipes.map(() => []);
    part.slices.start.forEach((_, i) => part.byPipe[part.slices.pipe[i]].push(i));
    part.onPath = new Set(part.critical);
  }
  const listed = run.cores.length ? run.cores : [{ number: null, part: 0 }];
  listed.forEach((core, n) => cores.push({ ...core, run, first: n === 0, open: n === 0, drawn: parts[core.part] ?? null }));
}
cores.sort((a, b) => b.first - a.first);  // launches that are compared stand above each other
const rank = pipe => ORDER.indexOf(pipe.name);
function titleOf({ run, number, like, drawn, blocks }) {
  const name = DATA.runs.length > 1 ? `${run.label}: core ${number}` : `core ${number}`;
  return `${name}, ${blocks}${drawn ? like === number ? "" : `, as core ${like}` : ", not simulated: others have more to do"}`;
}
function lanesOf(core) {
  const part = core.drawn, found = [];
  part.agents.forEach((name, agent) => {
    if (core.number === null) found.push({ kind: "head", text: name });
    else if (part.agents.length > 1) found.push({ kind: "head", text: name.replace(/^(block|core) \d+ /, "") });
    part.pipes.map((pipe, n) => ({ pipe, n })).filter(each => each.pipe.agent === agent)
      .sort((a, b) => rank(a.pipe) - rank(b.pipe))
      .forEach(each => found.push({ kind: "lane", run: part, core, pipe: each.n, text: each.pipe.name }));
  });
  return found;
}
function arrange() {
  rows = [];
  for (const core of cores) {
    if (core.number !== null) rows.push({ kind: "core", core, text: titleOf(core) });
    if (core.open && core.drawn) rows.push(...lanesOf(core));
    if (core.first) for (const key of ["hbm", "l2"])
      if (core.run.counters[key]) rows.push({ kind: "counter", run: core.run, key, text: key === "hbm" ? "HBM" : "L2" });
  }
  let y = RULER;
  for (const row of rows) { row.y = y; row.h = HEIGHTS[row.kind]; y += row.h; }
  bottom = y;
}
arrange();
state.to = whole;

const us = value => value >= 10 ? value.toFixed(1) : value >= 1 ? value.toFixed(2) : value.toFixed(4);
const x = t => LABEL + (t - state.from) / (state.to - state.from) * (canvas.clientWidth - LABEL);
const at = px => state.from + (px - LABEL) / (canvas.clientWidth - LABEL) * (state.to - state.from);
const done = (s, i) => s.start[i] + s.dur[i] + s.late[i];
const UNITS = {
  S: "scalar unit", MTE2: "loads from global memory", MTE1: "moves to the matrix unit", M: "matrix unit",
  V: "vector unit", FIX: "moves out of the accumulator", MTE3: "stores to global memory",
};
const WORDS = DATA.words ?? { op: "instruction", lane: "pipe", which: "iteration " };  // of what is drawn
const HUES = { S: 220, MTE2: 205, MTE1: 165, M: 5, V: 275, FIX: 32, MTE3: 95 };
const seen = [...new Set(DATA.runs.flatMap(run => run.ops.map(op => op.name)))];
function colour(pipe, name) {  // a hue of the pipe's own, a little apart for each instruction; of a core: of the task's own
  if (!(pipe in HUES)) return 210 + 137.5 * seen.indexOf(name);
  let h = 0;
  for (const c of name) h = (h * 31 + c.charCodeAt(0)) % 41;
  return HUES[pipe] + h - 20;
}
function firstAfter(list, key, t) {
  let low = 0, high = list.length;
  while (low < high) { const mid = (low + high) >> 1; if (key(list[mid]) <= t) low = mid + 1; else high = mid; }
  return low;
}

// ---- drawing
function hatched() {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const with_ = tile.getContext("2d");
  with_.strokeStyle = ink.hatch; with_.beginPath(); with_.moveTo(0, 6); with_.lineTo(6, 0); with_.stroke();
  return pen.createPattern(tile, "repeat");
}
let hatch = null;

function draw() {
  const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== w * ratio || canvas.height !== h * ratio) { canvas.width = w * ratio; canvas.height = h * ratio; }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, w, h);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.save(); pen.translate(0, -state.top);
  for (const row of rows) {
    if (row.y + row.h < state.top || row.y > state.top + h) continue;
    if (row.kind === "core") { drawCore(row, w); continue; }
    if (row.kind === "head") { pen.fillStyle = ink.soft; pen.fillText(row.text, 8, row.y + row.h / 2 + 2); continue; }
    if (row.kind === "lane") drawLane(row, w); else drawCounter(row, w);
    pen.fillStyle = ink.paper; pen.fillRect(0, row.y, LABEL, row.h);
    pen.fillStyle = ink.ink; pen.fillText(row.text, 22, row.y + row.h / 2);
  }
  for (const core of cores) if (core.open && core.drawn) core.drawn.gaps.forEach(gap => drawGap(core, gap));
  if (state.range) {
    pen.fillStyle = ink.range;
    pen.fillRect(x(state.range[0]), RULER, x(state.range[1]) - x(state.range[0]), bottom - RULER);
  }
  drawArrows();
  pen.restore();
  drawRuler(w);
}

function drawCore(row, w) {  // its name; while it is closed, a thin line for each pipe too
  const { core } = row, part = core.drawn;
  const short = `${DATA.runs.length > 1 ? `${DATA.runs.indexOf(core.run) + 1}: ` : ""}core ${core.number}`;
  pen.fillStyle = ink.pane; pen.fillRect(0, row.y + 1, w, row.h - 2);
  pen.fillStyle = ink.soft;
  pen.fillText(`${!part ? "\u00a0\u00a0" : core.open ? "\u25be" : "\u25b8"} ${core.open || !part ? row.text : short}`, 6, row.y + row.h / 2);
  if (core.open || !part) return;
  const high = (row.h - 6) / part.pipes.length, s = part.slices;
  part.pipes.map((pipe, n) => n).sort((a, b) => rank(part.pipes[a]) - rank(part.pipes[b])).forEach((n, place) => {
    const top = row.y + 3 + place * high;
    let solidTo = -1;
    for (const i of part.byPipe[n]) {
      const left = Math.max(LABEL, x(s.start[i])), free = Math.max(left, x(s.start[i] + s.dur[i])), right = x(done(s, i));
      if (right < solidTo + .4 || right < LABEL || left > w) continue;
      pen.fillStyle = `hsl(${colour(part.pipes[n].name, part.ops[s.op[i]].name)} 58% ${ink.light})`;
      pen.fillRect(left, top, Math.max(.6, free - left), Math.max(1, high - .5));
      if (right > free) { pen.globalAlpha = .35; pen.fillRect(free, top, right - free, Math.max(1, high - .5)); pen.globalAlpha = 1; }
      solidTo = right;
    }
  });
}

function drawLane(row, w) {
  const { run, pipe } = row, s = run.slices, list = run.byPipe[pipe], top = row.y + 3, height = row.h - 6;
  pen.strokeStyle = ink.line; pen.beginPath(); pen.moveTo(LABEL, row.y + row.h - .5); pen.lineTo(w, row.y + row.h - .5); pen.stroke();
  let n = Math.max(0, firstAfter(list, i => s.start[i], state.from) - 1), solidTo = -1;
  while (n > 0 && done(s, list[n - 1]) > state.from) n--;
  for (; n < list.length && Math.min(s.ready[list[n]], s.start[list[n]]) < state.to; n++) {
    const i = list[n], left = x(s.start[i]), right = x(done(s, i)), free = x(s.start[i] + s.dur[i]);
    if (s.cause[i] >= 0 && s.ready[i] < s.start[i]) {
      const since = x(s.ready[i]);
      if (left - since > 1) { pen.fillStyle = hatch; pen.fillRect(since, top + 3, left - since, height - 6); }
    }
    if (right < solidTo + .4 && n + 1 < list.length) continue;  // many to one pixel: one of them is enough
    const op = run.ops[s.op[i]], lit = state.line !== null && placeOf(op) === state.line;
    const pale = (state.critical && !run.onPath.has(i)) || (state.line !== null && !lit);
    pen.fillStyle = `hsl(${colour(row.text, op.name)} ${pale ? "18%" : "58%"} ${pale ? ink.pale : ink.light})`;
    pen.fillRect(left, top, Math.max(.6, free - left), height);
    if (right > free + .5) { pen.globalAlpha = .35; pen.fillRect(free, top + 4, right - free, height - 8); pen.globalAlpha = 1; }
    if (i === state.chosen?.i && row.core === coreOf(state.chosen)) {
      pen.strokeStyle = ink.mark; pen.lineWidth = 2; pen.strokeRect(left, top, Math.max(2, free - left), height); pen.lineWidth = 1;
    }
    if (free - left > 44) {
      pen.save(); pen.beginPath(); pen.rect(left, top, free - left, height); pen.clip();
      pen.fillStyle = pale ? ink.soft : "#1c2733"; pen.fillText(op.name, left + 4, row.y + row.h / 2); pen.restore();
    }
    solidTo = right;
  }
}

function drawGap(core, gap) {  // rounds or iterations that repeat others: their time, without their instructions
  const mine = rows.filter(row => row.core === core && row.kind === "lane" && gap.agents.includes(core.drawn.pipes[row.pipe].agent));
  const left = Math.max(LABEL, x(gap.from)), wide = x(gap.to) - left;
  if (!mine.length || wide <= 0) return;
  const top = mine[0].y, height = mine[mine.length - 1].y + LANE - top;
  pen.fillStyle = ink.pane; pen.fillRect(left, top, wide, height);
  pen.fillStyle = hatch; pen.globalAlpha = .35; pen.fillRect(left, top, wide, height); pen.globalAlpha = 1;
  pen.save(); pen.beginPath(); pen.rect(left, top, wide, height); pen.clip();
  pen.fillStyle = ink.soft; pen.fillText(gap.text, left + 6, top + LANE / 2); pen.restore();
}

function drawCounter(row, w) {
  const { run, key } = row, points = run.counters[key], step = run.counters.step;
  pen.fillStyle = ink[key];
  points.forEach((value, n) => {
    const left = x(n * step), right = x((n + 1) * step);
    if (right < LABEL || left > w) return;
    const height = Math.min(1.1, value) * (row.h - 6);
    pen.fillRect(left, row.y + row.h - 2 - height, Math.max(.6, right - left), height);
  });
}

const coreOf = each => each.core ?? cores.find(core => core.drawn === each.run);
function rowOf(core, pipe) { return rows.find(row => row.kind === "lane" && row.core === core && row.pipe === pipe); }

function drawArrows() {
  const arrow = (core, from, to) => {
    const s = core.drawn.slices, a = rowOf(core, s.pipe[from]), b = rowOf(core, s.pipe[to]);
    if (!a || !b) return;
    const x1 = x(done(s, from)), x2 = x(s.start[to]), y1 = a.y + a.h / 2, y2 = b.y + b.h / 2;
    pen.strokeStyle = pen.fillStyle = ink.mark;
    pen.beginPath(); pen.moveTo(x1, y1); pen.bezierCurveTo(x1 + 18, y1, x2 - 18, y2, x2, y2); pen.stroke();
    pen.beginPath(); pen.moveTo(x2, y2); pen.lineTo(x2 - 6, y2 - 3); pen.lineTo(x2 - 6, y2 + 3); pen.fill();
  };
  if (state.critical) for (const core of cores.filter(each => each.open && each.drawn)) {
    const path = core.drawn.critical, s = core.drawn.slices;
    for (let n = 1; n < path.length; n++)
      if (s.pipe[path[n - 1]] !== s.pipe[path[n]] && done(s, path[n]) > state.from && s.start[path[n - 1]] < state.to)
        arrow(core, path[n - 1], path[n]);
  }
  for (const each of [state.chosen, state.hover]) if (each) {
    const s = each.run.slices;
    if (s.cause[each.i] >= 0) arrow(coreOf(each), s.cause[each.i], each.i);
  }
}

function drawRuler(w) {
  pen.fillStyle = ink.paper; pen.fillRect(0, 0, w, RULER);
  const span = state.to - state.from, raw = span / Math.max(4, (w - LABEL) / 110), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= raw);
  pen.fillStyle = ink.soft; pen.strokeStyle = ink.line;
  for (let t = Math.ceil(state.from / step) * step; t <= state.to; t += step) {
    pen.beginPath(); pen.moveTo(x(t), RULER - 5); pen.lineTo(x(t), RULER); pen.stroke();
    const text = `${+t.toPrecision(6)} us`;
    if (x(t) >= LABEL && x(t) + 3 + pen.measureText(text).width <= w) pen.fillText(text, x(t) + 3, RULER / 2);
  }
}

// ---- what is under the pointer, and what is told about it
function under(px, py) {
  const row = rows.find(each => each.kind === "lane" && py + state.top >= each.y && py + state.top < each.y + each.h);
  if (!row || px < LABEL) return null;
  const s = row.run.slices, list = row.run.byPipe[row.pipe], t = at(px);
  const n = firstAfter(list, i => s.start[i], t) - 1, near = (state.to - state.from) / canvas.clientWidth * 2;
  if (n >= 0 && done(s, list[n]) + near >= t) return { run: row.run, core: row.core, i: list[n], waits: false };
  const next = list[n + 1];
  return next !== undefined && s.cause[next] >= 0 && s.ready[next] <= t ? { run: row.run, core: row.core, i: next, waits: true } : null;
}

const placeOf = op => op.line ? `${op.file}:${op.line}` : null;
const named = new Map(DATA.sources.map(each => [each.file, each.name]));
const lineOf = op => DATA.sources.length > 1 ? `${named.get(op.file) ?? op.file}:${op.line}` : `line ${op.line}`;

function told({ run, i, waits }) {
  const s = run.slices, op = run.ops[s.op[i]], lines = [];
  const counters = run.counters.of[i] ?? "", round = run.rounds[firstAfter(run.rounds, each => each[0], i) - 1];
  lines.push(`${op.name}${op.line ? `, ${lineOf(op)}` : ""}${counters ? `, ${WORDS.which}${counters}` : ""}`);
  if (run.rounds.length > 1) lines.push(`round ${round[1]}, block ${round[2]}`);
  lines.push(run.mhz ? `${us(s.dur[i])} us (${Math.round(s.dur[i] * run.mhz)} cycles), visible ${us(s.late[i])} us later` : `${us(s.dur[i])} us`);
  if (s.cause[i] >= 0) {
    const other = run.ops[s.op[s.cause[i]]];
    lines.push(`${waits ? "waiting" : "waited"} ${us(s.start[i] - s.ready[i])} us for ${other.name}${other.line ? ` of ${lineOf(other)}` : ""}`);
  }
  if (op.status) lines.push(`cost: ${op.status}${op.status === "guess" ? " (no published value)" : ""}`);
  return lines.join("\n");
}

const HINT = `click ${WORDS.op === "instruction" ? "an" : "a"} ${WORDS.op}`;
function showKind() {
  document.getElementById("kind").innerText = WORDS.op;
  document.getElementById("chosen").innerText = HINT;
}
function choose(which, move) {
  state.chosen = which;
  if (which && move) {
    const s = which.run.slices, middle = s.start[which.i] + s.dur[which.i] / 2, span = state.to - state.from;
    if (middle < state.from || middle > state.to) { state.from = middle - span / 2; state.to = middle + span / 2; }
    if (!coreOf(which).open) { coreOf(which).open = true; arrange(); }
    const row = rowOf(coreOf(which), s.pipe[which.i]);
    if (row.y < state.top + RULER || row.y + row.h > state.top + canvas.clientHeight) state.top = Math.max(0, row.y - 80);
  }
  document.getElementById("chosen").innerText = which ? told(which) : HINT;
  if (which) tell(placeOf(which.run.ops[which.run.slices.op[which.i]]));
  draw();
}
function tell(place) { if (window !== parent) parent.postMessage({ at: place }, "*"); }  // to the page around this one
window.addEventListener("message", event => { if (event.source === parent && event.data) { state.line = event.data.at ?? null; draw(); } });

function sums(from, to) {
  return DATA.runs.map(run => run.pipes.map((pipe, n) => {
    const s = run.slices;
    let busy = 0, waits = 0, count = 0, until = from;
    for (const i of run.byPipe[n]) {
      const a = Math.max(from, s.start[i], until), b = Math.min(to, done(s, i));
      if (b > a) { busy += b - a; until = b; }
      if (s.start[i] >= from && s.start[i] < to) count++;
      if (s.cause[i] >= 0) waits += Math.max(0, Math.min(to, s.start[i]) - Math.max(from, s.ready[i]));
    }
    for (const gap of run.gaps) {
      const share = Math.max(0, Math.min(to, gap.to) - Math.max(from, gap.from)) / (gap.to - gap.from || 1);
      busy += gap.busy[n] * share; waits += gap.waits[n] * share; count += Math.round(gap.count[n] * share);
    }
    return { agent: run.agents[pipe.agent], pipe: pipe.name, busy, waits, count };
  }));
}

function showSums() {
  const [from, to] = state.range ?? [0, whole];
  document.getElementById("span").innerText = state.range ? `${us(from)} to ${us(to)} us: ${us(to - from)} us` : `all ${us(whole)} us on the cores`;
  const body = sums(from, to).flatMap((pipes, n) => pipes.filter(p => p.count || p.busy).map(p =>
    `<tr><td>${DATA.runs.length > 1 ? escape(DATA.runs[n].label) + " " : ""}${escape(p.agent)} ${p.pipe}</td>` +
    `<td>${us(p.busy)}</td><td>${(100 * p.busy / (to - from)).toFixed(0)}%</td><td>${us(p.waits)}</td><td>${p.count}</td></tr>`));
  document.getElementById("sums").innerHTML =
    `<tr><th>${WORDS.lane}</th><th>busy us</th><th></th><th>waits</th><th>n</th></tr>` + body.join("");
}
function escape(text) { const e = document.createElement("i"); e.innerText = text; return e.innerHTML; }

function showWaits() {
  const list = document.getElementById("waits");
  list.previousElementSibling.hidden = !DATA.runs.some(run => run.waits.length);
  DATA.runs.forEach(run => run.waits.forEach(wait => {
    const line = document.createElement("div");
    line.className = "wait";
    line.innerText = wait.text;
    line.onclick = () => { if (wait.at >= 0) choose({ run, i: wait.at }, true); };
    list.append(line);
  }));
}

function showSource() {
  const pane = document.getElementById("source"), spent = {};
  for (const run of DATA.runs.slice(0, 1)) run.slices.op.forEach((op, i) => {
    const place = placeOf(run.ops[op]);
    if (place) spent[place] = (spent[place] ?? 0) + run.slices.dur[i];
  });
  for (const { file, name, lines } of DATA.sources) {
    if (DATA.sources.length > 1) pane.append(Object.assign(document.createElement("h3"), { innerText: name }));
    lines.forEach((text, n) => {
      const line = document.createElement("div"), time = document.createElement("span"), place = `${file}:${n + 1}`;
      time.innerText = spent[place] ? us(spent[place]) : "";
      line.append(time, text);
      line.onclick = () => {
        state.line = state.line === place ? null : place;
        pane.querySelectorAll(".lit").forEach(each => each.classList.remove("lit"));
        if (state.line) line.classList.add("lit");
        tell(state.line);
        draw();
      };
      pane.append(line);
    });
  }
  // Start at the code that takes time, not at a licence or imports.
  const first = [...pane.querySelectorAll("div")].find(line => line.firstChild.innerText);
  if (first) pane.scrollTop = first.offsetTop - pane.offsetTop - 3 * first.offsetHeight;
}

function showLegend() {
  const used = [...new Set(DATA.runs.flatMap(run => run.pipes.map(pipe => pipe.name)))].filter(name => name in HUES)
    .sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const runs = DATA.runs, has = test => runs.some(test);
  const marks = [
    ...used.map(name => [`background: hsl(${HUES[name]} 58% 62%)`, `${name}: ${UNITS[name]}`]),
    ["", `waits for another ${WORDS.lane}`, "hatch"],
    ...(has(run => run.slices.late.some(each => each)) ? [["background: linear-gradient(90deg, hsl(275 58% 62%) 50%, hsl(275 58% 62% / .35) 50%)", "paler end: the result is not visible yet"]] : []),
    ...(has(run => run.gaps.length) ? [["", "repeats what is drawn", "hatch pane"]] : []),
    ...(has(run => run.counters.hbm) ? [["background: var(--hbm)", "share of memory's rate"], ["background: var(--l2)", "share of the L2 cache's rate"]] : []),
    ["border-top: 2px solid var(--mark); height: 0", "arrow: from what was waited for"],
  ];
  document.getElementById("legend").innerHTML = marks.map(([style, text, kind]) =>
    `<span><i class="${kind ?? ""}" style="${style}"></i>${escape(text)}</span>`).join("");
}

// ---- pointer and keys, as in Perfetto
function zoom(factor, px) {
  const t = at(px ?? (canvas.clientWidth + LABEL) / 2), span = (state.to - state.from) * factor;
  if (span < whole * 1e-7) return;
  const share = (t - state.from) / (state.to - state.from);
  state.from = t - span * share; state.to = state.from + span;
  if (span >= whole) { state.from = 0; state.to = whole; }
  draw();
}
function pan(share) { const d = (state.to - state.from) * share; state.from += d; state.to += d; draw(); }
function follow() {
  const each = state.chosen;
  if (each && each.run.slices.cause[each.i] >= 0) choose({ run: each.run, core: each.core, i: each.run.slices.cause[each.i] }, true);
}
let drag = null;
stage.addEventListener("wheel", event => {
  event.preventDefault();
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY * .0015), event.offsetX);
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / 1500);
  else { state.top = Math.max(0, Math.min(bottom - 120, state.top + event.deltaY)); draw(); }
}, { passive: false });
canvas.addEventListener("mousedown", event => { drag = { x: event.offsetX, y: event.offsetY, moved: false }; });
canvas.addEventListener("mousemove", event => {
  if (drag && Math.abs(event.offsetX - drag.x) > 3) {
    drag.moved = true;
    state.range = [at(Math.min(drag.x, event.offsetX)), at(Math.max(drag.x, event.offsetX))].map(t => Math.max(0, Math.min(whole, t)));
    showSums(); draw();
    return;
  }
  state.hover = under(event.offsetX, event.offsetY);
  tip.style.display = state.hover ? "block" : "none";
  if (state.hover) {
    tip.innerText = told(state.hover);
    tip.style.maxWidth = `${Math.min(420, canvas.clientWidth - 20)}px`;
    tip.style.left = `${Math.max(4, Math.min(event.offsetX + 14, canvas.clientWidth - tip.offsetWidth - 6))}px`; tip.style.top = `${Math.max(4, Math.min(event.offsetY + 14, canvas.clientHeight - tip.offsetHeight - 6))}px`;
  }
  draw();
});
canvas.addEventListener("mouseup", event => {
  const head = rows.find(row => row.kind === "core" && event.offsetY > RULER && event.offsetY + state.top >= row.y && event.offsetY + state.top < row.y + row.h);
  if (drag && !drag.moved && head) {
    head.core.open = !head.core.open;
    arrange(); draw();
  } else if (drag && !drag.moved) {
    const found = under(event.offsetX, event.offsetY);
    if (found?.waits && state.chosen?.i === found.i) follow(); else choose(found, false);
    if (!found) { state.range = null; showSums(); draw(); }
  }
  drag = null;
});
canvas.addEventListener("mouseleave", () => { state.hover = null; tip.style.display = "none"; draw(); });
document.addEventListener("keydown", event => {
  const act = {
    w: () => zoom(.6), s: () => zoom(1 / .6), a: () => pan(-.2), d: () => pan(.2), Enter: follow,
    f: () => {
      const s = state.chosen?.run.slices, i = state.chosen?.i;
      [state.from, state.to] = s ? [s.start[i] - s.dur[i], done(s, i) + s.dur[i]] : state.range ?? [0, whole];
      draw();
    },
    0: () => { state.from = 0; state.to = whole; draw(); },
    o: () => { const open = cores.some(core => !core.open); cores.forEach(core => { core.open = open || core.first; }); arrange(); draw(); },
    c: () => { state.critical = !state.critical; draw(); },
    Escape: () => { state.range = null; state.line = null; choose(null); showSums(); },
    ArrowRight: () => step(1), ArrowLeft: () => step(-1),
  }[event.key];
  if (act && !event.ctrlKey && !event.metaKey) { act(); event.preventDefault(); }
});
function step(by) {
  const each = state.chosen;
  if (!each) return;
  const list = each.run.byPipe[each.run.slices.pipe[each.i]], next = list[list.indexOf(each.i) + by];
  if (next !== undefined) choose({ run: each.run, core: each.core, i: next }, true);
}
window.addEventListener("resize", draw);
function dress() { theme(); hatch = hatched(); draw(); }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
document.body.classList.toggle("framed", window !== parent);
window.timeline = { state, sums, x, rowOf, cores, get rows() { return rows; } };
showKind(); showSums(); showWaits(); showSource(); showLegend(); dress();
