// The map on a canvas: dots from afar, pictures from near; drag to move or to select.

import { clearName, listenForNames, showMeaning } from "./naming.js";
import { ignoreSecondClicks, newKey, notify, request, send } from "./shared.js";

const content = document.getElementById("map-content");
const address = content.dataset.address;
const COLORS = ["#4f46e5", "#e11d48", "#059669", "#d97706", "#0891b2", "#9333ea", "#65a30d", "#db2777", "#0d9488", "#b45309", "#2563eb", "#7c2d12"];
const SCALE = 10000; // of coordinates
const MOST_PICTURES = 120;
const MOST_CARDS = 60;
const MOST_IN_A_CHANGE = 10000;

let canvas, context, data;
let view = { x: 0.5, y: 0.5, zoom: 1 };
let mode = "move";
let selection = new Set(); // of ids
let drag = null;
let isLabeling = false;
const pictures = new Map();

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const side = () => Math.min(canvas.clientWidth, canvas.clientHeight) * 0.92 * view.zoom;
const toScreen = (position) => [
  canvas.clientWidth / 2 + (data.x[position] / SCALE - view.x) * side(),
  canvas.clientHeight / 2 + (1 - data.y[position] / SCALE - view.y) * side(),
];

function colorOf(position) {
  const by = document.getElementById("color").value;
  if (by === "confidence") return `hsl(${Math.round(1.2 * data.confidence[position])} 75% ${isDark() ? 60 : 42}%)`;
  const number = by === "code" ? data.code[position] : data.label[position];
  if (number < 0) return isDark() ? "#64748b" : "#94a3b8";
  return number < COLORS.length ? COLORS[number] : `hsl(${(number * 47) % 360} 65% 50%)`;
}

/** Draw everything; what is selected and what has a label lies on top. */
function draw() {
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  const shown = [];
  for (let position = 0; position < data.ids.length; position += 1) {
    const [x, y] = toScreen(position);
    if (x > -40 && y > -40 && x < canvas.clientWidth + 40 && y < canvas.clientHeight + 40) shown.push([position, x, y]);
  }
  if (shown.length <= MOST_PICTURES && data.ids.length > shown.length) shown.forEach(drawPicture);
  else drawDots(shown);
  if (drag?.box) drawBox(drag.box);
}

function drawDots(shown) {
  const radius = Math.max(1.4, Math.min(5, 90 / Math.sqrt(shown.length || 1)) * Math.min(1.6, Math.sqrt(view.zoom)));
  for (const [position, x, y] of shown) {
    const isSelected = selection.has(data.ids[position]);
    context.globalAlpha = data.given[position] || isSelected ? 1 : 0.72;
    context.fillStyle = colorOf(position);
    context.beginPath();
    context.arc(x, y, data.given[position] ? radius + 1 : radius, 0, 7);
    context.fill();
    if (isSelected || data.given[position]) {
      context.strokeStyle = isSelected ? (isDark() ? "#fff" : "#000") : isDark() ? "#0f1218" : "#fff";
      context.lineWidth = isSelected ? 2 : 1;
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

function drawPicture([position, x, y]) {
  const id = data.ids[position];
  let picture = pictures.get(id);
  if (!picture) {
    picture = new Image();
    picture.addEventListener("load", scheduleDraw);
    picture.addEventListener("error", () => { picture.isMissing = true; });
    picture.src = `${address}/pictures/${id}`;
    pictures.set(id, picture);
  }
  const size = 44;
  context.fillStyle = colorOf(position);
  context.fillRect(x - size / 2 - 3, y - size / 2 - 3, size + 6, size + 6);
  if (picture.complete && picture.naturalWidth) context.drawImage(picture, x - size / 2, y - size / 2, size, size);
  if (selection.has(id)) { context.strokeStyle = isDark() ? "#fff" : "#000"; context.lineWidth = 3; context.strokeRect(x - size / 2 - 3, y - size / 2 - 3, size + 6, size + 6); }
}

function drawBox([x, y, width, height]) {
  context.strokeStyle = COLORS[0];
  context.lineWidth = 2;
  context.setLineDash([6, 4]);
  context.strokeRect(x, y, width, height);
  context.setLineDash([]);
}

let isScheduled = false;
function scheduleDraw() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => { isScheduled = false; draw(); });
}

function zoomBy(factor, at = [canvas.clientWidth / 2, canvas.clientHeight / 2]) {
  if (factor === 0) view = { x: 0.5, y: 0.5, zoom: 1 };
  else {
    const before = side();
    view.zoom = Math.max(0.5, Math.min(200, view.zoom * factor));
    const after = side();
    view.x += (at[0] - canvas.clientWidth / 2) * (1 / before - 1 / after);
    view.y += (at[1] - canvas.clientHeight / 2) * (1 / before - 1 / after);
  }
  scheduleDraw();
}

function inside([x, y, width, height]) {
  const [left, right] = [Math.min(x, x + width), Math.max(x, x + width)];
  const [top, bottom] = [Math.min(y, y + height), Math.max(y, y + height)];
  return data.ids.filter((_, position) => {
    const [px, py] = toScreen(position);
    return px >= left && px <= right && py >= top && py <= bottom;
  });
}

function nearest(x, y) {
  let best = -1;
  let least = 18 ** 2;
  data.ids.forEach((_, position) => {
    const [px, py] = toScreen(position);
    const distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < least) { least = distance; best = position; }
  });
  return best;
}

/** Select items, and show them in the list beside the map. */
async function select(ids) {
  selection = new Set(ids);
  scheduleDraw();
  document.getElementById("count").textContent = ids.length ? `${ids.length.toLocaleString("en")}` : "none";
  document.getElementById("label-form").hidden = ids.length === 0;
  document.getElementById("hint").hidden = ids.length > 0;
  const list = document.getElementById("selected");
  if (!ids.length) { list.replaceChildren(); return; }
  const current = selection;
  try {
    const cards = await (await request(`${address}/cards?ids=${ids.slice(0, MOST_CARDS).join(",")}`)).text();
    if (selection !== current) return; // something else has been selected since
    list.innerHTML = cards;
    if (ids.length > MOST_CARDS) list.append(`and ${(ids.length - MOST_CARDS).toLocaleString("en")} more`);
  } catch (error) {
    notify(error.message, { isError: true });
  }
}

function legend() {
  const list = document.getElementById("legend");
  list.replaceChildren();
  const by = document.getElementById("color").value;
  const entries = by === "label" ? data.labels.map((name, number) => [name, COLORS[number] ?? `hsl(${(number * 47) % 360} 65% 50%)`])
    : by === "confidence" ? [["unsure", "hsl(0 75% 45%)"], ["half", "hsl(60 75% 45%)"], ["sure", "hsl(120 75% 40%)"]] : [];
  for (const [name, color] of entries.slice(0, 40)) {
    const dot = document.createElement("span");
    dot.style.background = color;
    const entry = document.createElement("li");
    entry.append(dot, name);
    list.append(entry);
  }
}

async function load() {
  data = await (await request(`${address}/map/items`)).json();
  legend();
  draw();
  document.documentElement.dataset.ready = "map";
}

function at(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function listen() {
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoomBy(Math.exp(-event.deltaY / 400), at(event)); }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { start: at(event), last: at(event), moved: false, box: null };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [x, y] = at(event);
    if (Math.hypot(x - drag.start[0], y - drag.start[1]) > 4) drag.moved = true;
    if (mode === "select" || event.shiftKey) drag.box = [drag.start[0], drag.start[1], x - drag.start[0], y - drag.start[1]];
    else { view.x -= (x - drag.last[0]) / side(); view.y -= (y - drag.last[1]) / side(); }
    drag.last = [x, y];
    scheduleDraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { box, moved } = drag;
    drag = null;
    if (box && moved) select(inside(box));
    else if (!moved) { const position = nearest(...at(event)); select(position < 0 ? [] : [data.ids[position]]); }
    scheduleDraw();
  });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (steps) { view.x += steps[0] * 0.08 / view.zoom; view.y += steps[1] * 0.08 / view.zoom; scheduleDraw(); }
    else if (event.key === "+" || event.key === "=") zoomBy(1.3);
    else if (event.key === "-") zoomBy(1 / 1.3);
    else if (event.key === "Escape") select([]);
    else return;
    event.preventDefault();
  });
  content.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.zoom) zoomBy(Number(button.dataset.zoom));
    if (button?.dataset.mode) {
      mode = button.dataset.mode;
      content.querySelectorAll("[data-mode]").forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
    }
  });
  document.getElementById("color").addEventListener("change", () => { legend(); scheduleDraw(); });
  ignoreSecondClicks(content, "[data-name], #label-form button:not([type])");
  listenForNames(content, { names: () => data.labels, choose: labelSelection, withoutName: () => notify("Type a name first.", { isError: true }) });
  new ResizeObserver(scheduleDraw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", scheduleDraw);
}

/** Label what is selected now; a name that is refused comes back into its box. */
async function labelSelection(label) {
  if (isLabeling) { notify("The last label is still being stored. Wait until it is.", { isError: true }); return; }
  const ids = [...selection];
  isLabeling = true;
  clearName(content);
  try {
    for (let start = 0; start < ids.length; start += MOST_IN_A_CHANGE) {
      const change = { key: newKey(), action: "answer", ids: ids.slice(start, start + MOST_IN_A_CHANGE), label };
      const { refused } = await send(`${address}/teach/changes`, { changes: [change] });
      if (refused.length) throw new Error(refused[0].detail);
    }
    await load();
    notify(`${ids.length.toLocaleString("en")} labeled ${label}.`);
  } catch (error) {
    notify(error.message, { isError: true });
    const box = document.getElementById("label");
    if (!box.value) { box.value = label; showMeaning(content, data.labels); }
  }
  isLabeling = false;
}

async function start() {
  canvas = document.getElementById("map");
  if (!canvas) { if (content.querySelector("progress")) setTimeout(poll, 600); return; }
  context = canvas.getContext("2d");
  try { await load(); listen(); } catch (error) { notify(error.message, { isError: true }); }
}

/** Fetch the state of the preparation, or the map. */
async function poll() {
  try { content.innerHTML = await (await request(`${address}/map?part=state`)).text(); } catch { /* the next one may succeed */ }
  start();
}

start();
