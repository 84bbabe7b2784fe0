// The explore page without reloads: neighbors by codes first, everything else right after.

import { make, notify, request } from "./shared.js";

const neighbors = document.getElementById("neighbors");
const details = document.getElementById("details");
const form = document.getElementById("search-form");
const upload = document.getElementById("upload-form");
const QUERIES = ["item", "text", "upload", "name"]; // parameters of an address that say what to search for
let current = new AbortController();
let polling;
let isAsked = false; // whether what somebody has asked for is on its way
let shown = location.pathname + location.search; // what the page is about

/** Go to an address without a reload; the way back leads to where the page was scrolled. */
function push(url) {
  history.replaceState({ ...history.state, scrolled: window.scrollY }, "");
  history.pushState(null, "", url);
  shown = location.pathname + location.search;
}

/**
 * Show what an address asks for, and return whether it was found; ``focus`` selects what gets the focus. To refresh what
 * is shown must not interrupt what somebody has asked for, which will be new anyway.
 */
async function show(address, { isNew = true, focus = "h2", isRefresh = false } = {}) {
  if (isRefresh && isAsked) return false;
  isAsked = !isRefresh;
  current.abort();
  clearTimeout(polling);
  current = new AbortController();
  const { signal } = current;
  const url = new URL(address, location.href);
  neighbors.classList.add("busy");
  try {
    const answer = await fetchPart(url, "neighbors", signal);
    const found = await answer.text();
    url.search = new URL(answer.url).search; // what was typed has become a search
    url.searchParams.delete("part");
    if (isNew) push(url); // while the page still has its height
    neighbors.innerHTML = found;
    isAsked = false;
    neighbors.classList.remove("busy");
    fillForm(url);
    if (focus) neighbors.querySelector(focus)?.focus({ preventScroll: true });
    if (neighbors.querySelector("#query") === null) details.replaceChildren();
    else await showDetails(url, signal);
    document.dispatchEvent(new CustomEvent("shown"));
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    isAsked = false;
    neighbors.classList.remove("busy");
    notify(error.message, { isError: true });
    return false;
  }
}

async function fetchPart(url, name, signal) {
  const address = new URL(url);
  address.hash = "";
  address.searchParams.set("part", name);
  return request(address, { signal, headers: { Accept: "application/json" } });
}

async function showDetails(url, signal) {
  details.classList.add("busy");
  try {
    details.innerHTML = await (await fetchPart(url, "details", signal)).text();
  } finally {
    if (!signal.aborted) details.classList.remove("busy");
  }
  const description = document.getElementById("description-part");
  if (description) {
    document.getElementById("description").replaceChildren(description.content);
    description.remove();
  }
  poll(url, signal);
}

/** Fetch the details again while other methods are being prepared. */
function poll(url, signal) {
  const waiting = details.querySelector("[data-poll]");
  if (!waiting) return;
  polling = setTimeout(() => showDetails(url, signal).catch(() => {}), Number(waiting.dataset.poll));
}

/** Show more about what was found: why a hit matches, or what other methods find. */
async function explain(address, id) {
  const url = new URL(address);
  push(url);
  try {
    await showDetails(url, current.signal);
    const heading = document.getElementById(id);
    heading?.focus({ preventScroll: true });
    heading?.scrollIntoView({ block: "center" });
  } catch (error) {
    if (error.name !== "AbortError") notify(error.message, { isError: true });
  }
}

/** Let the form stand for the search that is shown. */
function fillForm(url) {
  for (const name of [...QUERIES, "selection"]) form.elements[name].value = url.searchParams.get(name) ?? "";
  const slider = form.elements.min_probability;
  if (!slider) return;
  slider.value = url.searchParams.get("min_probability") ?? 0;
  showValue(slider);
}

/** Write the value of a slider beside it. */
function showValue(slider) {
  const output = form.querySelector(`output[for="${slider.id}"]`);
  if (output) output.textContent = slider.id === "min_probability" ? `${Math.round(100 * slider.value)}%` : slider.value;
}

/** Return the address that the form asks for; what was typed comes before what was clicked. */
function formAddress() {
  const fields = new FormData(form);
  if (String(fields.get("q") ?? "").trim()) for (const name of QUERIES) fields.delete(name);
  if (!fields.get("within")) fields.delete("radius");
  if (fields.get("min_probability") === "0") fields.delete("min_probability");
  return `${form.action}?${new URLSearchParams([...fields].filter(([, value]) => value !== ""))}`;
}

/** Return the address of a search like the one that is shown, for the item of another address. */
function similarTo(address) {
  const url = new URL(`${location.pathname}${location.search}`, location.href);
  for (const name of [...QUERIES, "hit", "after"]) url.searchParams.delete(name);
  url.searchParams.set("item", new URL(address).searchParams.get("item"));
  return url.href;
}

function followLink(event) {
  const link = event.target.closest("a[data-search], a[data-explain], a[data-methods]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  if (link.matches("[data-explain]")) { explain(link.href, "why"); return; }
  if (link.matches("[data-methods]")) { explain(link.href, "methods-title"); return; }
  const url = link.closest("#viewer") ? similarTo(link.href) : link.href;
  show(url).then(() => window.scrollTo({ top: 0 }));
}
document.addEventListener("click", followLink);

// In the viewer, which knows nothing of searches: why the item that it shows was found.
document.addEventListener("viewed", ({ detail: { item, body } }) => {
  const why = neighbors.querySelector(`[data-view$="/items/${CSS.escape(item)}"] ~ .corner [data-explain]`);
  if (why) body.querySelector(".actions")?.append(make("a", { class: "button secondary", "data-search": "", "data-explain": "", href: why.href }, "Why this one?"));
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = form.elements.q.value;
  // What was typed goes once it was found; meanwhile, something else may have been typed.
  show(formAddress()).then((isShown) => { if (isShown && form.elements.q.value === typed) form.elements.q.value = ""; });
});
form.addEventListener("input", (event) => {
  showValue(event.target);
  if (event.target.id === "radius") form.elements.within.checked = true;
});
form.addEventListener("change", (event) => {
  if (event.target.name && event.target.name !== "q") show(formAddress(), { focus: null });
});
// The viewer has addresses of its own, which differ after the # alone.
history.scrollRestoration = "manual";
window.addEventListener("popstate", async (event) => {
  if (location.pathname + location.search === shown) return;
  shown = location.pathname + location.search;
  await show(location.href, { isNew: false, focus: null });
  window.scrollTo({ top: event.state?.scrolled ?? 0 });
});

/** Search with a picture that was dropped or pasted. */
function searchByPicture(file) {
  if (!file || !file.type.startsWith("image/")) {
    notify("That is not a picture. Use a JPEG, PNG, WebP, GIF, BMP or TIFF file.", { isError: true });
    return;
  }
  const files = new DataTransfer();
  files.items.add(file);
  upload.elements.picture.files = files.files;
  upload.submit();
}
if (upload) {
  document.addEventListener("dragover", (event) => { event.preventDefault(); upload.classList.add("over"); });
  document.addEventListener("dragleave", () => upload.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    upload.classList.remove("over");
    searchByPicture(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => { if (event.clipboardData.files.length) searchByPicture(event.clipboardData.files[0]); });
  upload.elements.picture.addEventListener("change", () => upload.submit());
}

// A list of a class stays one under its new name.
document.addEventListener("renamed", ({ detail: { before, after } }) => {
  const url = new URL(location.href);
  const labels = url.searchParams.getAll("label");
  if (!labels.includes(before)) return;
  url.searchParams.delete("label");
  for (const label of new Set(labels.map((each) => (each === before ? after : each)))) if (label) url.searchParams.append("label", label);
  history.replaceState(history.state, "", url);
});
document.addEventListener("outdated", () => show(location.href, { isNew: false, focus: null, isRefresh: true }));

const filters = form.querySelector(".filters");
if (matchMedia("(max-width: 860px)").matches) filters.open = false;
poll(new URL(location.href), current.signal);
document.documentElement.dataset.ready = "explore";
