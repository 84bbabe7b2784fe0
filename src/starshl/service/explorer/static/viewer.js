// The viewer: one item as large as the screen. Whatever has data-view opens in it; the arrow keys go through its list.

import { make, notify, request } from "./shared.js";

const dialog = document.getElementById("viewer");
const HASH = "#view=";
const SWIPE = 50; // pixels
const fetched = new Map(); // promises of texts, by address
let list = []; // addresses of what can be seen next
let place = -1;
let opener = null;
let touched = null;

const itemOf = (address) => address.slice(address.lastIndexOf("/") + 1);
const here = () => location.pathname + location.search;

/** Fetch the part of a page about an item once; what is shown later must not be old, so it is kept while the viewer is open. */
function partOf(address) {
  if (!fetched.has(address)) {
    fetched.set(address, request(address).then((response) => response.text()));
    fetched.get(address).catch(() => fetched.delete(address));
  }
  return fetched.get(address);
}

/** Make ready what an arrow key shows next, with its picture. */
async function prepare(address) {
  if (!address) return;
  try {
    const source = /<img src="([^"]+)"/.exec(await partOf(address))?.[1];
    if (source) new Image().src = source;
  } catch { /* it says so when it is asked for */ }
}

function button(action, words, name) {
  return make("button", { type: "button", class: `quiet viewer-${action}`, "data-go": action, "aria-label": name, title: name }, words);
}

async function show() {
  const address = list[place];
  history.replaceState(history.state, "", `${here()}${HASH}${itemOf(address)}`);
  let text;
  try { text = await partOf(address); } catch (error) { notify(error.message, { isError: true }); return; }
  if (address !== list[place] || !dialog.open) return;
  const body = make("div", { class: "viewer-body" });
  body.innerHTML = text;
  const position = list.length > 1 ? [make("span", { class: "viewer-position" }, `${place + 1} of ${list.length}`)] : [];
  const before = place > 0 ? [button("previous", "‹", "Previous")] : [];
  const after = place < list.length - 1 ? [button("next", "›", "Next")] : [];
  const close = button("close", "×", "Close");
  dialog.replaceChildren(body, ...before, ...after, ...position, close);
  dialog.setAttribute("aria-label", body.querySelector("h2").textContent);
  body.querySelector("h2").focus({ preventScroll: true });
  document.dispatchEvent(new CustomEvent("viewed", { detail: { item: itemOf(address), body } }));
  prepare(list[place + 1]);
  prepare(list[place - 1]);
}

/** Open an item; ``addresses`` are those that the arrow keys go through. */
export function openViewer(address, addresses = [address]) {
  list = addresses;
  place = Math.max(0, list.indexOf(address));
  fetched.clear();
  if (!dialog.open) {
    opener = document.activeElement;
    if (!location.hash.startsWith(HASH)) history.pushState({ viewer: true }, "", `${here()}${HASH}${itemOf(address)}`);
    dialog.replaceChildren();
    dialog.showModal();
  }
  show();
}

/** Show the item again, after something about it has changed. */
export function refreshViewer() {
  if (!dialog.open) return;
  fetched.clear();
  show();
}

function hide() {
  if (!dialog.open) return;
  dialog.close();
  const seen = document.querySelector(`[data-view="${list[place]}"]`);
  (seen ?? opener)?.focus?.();
}

/** Close the viewer as the back button does, so that a way back does not open it again. */
function close() {
  if (history.state?.viewer) history.back();
  else { history.replaceState(null, "", here()); hide(); }
}

function go(step) {
  if (!list[place + step]) return;
  place += step;
  show();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-view]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.defaultPrevented) return;
  event.preventDefault();
  const around = link.closest("ul, ol, .views") ?? link;
  const addresses = [...around.querySelectorAll("[data-view]")].map((each) => each.dataset.view);
  openViewer(link.dataset.view, addresses.length ? [...new Set(addresses)] : [link.dataset.view]);
});
dialog.addEventListener("click", (event) => {
  const action = event.target.closest("[data-go]")?.dataset.go;
  if (action === "close" || event.target === dialog) close();
  else if (action) go(action === "next" ? 1 : -1);
  else if (event.target.closest("a[data-search]")) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    history.replaceState(null, "", here());
    hide();
  } else event.target.closest("img")?.classList.toggle("actual");
});
dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(); });
// Keys that the page below has a meaning for must not reach it.
dialog.addEventListener("keydown", (event) => {
  event.stopPropagation();
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, textarea, select")) return;
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  go(step);
});
dialog.addEventListener("touchstart", (event) => { touched = event.touches.length === 1 ? event.touches[0].clientX : null; }, { passive: true });
dialog.addEventListener("touchend", (event) => {
  if (touched === null || dialog.querySelector("img.actual")) return;
  const moved = event.changedTouches[0].clientX - touched;
  if (Math.abs(moved) > SWIPE) go(moved < 0 ? 1 : -1);
});
window.addEventListener("popstate", () => { if (!location.hash.startsWith(HASH)) hide(); });

// An address with an item in the viewer, after a reload or from somebody else.
if (location.hash.startsWith(HASH)) {
  const item = location.hash.slice(HASH.length);
  const shown = document.querySelector(`[data-view$="/items/${CSS.escape(item)}"]`);
  const page = /^\/explore\/[^/]+/.exec(location.pathname)?.[0];
  if (shown) shown.click();
  else if (page && /^-?\d+$/.test(item)) openViewer(`${page}/items/${item}`);
}
