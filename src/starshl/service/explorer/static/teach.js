// The teach page: what is selected, what keys do, and boards that follow the newest labels.

import { Outbox } from "./outbox.js";
import { LoginNeeded, request, send, tell } from "./shared.js";

const board = document.getElementById("board");
const address = board.dataset.address;
const SECONDS_BETWEEN_LOOKS = 2;
let order = new URL(location.href).searchParams.get("order") ?? "least";
let anchor = null;
let isSending = false;
let isLooking = false;
let outbox = null;
let isSelectingSeveral = false; // for fingers, which have no Shift and no Ctrl

const options = () => [...board.querySelectorAll('[role="option"]')];
const proposals = () => [...board.querySelectorAll("#proposals > li")];
const selected = () => options().filter((option) => option.getAttribute("aria-selected") === "true");
/** The ids of what is selected, as text, for numbers here have 53 bits, and each once: an item may be proposed and also stand among the members of its class. */
const selectedIds = () => [...new Set(selected().map((option) => option.dataset.id))];
const version = () => board.querySelector(".lesson")?.dataset.version;

function mark(option, isSelected) { option.setAttribute("aria-selected", String(isSelected)); }

/** Select one option, or everything between it and where the selection began. */
function choose(option, { extend = false, toggle = false } = {}) {
  const all = options();
  if (toggle) mark(option, option.getAttribute("aria-selected") !== "true");
  else if (extend && anchor && all.includes(anchor)) {
    const [from, to] = [all.indexOf(anchor), all.indexOf(option)].sort((a, b) => a - b);
    all.forEach((each, place) => mark(each, place >= from && place <= to));
  } else all.forEach((each) => mark(each, each === option));
  if (!extend) anchor = option;
  focusOn(option);
}

function focusOn(option) {
  for (const each of options()) each.tabIndex = each === option ? 0 : -1;
  option.focus({ preventScroll: false });
}

/**
 * Replace the board. What is selected stays selected, and so do a name that is being typed, and the focus. With ``pin``,
 * it stays even if it is no longer proposed: nothing may change under the eyes of somebody about to press a key.
 */
function show(html, { keep = [], pin = false, focus = true, keepFocus = false } = {}) {
  const before = document.getElementById("label");
  const typed = before?.value ?? "";
  const isTyping = before !== null && document.activeElement === before && (typed !== "" || keepFocus);
  const takesFocus = focus || board.contains(document.activeElement);
  const pinned = pin ? proposals().filter((option) => keep.includes(option.dataset.id)) : [];
  board.innerHTML = html;
  // Proposals alone: an item may also stand among the members of its class, further down.
  const shown = new Set(proposals().map((option) => option.dataset.id));
  board.querySelector("#proposals")?.prepend(...pinned.filter((option) => !shown.has(option.dataset.id)));
  selectNone();
  const again = options().filter((option) => keep.includes(option.dataset.id));
  const first = again[0] ?? options()[0];
  anchor = first ?? null;
  (again.length || isSelectingSeveral ? again : options().slice(0, 1)).forEach((option) => mark(option, true));
  if (first) first.tabIndex = 0;
  const input = document.getElementById("label");
  if (input) input.value = typed;
  if (isTyping && input) input.focus();
  else if (takesFocus) first?.focus({ preventScroll: true });
  showSeveral();
  showUnsent();
  openOutbox();
}

function showSeveral() { board.querySelector('[data-do="several"]')?.setAttribute("aria-pressed", String(isSelectingSeveral)); }

/** Send a change; changes arrive in the order in which they were made. */
function change(action, body) {
  outbox.add({ action, ...body });
  if (action !== "undo") goOn(body.ids);
  if (!isSending) next();
  else showUnsent();
}

/** Say how many changes wait, unless it is only the one that is just being sent. */
function showUnsent() {
  const place = document.getElementById("unsent");
  const n = outbox?.length ?? 0;
  if (!place) return;
  place.hidden = n === 0 || (n === 1 && isSending);
  place.textContent = `${n} waiting to be stored`;
}

/** Open the outbox as soon as it is known which collection this is, and send what an earlier visit has left there. */
function openOutbox() {
  const collection = board.querySelector(".lesson")?.dataset.collection;
  if (outbox || !collection) return;
  outbox = new Outbox(collection);
  if (outbox.length) { tell("Storing what was not sent when you last left this page."); next(); }
}

/** Set items aside that are being labeled or skipped. */
function setAside(ids) {
  for (const option of options()) if (ids.includes(option.dataset.id)) { option.classList.add("sent"); mark(option, false); }
}

/** Go on to the next item at once, so that the next key is about it. */
function goOn(ids) {
  setAside(ids);
  const first = proposals().find((option) => !option.classList.contains("sent"));
  if (isSelectingSeveral) selectNone();
  else if (first) choose(first);
}

function selectNone() { options().forEach((option) => mark(option, false)); }

/** Let items be labeled again whose label was refused. */
function comeBack(ids) {
  for (const option of options()) {
    option.classList.remove("sent");
    mark(option, ids.includes(option.dataset.id));
  }
  const first = selected()[0];
  if (first) { anchor = first; focusOn(first); }
}

/** The items that an undo has brought back to be asked for again. */
function againIn(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return [...parsed.querySelectorAll("#proposals > .again")].map((option) => option.dataset.id);
}

/** Send all that waits. What the service cannot take now stays, and is sent when it answers again. */
async function next() {
  isSending = true;
  let isRefused = false;
  while (outbox.length && !isRefused) {
    const sent = outbox.first();
    board.classList.add("busy");
    showUnsent();
    try {
      const answer = await request(`${address}/changes`, sending(sent));
      const html = await answer.text();
      outbox.forget(sent);
      settle(html, sent);
    } catch (error) {
      tell(error.message, { bad: true });
      if (isForGood(error)) { outbox.forget(sent); takeBack(sent); } else isRefused = true;
    }
    board.classList.remove("busy");
  }
  isSending = false;
  showUnsent();
  board.dispatchEvent(new CustomEvent("settled", { bubbles: true }));
}

const sending = (changes) => ({
  method: "POST",
  headers: { "Content-Type": "application/json", Accept: "application/json" },
  body: JSON.stringify({ changes, order }),
});

/** Whether sending the same again would not help; without a status, the service did not answer at all. */
const isForGood = (error) => !(error instanceof LoginNeeded) && [400, 403, 413, 422].includes(error.status);

/** Show the board that follows from changes, and give back what was refused of them. */
function settle(html, sent) {
  if (sent.at(-1).action === "undo") show(html, { keep: againIn(html) });
  else show(html, { keep: selectedIds(), pin: true });
  // The focus stays where it is: somebody may be typing a name.
  for (const { ids } of outbox.changes) if (ids) setAside(ids);
  if (!selected().length) goOn([]);
  const { message, refused } = board.querySelector(".lesson")?.dataset ?? {};
  const refusals = JSON.parse(refused ?? "[]");
  if (refusals.length) {
    const keys = refusals.map((each) => each.key);
    tell(refusals[0].detail, { bad: true });
    takeBack(sent.filter((each) => keys.includes(each.key)));
  } else if (message) tell(message);
}

/** Let items of refused changes be labeled again, and the first of the names stand where it was typed. */
function takeBack(changes) {
  comeBack(changes.flatMap((each) => each.ids ?? []));
  giveBack(changes.find((each) => each.label)?.label);
}

/** Let a name that was refused stand where it was typed. */
function giveBack(name) {
  const input = document.getElementById("label");
  if (name && input && !input.value) input.value = name;
}

function label(name, ids = selectedIds()) {
  if (!ids.length) { tell("Select an item first.", { bad: true }); return; }
  change("answer", { ids, label: name });
}

function accept() {
  const chosen = selected();
  const guesses = new Set(chosen.map((option) => option.dataset.predicted));
  if (guesses.size !== 1 || guesses.has("")) tell("There is no common guess to accept. Type a name.", { bad: true });
  else label([...guesses][0]);
}

const actions = {
  skip: () => change("skip", { ids: selectedIds() }),
  undo: () => change("undo", {}),
  several: () => {
    isSelectingSeveral = !isSelectingSeveral;
    showSeveral();
    if (!isSelectingSeveral) return;
    selectNone(); // what is tapped from now on, and nothing else
    tell("Tap all items that belong together, then label them.");
  },
  cancel: () => send(`${address}/cancel`, {}).then(() => look()).catch((error) => tell(error.message, { bad: true })),
};

board.addEventListener("click", (event) => {
  const option = event.target.closest('[role="option"]');
  if (option) choose(option, { extend: event.shiftKey, toggle: event.ctrlKey || event.metaKey || isSelectingSeveral });
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.fix) label(button.dataset.label, [button.dataset.fix]);
  else if (button.dataset.label) label(button.dataset.label);
  else if (button.dataset.order) { order = button.dataset.order; refresh(); }
  else if (button.dataset.do) actions[button.dataset.do]();
});

board.addEventListener("submit", (event) => {
  event.preventDefault();
  const input = event.target.elements.label;
  const name = input.value.trim();
  if (!name) { accept(); return; }
  input.value = "";
  label(name);
});

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

function keyFor(key) {
  return [...board.querySelectorAll("[data-key]")].find((button) => button.dataset.key === key);
}

document.addEventListener("keydown", (event) => {
  if (!board.querySelector(".lesson")) return;
  const isTyping = event.target.matches("input, textarea, select");
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !(isTyping && event.target.value)) {
    event.preventDefault();
    actions.undo();
    return;
  }
  if (isTyping) {
    if (event.key === "Escape") focusOn(selected()[0] ?? options()[0]);
    return;
  }
  if (event.altKey || ((event.ctrlKey || event.metaKey) && event.key !== "a")) return;
  const option = event.target.closest?.('[role="option"]');
  if (option && event.key.startsWith("Arrow")) {
    event.preventDefault();
    const to = neighborOf(option, event.key);
    if (to) choose(to, { extend: event.shiftKey });
    return;
  }
  if (event.target.closest?.("button, a") && ["Enter", " "].includes(event.key)) return;
  press(event, option);
});

function press(event, option) {
  const { key } = event;
  const names = [...board.querySelectorAll(".class")].map((button) => button.dataset.label);
  const areDigits = names.length > 0 && names.every((name) => /^\d$/.test(name));
  if (key === " " && option) choose(option, { toggle: true });
  else if (key === "Enter") accept();
  else if ((event.ctrlKey || event.metaKey) && key === "a") proposals().forEach((each) => mark(each, true));
  else if (key === "Backspace") actions.undo();
  else if (key === "Delete" || key === "-") actions.skip();
  else if (keyFor(key)) label(keyFor(key).dataset.label);
  else if (/^\d$/.test(key) && areDigits) label(key);
  else if (key.length === 1) startTyping(key);
  else return;
  event.preventDefault();
}

function startTyping(key) {
  const input = document.getElementById("label");
  if (!input) return;
  input.focus();
  input.value = key;
}

async function refresh() {
  const focus = preparing();
  const before = version();
  try {
    const answer = await request(`${address}?part=board&order=${order}`, { headers: { Accept: "application/json" } });
    const html = await answer.text();
    // An answer that was given meanwhile brings a newer board.
    if (!isSending && version() === before) show(html, { keep: preparing() ? [] : selectedIds(), focus, keepFocus: true });
  } catch (error) {
    tell(error.message, { bad: true });
  }
}

/** Look whether another tab or a program has changed something, and how far a preparation is. */
async function look() {
  if (isSending || isLooking || document.hidden) return;
  isLooking = true;
  try {
    const state = await (await request(`${address}/state`)).json();
    const codes = document.getElementById("codes");
    if (codes && state.codes) codes.textContent = { current: "codes up to date", running: "codes are learning", waiting: "codes are learning" }[state.codes] ?? `codes ${state.codes}`;
    // What a login has interrupted, or a service that did not answer; one that has begun again prepares its lesson first.
    if (outbox?.length && !isSending && state.version !== null) await next();
    else if (!isSending && (preparing() || String(state.version ?? "") !== (version() ?? ""))) await refresh();
  } catch { /* the next look may succeed */ }
  isLooking = false;
}

const preparing = () => board.querySelector("[data-preparing] progress") !== null;
setInterval(() => { if (preparing()) look(); }, 400);
setInterval(() => { if (!preparing()) look(); }, 1000 * SECONDS_BETWEEN_LOOKS);
document.addEventListener("visibilitychange", look);
addEventListener("beforeunload", (event) => { if (outbox?.length) event.preventDefault(); });
// The last attempt may outlive the page. If it fails, or is too long for that, the browser keeps the changes until the
// next visit; if it arrives after all, their keys tell the service that it has them.
addEventListener("pagehide", () => {
  if (outbox?.length) fetch(`${address}/changes`, { ...sending(outbox.first()), keepalive: true }).catch(() => {});
});
if (board.querySelector(".lesson")) show(board.innerHTML);
document.documentElement.dataset.ready = "teach";
