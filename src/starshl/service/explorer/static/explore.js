// The explore page without reloads: neighbors by codes first, everything else right after.

import { notify, request } from "./shared.js";

const near = document.getElementById("near");
const rest = document.getElementById("rest");
const form = document.getElementById("ask");
const upload = document.getElementById("upload");
let current = new AbortController();
let polling;

/** Show what an address asks for, and return whether it was found; ``focus`` selects what gets the focus. */
async function show(address, { push = true, focus = "h2" } = {}) {
  current.abort();
  clearTimeout(polling);
  current = new AbortController();
  const { signal } = current;
  const asked = new URL(address, location.href);
  near.classList.add("busy");
  try {
    near.innerHTML = await part(asked, "near", signal);
    near.classList.remove("busy");
    if (push) history.pushState(null, "", asked);
    remember(asked);
    if (focus) near.querySelector(focus)?.focus({ preventScroll: true });
    const isAsked = near.querySelector("#asked") !== null;
    if (!isAsked) rest.replaceChildren();
    else await showRest(asked, signal);
    document.dispatchEvent(new CustomEvent("shown"));
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    near.classList.remove("busy");
    notify(error.message, { isError: true });
    return false;
  }
}

async function part(address, name, signal) {
  const asked = new URL(address);
  asked.hash = "";
  asked.searchParams.set("part", name);
  return (await request(asked, { signal, headers: { Accept: "application/json" } })).text();
}

async function showRest(asked, signal) {
  rest.classList.add("busy");
  try {
    rest.innerHTML = await part(asked, "rest", signal);
  } finally {
    if (!signal.aborted) rest.classList.remove("busy");
  }
  const portrait = document.getElementById("portrait-part");
  if (portrait) {
    document.getElementById("portrait").replaceChildren(portrait.content);
    portrait.remove();
  }
  poll(asked, signal);
}

/** Ask again while other methods are being prepared. */
function poll(asked, signal) {
  const waiting = rest.querySelector("[data-poll]");
  if (!waiting) return;
  polling = setTimeout(() => showRest(asked, signal).catch(() => {}), Number(waiting.dataset.poll));
}

/** Let the form stand for the search that is shown. */
function remember(address) {
  for (const name of ["item", "text", "upload"]) form.elements[name].value = address.searchParams.get(name) ?? "";
}

/** Return the address that the form asks for; what was typed comes before what was clicked. */
function asked() {
  const fields = new FormData(form);
  const typed = String(fields.get("q") ?? "").trim();
  if (typed) for (const name of ["item", "text", "upload"]) fields.delete(name);
  if (!fields.get("within")) fields.delete("radius");
  const kept = [...fields].filter(([, value]) => value !== "");
  if (typed) {
    const isId = /^#?-?\d+$/.test(typed);
    const pairs = kept.filter(([name]) => name !== "q");
    pairs.push([isId ? "item" : "text", isId ? typed.replace("#", "") : typed]);
    return `${form.action}?${new URLSearchParams(pairs)}`;
  }
  return `${form.action}?${new URLSearchParams(kept)}`;
}

near.addEventListener("click", follow);
rest.addEventListener("click", follow);
function follow(event) {
  const link = event.target.closest("a[data-ask], a[data-why]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  if (link.matches("[data-why]")) explain(link.href);
  else show(link.href).then(() => window.scrollTo({ top: 0 }));
}

async function explain(address) {
  const target = new URL(address);
  history.pushState(null, "", target);
  try {
    await showRest(target, current.signal);
    const heading = document.getElementById("why");
    heading?.focus({ preventScroll: true });
    heading?.scrollIntoView({ block: "center" });
  } catch (error) {
    if (error.name !== "AbortError") notify(error.message, { isError: true });
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = form.elements.q.value;
  // What was typed goes once it was found; meanwhile, something else may have been typed.
  show(asked()).then((isShown) => { if (isShown && form.elements.q.value === typed) form.elements.q.value = ""; });
});
form.addEventListener("input", (event) => {
  const shown = form.querySelector(`output[for="${event.target.id}"]`);
  if (shown) shown.textContent = event.target.value;
  if (event.target.id === "radius") form.elements.within.checked = true;
});
form.addEventListener("change", (event) => {
  if (event.target.name !== "q") show(asked(), { focus: null });
});
window.addEventListener("popstate", () => show(location.href, { push: false }));

/** Search with a picture that was dropped or pasted. */
function give(file) {
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
    give(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => { if (event.clipboardData.files.length) give(event.clipboardData.files[0]); });
  upload.elements.picture.addEventListener("change", () => upload.submit());
}

const filters = form.querySelector(".filters");
if (matchMedia("(max-width: 860px)").matches) filters.open = false;
poll(new URL(location.href), current.signal);
document.documentElement.dataset.ready = "explore";
