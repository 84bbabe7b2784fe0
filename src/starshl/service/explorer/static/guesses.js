// Guesses on the explore page without reloads: accepted, rejected, undone, and followed while they are being computed.

import { ignoreSecondClicks, notify, request } from "./shared.js";

const neighbors = document.getElementById("neighbors");
const classes = document.getElementById("classes");
const MILLISECONDS_BETWEEN_POLLS = 1000;
// Nobody has seen, and meant, what has stood on the page for less.
const MILLISECONDS_TO_SEE = 300;
let shownSince = performance.now();
let shownList = listed();
let isBusy = false;

function listed() {
  return neighbors.querySelector("#review [name=seen]")?.value;
}

/** Fetch the list and the classes again; the page shows what is there now. */
function refresh() {
  document.dispatchEvent(new CustomEvent("outdated"));
  refreshClasses();
}

async function refreshClasses() {
  const address = new URL(location.href);
  address.searchParams.set("part", "classes");
  const typed = classes.querySelector("[data-class-search]")?.value ?? "";
  const html = await (await request(address, { headers: { Accept: "application/json" } })).text();
  if (classes.contains(document.activeElement)) return; // somebody is choosing
  classes.innerHTML = html;
  const box = classes.querySelector("[data-class-search]");
  if (box) { box.value = typed; showMatching(); }
}

function showMatching() {
  const wanted = (classes.querySelector("[data-class-search]")?.value ?? "").trim().toLowerCase();
  for (const pick of classes.querySelectorAll(".pick")) {
    const box = pick.querySelector("input");
    pick.hidden = !box.checked && !box.value.toLowerCase().includes(wanted);
  }
}

neighbors.addEventListener("submit", async (event) => {
  if (event.target.id !== "review") return;
  event.preventDefault();
  if (isBusy) return;
  if (event.submitter?.name !== "undo" && performance.now() - shownSince < MILLISECONDS_TO_SEE) {
    notify("This list has just changed. Look again, then repeat that.", { isError: true });
    return;
  }
  isBusy = true;
  try {
    const body = new URLSearchParams(new FormData(event.target, event.submitter));
    const answer = await request(event.target.action, { method: "POST", body, headers: { Accept: "application/json" } });
    notify((await answer.json()).message);
    refresh();
  } catch (error) {
    notify(error.message, { isError: true });
  } finally {
    isBusy = false;
  }
});
ignoreSecondClicks(neighbors, "#review button, .verdict button");

classes.addEventListener("input", (event) => {
  if (event.target.matches("[data-class-search]")) { event.stopPropagation(); showMatching(); }
});
// Enter in the box that finds classes is no search for items: it chooses the only class that is left.
classes.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches("[data-class-search]")) return;
  event.preventDefault();
  const left = [...classes.querySelectorAll(".pick:not([hidden]) input:not(:checked)")];
  if (left.length === 1) left[0].click();
  else notify(left.length ? `${left.length} classes fit. Type more, or click one.` : "No class fits.", { isError: !left.length });
});

document.addEventListener("shown", () => {
  if (listed() !== shownList) { shownList = listed(); shownSince = performance.now(); }
  refreshClasses().catch(() => {});
});
setInterval(() => { if (!document.hidden && !isBusy && neighbors.querySelector("[data-guessing]")) refresh(); }, MILLISECONDS_BETWEEN_POLLS);
