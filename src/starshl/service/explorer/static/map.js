// The map page: classes and their colors, what is under the pointer, and what is selected, labeled, opened and listed.

import { clearName, listenForNames, showMeaning } from "./naming.js";
import { Plane } from "./plane.js";
import { ignoreSecondClicks, make, newKey, notify, request, send } from "./shared.js";
import { openViewer } from "./viewer.js";

const content = document.getElementById("map-content");
const address = content.dataset.address;
// No two of them are alike, on light and on dark; a thirteenth would be.
const COLORS = ["#6c6cfc", "#fc546c", "#00a818", "#fcb43c", "#00c0fc", "#a8249c", "#9c0000", "#006c54", "#a87818", "#e478fc", "#00f090", "#4824b4"];
const SCALE = 10000; // of coordinates
const MOST_CARDS = 60;
const MOST_IN_A_CHANGE = 10000;
const MILLISECONDS_OF_A_GLANCE = 120; // what the pointer only passes over says nothing

let data, plane;
let selection = new Set(); // of ids
let highlighted = null; // a class; the others are faint
let isByConfidence = false; // what colors say
let isLabeling = false;
let hovered = -1;
let glance;
const colors = new Map(); // from class to color; none changes while the page is open

const darkness = matchMedia("(prefers-color-scheme: dark)");
const gray = () => (darkness.matches ? "#64748b" : "#94a3b8");
const labelOf = (number) => data.labels[data.label[number]];
const numbersOf = (name) => data.ids.map((_, number) => number).filter((number) => labelOf(number) === name);

function colorOf(number) {
  if (isByConfidence) return data.label[number] < 0 ? gray() : `hsl(${Math.round(1.2 * data.confidence[number])} 75% 48%)`;
  return labelOf(number) === highlighted && highlighted !== null ? colors.get(highlighted) ?? "#fc546c" : colors.get(labelOf(number)) ?? gray();
}

/** The most used classes get the colors that there are; a class keeps its own. */
function giveColors() {
  for (const name of data.labels) {
    const free = COLORS.find((color) => ![...colors.values()].includes(color));
    if (!free) return;
    if (!colors.has(name)) colors.set(name, free);
  }
}

function highlight(name) {
  if (highlighted === name) return;
  highlighted = name;
  plane.redraw();
}

/** List the classes with their colors: a pointer over one lights its items up, a click selects them. */
function showClasses() {
  const counts = new Map();
  for (const number of data.label) counts.set(number, (counts.get(number) ?? 0) + 1);
  const rows = data.labels.map((name, number) => {
    const dot = make("span", { class: "dot" });
    dot.style.background = colors.get(name) ?? gray();
    const edit = make("a", { class: "edit", "data-edit-class": "", href: `${address}/classes?${new URLSearchParams({ label: name })}`, "aria-label": `Rename, merge or remove ${name}`, title: `Rename, merge or remove ${name}` }, "⋯");
    return make("li", { class: "with-edit" }, make("button", { type: "button", class: "secondary", "data-class": name, title: name }, dot, make("span", { class: "class-name" }, name), make("small", {}, (counts.get(number) ?? 0).toLocaleString("en"))), edit);
  });
  document.getElementById("legend").replaceChildren(...rows);
  document.getElementById("find-class").hidden = data.labels.length <= COLORS.length;
  document.getElementById("beyond").hidden = data.labels.length <= COLORS.length;
  findClass();
}

function findClass() {
  const wanted = document.getElementById("find-class").value.trim().toLowerCase();
  for (const row of document.querySelectorAll("#legend li")) row.hidden = !row.querySelector(".class-name").textContent.toLowerCase().includes(wanted);
}

// What is under the pointer, and what is selected.

/** Name what is under the pointer at once, and show its picture and file as soon as they are here. */
function showHovered(number, point) {
  const tip = document.getElementById("tip");
  plane.canvas.classList.toggle("over", number >= 0);
  if (number === hovered) return;
  hovered = number;
  clearTimeout(glance);
  tip.hidden = true;
  if (number < 0) return;
  glance = setTimeout(async () => {
    try {
      const cards = await (await request(`${address}/cards?ids=${data.ids[number]}`)).text();
      if (number !== hovered) return;
      tip.innerHTML = cards;
      if (!tip.querySelector("li")) return; // it was removed
      tip.style.left = `${Math.min(point[0] + 14, plane.canvas.clientWidth - 180)}px`;
      tip.style.top = `${Math.min(point[1] + 14, plane.canvas.clientHeight - 210)}px`;
      tip.hidden = false;
    } catch { /* it is named when it is clicked */ }
  }, MILLISECONDS_OF_A_GLANCE);
}

/** Select items, and show them in the list beside the map. */
async function select(ids) {
  selection = new Set(ids);
  plane.redraw();
  document.getElementById("count").textContent = ids.length ? `${ids.length.toLocaleString("en")}` : "none";
  document.getElementById("with-selection").hidden = ids.length === 0;
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

/** Select the item that was clicked; a second click opens it. */
function click(number) {
  const id = number < 0 ? null : data.ids[number];
  if (id !== null && selection.size === 1 && selection.has(id)) openViewer(`${address}/items/${id}`);
  else select(id === null ? [] : [id]);
}

/** Go to the page that lists what is selected, where it can be searched and filtered. */
async function listSelection() {
  try {
    location.href = (await send(`${address}/selections`, { ids: [...selection] })).address;
  } catch (error) {
    notify(error.message, { isError: true });
  }
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
    await showChanged();
    document.getElementById("undo").hidden = false;
    notify(`${ids.length.toLocaleString("en")} labeled ${label}.`);
  } catch (error) {
    notify(error.message, { isError: true });
    const box = document.getElementById("label");
    if (!box.value) { box.value = label; showMeaning(content, data.labels); }
  }
  isLabeling = false;
}

/** Take back the last change, as the button of the same name in a lesson does. */
async function undo() {
  try {
    const { message } = await send(`${address}/teach/changes`, { changes: [{ key: newKey(), action: "undo" }] });
    await showChanged();
    notify(message);
  } catch (error) {
    notify(error.message, { isError: true });
  }
}

/** Show the labels that items have now, also those of the selection. */
async function showChanged() {
  await load();
  await select([...selection]);
}

// The page.

async function load() {
  data = await (await request(`${address}/map/items`)).json();
  giveColors();
  showClasses();
  plane.show({
    x: Float32Array.from(data.x, (each) => each / SCALE),
    y: Float32Array.from(data.y, (each) => each / SCALE),
    color: colorOf,
    isGiven: (number) => Boolean(data.given[number]),
    isSelected: (number) => selection.has(data.ids[number]),
    isFaint: (number) => highlighted !== null && labelOf(number) !== highlighted,
    picture: (number) => `${address}/pictures/${data.ids[number]}`,
  });
  document.documentElement.dataset.ready = "map";
}

function listen() {
  content.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.zoom) plane.zoomBy(Number(button.dataset.zoom));
    if (button?.dataset.class !== undefined) select(numbersOf(button.dataset.class).map((number) => data.ids[number]));
    if (button?.id === "list-selection") listSelection();
    if (button?.id === "undo") undo();
    if (button?.dataset.mode) {
      plane.isLasso = button.dataset.mode === "select";
      content.querySelectorAll("[data-mode]").forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
    }
  });
  const legend = document.getElementById("legend");
  for (const [begins, ends] of [["pointerover", "pointerleave"], ["focusin", "focusout"]]) {
    legend.addEventListener(begins, (event) => highlight(event.target.closest("[data-class]")?.dataset.class ?? null));
    legend.addEventListener(ends, () => highlight(null));
  }
  document.getElementById("find-class").addEventListener("input", findClass);
  document.getElementById("color")?.addEventListener("change", (event) => { isByConfidence = event.target.value === "confidence"; plane.redraw(); });
  ignoreSecondClicks(content, "#undo, [data-name], #label-form button:not([type])");
  listenForNames(content, { names: () => data.labels, choose: labelSelection, withoutName: () => notify("Type a name first.", { isError: true }) });
}

document.addEventListener("outdated", () => { if (plane) showChanged().catch((error) => notify(error.message, { isError: true })); });
document.addEventListener("renamed", ({ detail: { before, after } }) => {
  const color = colors.get(before);
  colors.delete(before);
  if (color && after && !colors.has(after)) colors.set(after, color);
});

async function start() {
  const canvas = document.getElementById("map");
  if (!canvas) { if (content.querySelector("progress")) setTimeout(poll, 600); return; }
  plane = new Plane(canvas, {
    click,
    hover: showHovered,
    lasso: (numbers) => select(numbers.map((number) => data.ids[number])),
    escape: () => select([]),
  });
  try { await load(); listen(); } catch (error) { notify(error.message, { isError: true }); }
}

/** Fetch the state of the preparation, or the map. */
async function poll() {
  try { content.innerHTML = await (await request(`${address}/map?part=state`)).text(); } catch { /* the next one may succeed */ }
  start();
}

start();
