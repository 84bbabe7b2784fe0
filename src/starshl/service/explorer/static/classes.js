// Classes renamed, merged and removed in a dialog, wherever a page offers that, and undone from the message that follows.

import { notify, request } from "./shared.js";

const dialog = document.getElementById("class-dialog");

/** Post a form of a class, tell the page what it has changed, and offer to undo it. */
async function post(address, body) {
  try {
    const made = await (await request(address, { method: "POST", body, headers: { Accept: "application/json" } })).json();
    dialog.close();
    document.dispatchEvent(new CustomEvent("renamed", { detail: { before: made.before, after: made.after } }));
    document.dispatchEvent(new CustomEvent("outdated"));
    const undo = made.number === null ? null : () => post(address, new URLSearchParams({ action: "undo", number: made.number }));
    notify(made.message, { undo });
  } catch (error) {
    notify(error.message, { isError: true });
  }
}

/** Say on the button what will become of the class: another name, or a part of a class that has the name already. */
function sayWhat(form) {
  const typed = form.elements.into.value.trim();
  const known = [...form.querySelectorAll("datalist option")].find((each) => each.value.toLowerCase() === typed.toLowerCase());
  const [rename, merge] = ["rename", "merge"].map((action) => form.querySelector(`[value="${action}"]`));
  rename.hidden = known !== undefined;
  merge.hidden = known === undefined;
  rename.disabled = typed === "" || typed === form.dataset.class;
  if (known) { merge.textContent = `Merge into ${known.value}`; merge.className = ""; }
}

async function open(address) {
  const url = new URL(address);
  url.searchParams.set("part", "change");
  try {
    dialog.innerHTML = await (await request(url, { headers: { Accept: "text/html" } })).text();
  } catch (error) {
    notify(error.message, { isError: true });
    return;
  }
  dialog.showModal();
  const form = dialog.querySelector(".change-class");
  if (!form) return;
  sayWhat(form);
  form.elements.into.focus();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-edit-class]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  // A page on which labels wait to be stored under the name says so, and does not let it change.
  if (document.dispatchEvent(new CustomEvent("renaming", { cancelable: true }))) open(link.href);
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.addEventListener("close", () => dialog.replaceChildren());
dialog.addEventListener("input", (event) => sayWhat(event.target.form));
dialog.addEventListener("submit", (event) => {
  event.preventDefault();
  // Its buttons are called action, and so hide the property. Enter in the box means the button that says what it does.
  const form = event.target;
  const pressed = event.submitter?.hidden ? form.querySelector("button:not([hidden])") : event.submitter;
  if (!pressed.disabled) post(form.getAttribute("action"), new URLSearchParams(new FormData(form, pressed)));
});
// Keys that the page below has a meaning for must not reach it.
dialog.addEventListener("keydown", (event) => event.stopPropagation());
