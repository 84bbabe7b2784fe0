// The teach page: what is selected, what keys do, changes on their way to the service, and the board that follows from them.

import { clearName, listenForNames, showMeaning } from "./naming.js";
import { Outbox } from "./outbox.js";
import { ignoreSecondClicks, jsonOptions, LoginNeeded, make, notify, request, send } from "./shared.js";

const board = document.getElementById("board");
const address = board.dataset.address;
const MILLISECONDS_BETWEEN_POLLS = 2000;
const MILLISECONDS_WHILE_PREPARING = 400;
// Nobody has seen, and meant, what has stood on the page for less.
const MILLISECONDS_TO_SEE = 300;
let order = new URL(location.href).searchParams.get("order") ?? "least";
let anchor = null; // where a selection of several began
let outbox = null;
let isSending = false;
let isPolling = false;
let isMultiSelect = false; // for fingers, which have no Shift and no Ctrl
let selectionMoved = -Infinity; // when the service has last changed what is selected
let boardShown = -Infinity;
let guess = { text: "", since: -Infinity }; // what Enter would accept, and since when
let isAfterDigit = false; // whether a digit was the last key, so that Enter belongs to it
const keys = new Map(); // from class to digit; none changes while the page is open

const options = () => [...board.querySelectorAll('[role="option"]')];
const proposals = () => [...board.querySelectorAll("#proposals > li")];
const isSelected = (option) => option.getAttribute("aria-selected") === "true";
const selected = () => options().filter(isSelected);
/** The ids of what is selected, as text, for numbers here have 53 bits, and each once: an item may be proposed and also stand among the members of its class. */
const selectedIds = () => [...new Set(selected().map((option) => option.dataset.id))];
const version = () => board.querySelector(".lesson")?.dataset.version;
const isPreparing = () => board.querySelector("[data-preparing] progress") !== null;
const isRecent = (time) => performance.now() - time < MILLISECONDS_TO_SEE;

// Selection.

function setSelected(option, value) { option.setAttribute("aria-selected", String(value)); }

function selectNone() { options().forEach((option) => setSelected(option, false)); }

/** Select one option, or everything between it and where the selection began. */
function select(option, { extend = false, toggle = false } = {}) {
  const all = options();
  if (toggle) setSelected(option, !isSelected(option));
  else if (extend && anchor && all.includes(anchor)) {
    const [from, to] = [all.indexOf(anchor), all.indexOf(option)].sort((a, b) => a - b);
    all.forEach((each, place) => setSelected(each, place >= from && place <= to));
  } else all.forEach((each) => setSelected(each, each === option));
  if (!extend) anchor = option;
  focusOn(option);
}

function focusOn(option) {
  for (const each of options()) each.tabIndex = each === option ? 0 : -1;
  option.focus({ preventScroll: false });
}

/** Set items aside that are being labeled or skipped, and select the next one at once, so that the next key is about it. */
function selectNext(ids) {
  setAside(ids);
  const first = proposals().find((option) => !option.classList.contains("sent"));
  if (isMultiSelect) selectNone();
  if (!first) document.getElementById("label")?.blur(); // keys are keys again
  else if (isMultiSelect) focusOn(first);
  else select(first);
}

function setAside(ids) {
  for (const option of options()) if (ids.includes(option.dataset.id)) { option.classList.add("sent"); setSelected(option, false); }
}

function noteGuess() {
  const text = selected().map((option) => `${option.dataset.id} ${option.dataset.predicted}`).join("\n");
  if (text !== guess.text) guess = { text, since: performance.now() };
}

function showMultiSelect() { board.querySelector('[data-action="several"]')?.setAttribute("aria-pressed", String(isMultiSelect)); }

// The board.

/**
 * Replace the board. Items with the given ids stay selected, and a name that is being typed stays, and so does the focus.
 * With ``pin``, these items stay even if the service no longer shows them: nothing may change under the eyes of somebody
 * about to press a key.
 */
function showBoard(html, { ids = [], pin = false, focus = true } = {}) {
  const box = document.getElementById("label");
  const [typed, caret, isTyping] = [box?.value ?? "", box?.selectionStart, box !== null && document.activeElement === box];
  const takesFocus = focus || board.contains(document.activeElement);
  const finding = document.getElementById("find-class");
  const [wanted, isFinding] = [finding?.value ?? "", finding !== null && document.activeElement === finding];
  const before = selectedIds();
  const pinned = pin ? selected().filter((option) => ids.includes(option.dataset.id)) : [];
  board.innerHTML = html;
  boardShown = performance.now();
  const idsOf = (all) => new Set(all.map((option) => option.dataset.id));
  const [proposed, shown] = [idsOf(proposals()), idsOf(options())];
  // What was proposed stays there: an item may also stand among the members of its class, further down.
  board.querySelector("#proposals")?.prepend(...pinned.filter((option) => !(option.closest("#proposals") ? proposed : shown).has(option.dataset.id)));
  selectNone();
  const again = options().filter((option) => ids.includes(option.dataset.id));
  const first = again[0] ?? options()[0];
  anchor = first ?? null;
  (again.length || isMultiSelect || (pin && ids.length) ? again : options().slice(0, 1)).forEach((option) => setSelected(option, true));
  if (selectedIds().join() !== before.join()) selectionMoved = performance.now();
  if (first) first.tabIndex = 0;
  const input = document.getElementById("label");
  if (input) input.value = typed;
  if (isTyping && input) { input.focus(); input.setSelectionRange(caret, caret); }
  else if (takesFocus) first?.focus({ preventScroll: true });
  const find = document.getElementById("find-class");
  if (find) { find.value = wanted; if (isFinding) find.focus(); }
  showMultiSelect();
  openOutbox();
  showWaiting();
  showMeaning(board, names());
}

/** Fetch the board again. */
async function refresh() {
  const focus = isPreparing();
  const before = version();
  try {
    const html = await (await request(`${address}?part=board&order=${order}`, { headers: { Accept: "application/json" } })).text();
    // A change that was sent meanwhile brings a newer board.
    if (!isSending && version() === before) showBoard(html, { ids: selectedIds(), pin: true, focus });
  } catch (error) {
    notify(error.message, { isError: true });
  }
}

// Changes: put into the outbox, sent in their order, and answered by the board that follows from them.

function addChange(action, body) {
  outbox.add({ action, ...body });
  if (action !== "undo") selectNext(body.ids);
  if (!isSending) sendChanges();
  showWaiting();
}

/** Whether the selection is what somebody has seen and means; if not, say why nothing is changed. */
function isSelectionMeant() {
  let problem = "";
  if (!selected().length) problem = "Select an item first.";
  else if (outbox.changes.some((each) => each.action === "undo")) problem = "The undo is still on its way. Wait until it is done.";
  else if (isRecent(selectionMoved)) problem = "The selection has just changed. Look again, then repeat that.";
  if (problem) notify(problem, { isError: true });
  return !problem;
}

function answer(label) {
  if (!isSelectionMeant()) return;
  clearName(board);
  addChange("answer", { ids: selectedIds(), label });
}

function acceptPrediction() {
  const labels = new Set(selected().map((option) => option.dataset.predicted));
  if (labels.size !== 1 || labels.has("")) notify("There is no common guess to accept. Type a name.", { isError: true });
  else if (isRecent(guess.since)) notify("This guess is new. Look at it, then press Enter again to accept it.", { isError: true });
  else answer([...labels][0]);
}

/** Change a label that is perhaps wrong, unless the list of them has just changed under the pointer. */
function changeSuspect({ suspect, label }) {
  if (isRecent(boardShown)) notify("This list has just changed. Look again, then repeat that.", { isError: true });
  else addChange("answer", { ids: [suspect], label });
}

/** Open the outbox as soon as it is known which collection this is, and send what an earlier visit has left there. */
function openOutbox() {
  const collection = board.querySelector(".lesson")?.dataset.collection;
  if (outbox || !collection) return;
  outbox = new Outbox(collection);
  if (!outbox.length) return;
  notify("Storing what was not sent when you last left this page.");
  selectNext(waitingIds());
  sendChanges();
}

const waitingIds = () => outbox.changes.flatMap((each) => each.ids ?? []);

/** Say how many changes wait, unless it is only the one that is just being sent; and show the classes that are new in them. */
function showWaiting() {
  showClasses();
  const counter = document.getElementById("unsent");
  const n = outbox?.length ?? 0;
  if (!counter) return;
  counter.hidden = n === 0 || (n === 1 && isSending);
  counter.textContent = `${n} waiting to be stored`;
}

// Classes and their keys.

const storedNames = () => [...board.querySelectorAll(".class:not(.waiting)")].map((button) => button.dataset.label);

/** The names of all classes, those included that wait to be stored. */
const names = () => [...new Set([...storedNames(), ...(outbox?.changes ?? []).map((each) => each.label).filter(Boolean)])];

/** Whether digits are keys of classes; otherwise they are part of names. */
function areDigitsKeys() {
  const all = names();
  return all.length > 0 && !all.some((name) => /^\d/.test(name));
}

/** Show classes that wait to be stored, and the key of each class. */
function showClasses() {
  const list = board.querySelector(".classes ul");
  if (!list) return;
  list.querySelectorAll("li:has(> .waiting)").forEach((each) => each.remove());
  const stored = storedNames();
  for (const name of names()) {
    if (!stored.includes(name))
      list.append(make("li", {}, make("button", { type: "button", class: "class waiting", "data-label": name, "aria-label": `Label the selection ${name}` }, make("span", { class: "class-name", title: name }, name))));
    const free = "123456789".split("").find((digit) => ![...keys.values()].includes(digit));
    if (!keys.has(name) && free) keys.set(name, free);
  }
  const areKeys = areDigitsKeys();
  for (const button of list.querySelectorAll(".class")) {
    const key = areKeys ? keys.get(button.dataset.label) : undefined;
    button.querySelector("kbd")?.remove();
    button.removeAttribute("aria-keyshortcuts");
    if (!key) continue;
    button.prepend(make("kbd", { "aria-hidden": "true" }, key));
    button.setAttribute("aria-keyshortcuts", key);
  }
  findClass();
}

/** Show only the classes that have what is typed above them in their name. */
function findClass() {
  const wanted = (document.getElementById("find-class")?.value ?? "").trim().toLowerCase();
  for (const row of board.querySelectorAll(".classes li")) row.hidden = !row.querySelector(".class-name").textContent.toLowerCase().includes(wanted);
}

/** Send all that waits. What the service cannot take now stays, and is sent when it answers again. */
async function sendChanges() {
  isSending = true;
  let isAway = false;
  while (outbox.length && !isAway) {
    const sent = outbox.first();
    board.classList.add("busy");
    showWaiting();
    try {
      const outcome = await send(`${address}/changes`, { changes: sent, order });
      outbox.forget(sent);
      showOutcome(outcome, sent);
    } catch (error) {
      notify(error.message, { isError: true });
      if (isRefusal(error)) { outbox.forget(sent); restore(sent); } else isAway = true;
    }
    board.classList.remove("busy");
  }
  isSending = false;
  showWaiting();
  board.dispatchEvent(new CustomEvent("settled", { bubbles: true }));
}

/** Whether sending the same again would not help; without a status, the service did not answer at all. */
const isRefusal = (error) => !(error instanceof LoginNeeded) && [400, 403, 413, 422].includes(error.status);

/** Show the board that follows from changes, and restore those that were refused. */
function showOutcome({ board: html, message, restored, refused }, sent) {
  if (sent.at(-1).action === "undo") showBoard(html, { ids: restored });
  else showBoard(html, { ids: selectedIds(), pin: true });
  // The focus stays where it is: somebody may be typing a name.
  setAside(waitingIds());
  if (!selected().length) { selectNext([]); selectionMoved = performance.now(); }
  if (refused.length) {
    const keys = refused.map((each) => each.key);
    notify(refused[0].detail, { isError: true });
    restore(sent.filter((each) => keys.includes(each.key)));
  } else if (message) notify(message);
}

/** Let items of refused changes be labeled again, and the first of the names stand where it was typed. */
function restore(changes) {
  const ids = changes.flatMap((each) => each.ids ?? []);
  for (const option of options()) {
    option.classList.remove("sent");
    setSelected(option, ids.includes(option.dataset.id));
  }
  const first = selected()[0];
  if (first) { anchor = first; focusOn(first); selectionMoved = performance.now(); }
  const name = changes.find((each) => each.label)?.label;
  const input = document.getElementById("label");
  if (name && input && !input.value) { input.value = name; showMeaning(board, names()); }
}

// Mouse and keyboard.

const actions = {
  skip: () => { if (isSelectionMeant()) addChange("skip", { ids: selectedIds() }); },
  undo: () => addChange("undo", {}),
  several: () => {
    isMultiSelect = !isMultiSelect;
    showMultiSelect();
    if (!isMultiSelect) return;
    selectNone(); // what is tapped from now on, and nothing else
    notify("Tap all items that belong together, then label them.");
  },
  cancel: () => send(`${address}/cancel`, {}).then(() => poll()).catch((error) => notify(error.message, { isError: true })),
};

board.addEventListener("click", (event) => {
  const option = event.target.closest('[role="option"]');
  if (option) select(option, { extend: event.shiftKey, toggle: event.ctrlKey || event.metaKey || isMultiSelect });
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.suspect) changeSuspect(button.dataset);
  else if (button.dataset.label) answer(button.dataset.label);
  else if (button.dataset.order) { order = button.dataset.order; refresh(); }
  else if (button.dataset.action) actions[button.dataset.action]();
});

document.addEventListener("outdated", refresh);
document.addEventListener("renaming", (event) => {
  if (!outbox?.length) return;
  event.preventDefault();
  notify("Answers are still on their way. Wait until they are stored.", { isError: true });
});
// A class keeps its key under its new name.
document.addEventListener("renamed", ({ detail: { before, after } }) => {
  const key = keys.get(before);
  keys.delete(before);
  if (key && after && !keys.has(after)) keys.set(after, key);
});

board.addEventListener("input", (event) => { if (event.target.id === "find-class") findClass(); });
ignoreSecondClicks(board, "[data-label], [data-name], [data-action=skip], [data-action=undo], #label-form button:not([type])");
listenForNames(board, { names, choose: answer, withoutName: acceptPrediction });
document.addEventListener("pointerdown", () => { isAfterDigit = false; });

document.addEventListener("keydown", (event) => {
  if (!board.querySelector(".lesson") || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
  const wasDigit = isAfterDigit;
  isAfterDigit = false;
  const box = document.getElementById("label");
  const isTyping = event.target.matches("input, textarea, select");
  if (event.repeat && (event.key === "Enter" || (!isTyping && !event.key.startsWith("Arrow")))) { event.preventDefault(); return; }
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !box?.value) {
    event.preventDefault();
    actions.undo();
    return;
  }
  if (isTyping) {
    if (event.key === "Escape") { clearName(board); focusOn(selected()[0] ?? options()[0]); }
    return;
  }
  if (event.altKey || ((event.ctrlKey || event.metaKey) && event.key !== "a")) return;
  const option = event.target.closest?.('[role="option"]');
  if (option && event.key.startsWith("Arrow")) {
    event.preventDefault();
    const to = neighborOf(option, event.key);
    if (to) select(to, { extend: event.shiftKey });
    return;
  }
  if (event.target.closest?.("button, a") && ["Enter", " "].includes(event.key)) return;
  if (box?.value) handleKeyOfName(event, box);
  else handleKey(event, option, wasDigit);
});

/** A name that has begun is finished first: its box gets what is typed, wherever the focus is. */
function handleKeyOfName(event, box) {
  if (event.ctrlKey || event.metaKey) return;
  if (event.key === "Enter") { event.preventDefault(); box.form.requestSubmit(); }
  else if (event.key === "Escape") clearName(board);
  else if (event.key.length === 1 || event.key === "Backspace") box.focus(); // where the key then goes
}

/** Return the option that an arrow key leads to; rows are as long as they look. */
function neighborOf(option, key) {
  const all = options();
  const place = all.indexOf(option);
  if (key === "ArrowRight") return all[place + 1];
  if (key === "ArrowLeft") return all[place - 1];
  const here = option.getBoundingClientRect();
  const isBelow = key === "ArrowDown";
  const beyond = all.filter((each) => {
    const top = each.getBoundingClientRect().top;
    return isBelow ? top > here.top + 5 : top < here.top - 5;
  });
  const rows = beyond.map((each) => each.getBoundingClientRect().top);
  const row = isBelow ? Math.min(...rows) : Math.max(...rows);
  const inRow = beyond.filter((each) => Math.abs(each.getBoundingClientRect().top - row) < 5);
  const distance = (each) => Math.abs(each.getBoundingClientRect().left - here.left);
  return inRow.sort((one, other) => distance(one) - distance(other))[0];
}

function handleKey(event, option, wasDigit) {
  const { key } = event;
  if (key === " " && option) select(option, { toggle: true });
  else if (key === "Enter" && wasDigit) notify("The digit alone was the answer. Press Enter again to accept the next guess.");
  else if (key === "Enter") acceptPrediction();
  else if ((event.ctrlKey || event.metaKey) && key === "a") proposals().forEach((each) => setSelected(each, true));
  else if (key === "Backspace") actions.undo();
  else if (key === "Delete" || key === "-") actions.skip();
  else if (/^\d$/.test(key) && areDigitsKeys()) answerByKey(key);
  else if (key.length === 1) startTyping(key);
  else return;
  event.preventDefault();
}

function answerByKey(key) {
  isAfterDigit = true;
  const name = names().find((each) => keys.get(each) === key);
  if (name !== undefined) answer(name);
  else notify(`No class has the key ${key}. Type a name instead; one that begins with a digit, in the box.`, { isError: true });
}

function startTyping(key) {
  const input = document.getElementById("label");
  if (!input) return;
  input.focus();
  input.value = key;
  showMeaning(board, names());
}

// Polling: other tabs and programs may change something, and a preparation takes a while.

async function poll() {
  if (isSending || isPolling || document.hidden) return;
  isPolling = true;
  try {
    const state = await (await request(`${address}/state`)).json();
    const codes = document.getElementById("codes");
    if (codes && state.codes) codes.textContent = { current: "codes up to date", running: "codes are learning", waiting: "codes are learning" }[state.codes] ?? `codes ${state.codes}`;
    // What a login has interrupted, or a service that did not answer; one that has begun again prepares its lesson first.
    if (outbox?.length && !isSending && state.version !== null) await sendChanges();
    else if (!isSending && (isPreparing() || String(state.version ?? "") !== (version() ?? ""))) await refresh();
  } catch { /* the next one may succeed */ }
  isPolling = false;
}

setInterval(() => { if (isPreparing()) poll(); }, MILLISECONDS_WHILE_PREPARING);
setInterval(() => { if (!isPreparing()) poll(); }, MILLISECONDS_BETWEEN_POLLS);
document.addEventListener("visibilitychange", poll);
addEventListener("beforeunload", (event) => { if (outbox?.length) event.preventDefault(); });
// The last attempt may outlive the page. If it fails, or is too long for that, the browser keeps the changes until the
// next visit; if it arrives after all, their keys tell the service that it has them.
addEventListener("pagehide", () => {
  if (outbox?.length) fetch(`${address}/changes`, { ...jsonOptions({ changes: outbox.first(), order }), keepalive: true }).catch(() => {});
});
new MutationObserver(noteGuess).observe(board, { subtree: true, childList: true, attributeFilter: ["aria-selected"] });
if (board.querySelector(".lesson")) showBoard(board.innerHTML);
document.documentElement.dataset.ready = "teach";
