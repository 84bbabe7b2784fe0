// What a typed name means: a class that there is, the only one that begins so, or a new one. Used wherever items are labeled.

import { make, notify } from "./shared.js";

const MOST_CHOICES = 8;
const MILLISECONDS_TO_NOTICE = 300; // that a name was not taken
const folded = (name) => name.normalize("NFC").toLowerCase();
const isNumber = (name) => /^\d+$/.test(name);

/** Return how many letters must be added, removed, replaced or swapped with the next one to get from one word to another. */
function editDistance(one, other) {
  const table = [Array.from({ length: other.length + 1 }, (_, place) => place)];
  for (let i = 1; i <= one.length; i += 1) {
    table.push([i]);
    for (let j = 1; j <= other.length; j += 1) {
      const ways = [table[i][j - 1] + 1, table[i - 1][j] + 1, table[i - 1][j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1)];
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) ways.push(table[i - 2][j - 2] + 1);
      table[i].push(Math.min(...ways));
    }
  }
  return table[one.length][other.length];
}

/** Whether one name is probably the other one, mistyped. Names that differ in their numbers only are meant to differ. */
function resembles(one, other) {
  const allowed = one.length >= 8 ? 2 : one.length >= 4 ? 1 : 0;
  if (!allowed || Math.abs(one.length - other.length) > allowed) return false;
  return one.replace(/\d+/g, "#") !== other.replace(/\d+/g, "#") && editDistance(one, other) <= allowed;
}

/** Whether a name can be what somebody has begun to type; "1" begins no "10", for a number is typed whole. */
const continues = (name, begun) => name.startsWith(begun) && !/^\d\d/.test(begun.slice(-1) + name.charAt(begun.length));

/**
 * Return what a name means among those of the classes: ``label`` is what Enter gives, null if that needs a choice;
 * ``choices`` are classes to choose from; ``isNew`` says whether the name may also be a new class, and ``why`` says why
 * Enter does not make it one.
 */
export function readName(typed, names) {
  const wanted = folded(typed);
  const same = names.includes(typed) ? [typed] : names.filter((name) => folded(name) === wanted);
  if (same.length) return { label: same.length === 1 ? same[0] : null, choices: same, isNew: false, why: "differ in capitals only" };
  const begun = names.filter((name) => continues(folded(name), wanted));
  if (begun.length) return { label: begun.length === 1 ? begun[0] : null, choices: begun, isNew: true, why: `begin with “${typed}”` };
  const similar = names.filter((name) => resembles(wanted, folded(name)));
  if (similar.length) return { label: null, choices: similar, isNew: true, why: `${similar.length === 1 ? "resembles" : "resemble"} “${typed}”` };
  // Somebody who took a digit for the key of a class, which it may have been until one got a name with digits.
  if (isNumber(typed) && !names.every(isNumber)) return { label: null, choices: [], isNew: true, why: "" };
  return { label: typed, choices: [], isNew: true, why: "" };
}

const boxOf = (container) => container.querySelector("#label");

/** Show below the box what its text means, and what can be chosen instead. */
export function showMeaning(container, names) {
  const shown = container.querySelector("#meaning");
  const typed = boxOf(container)?.value.trim();
  if (!shown) return;
  shown.replaceChildren();
  if (!typed) return;
  const { label, choices, isNew } = readName(typed, names);
  const choice = (name, words) => make("button", { type: "button", class: "secondary", "data-name": name }, words);
  if (label !== null) shown.append(make("span", {}, make("kbd", {}, "Enter"), choices.length ? ` ${label}` : ` new class “${label}”`));
  else shown.append(...choices.slice(0, MOST_CHOICES).map((name) => choice(name, name)));
  if (label === null && choices.length > MOST_CHOICES) shown.append(`and ${choices.length - MOST_CHOICES} more`);
  if (isNew && label !== typed) shown.append(choice(typed, `New class “${typed}”`));
}

/** Empty the box. */
export function clearName(container) {
  const box = boxOf(container);
  if (box) box.value = "";
  container.querySelector("#meaning")?.replaceChildren();
}

/** Say why Enter labels nothing. */
function askToChoose(typed, { choices, why }) {
  const few = choices.slice(0, 3).map((name) => `“${name}”`).join(", ");
  const known = choices.length > 3 ? `${choices.length} classes` : few;
  notify(`${choices.length ? `${known} ${why}.` : `No class is called “${typed}”.`} Choose below the box, with the arrow keys or a click.`, { isError: true });
}

/**
 * Listen to the form in a container, which may be replaced at any time. ``names`` returns those of all classes,
 * ``choose`` labels with one of them, and ``withoutName`` is what Enter does while nothing is typed.
 */
export function listenForNames(container, { names, choose, withoutName }) {
  const asked = { typed: "", since: -Infinity }; // for which Enter asked to choose
  container.addEventListener("input", (event) => {
    if (event.target !== boxOf(container)) return;
    asked.typed = "";
    showMeaning(container, names());
  });
  container.addEventListener("submit", (event) => {
    if (!event.target.contains(boxOf(container))) return;
    event.preventDefault();
    const typed = boxOf(container).value.trim();
    if (!typed) { withoutName(); return; }
    const meaning = readName(typed, names());
    if (meaning.label !== null) { choose(meaning.label); return; }
    showMeaning(container, names());
    askToChoose(typed, meaning);
    Object.assign(asked, { typed, since: performance.now() });
  });
  // Somebody who did not see that Enter has labeled nothing types the next name: it must not become part of this one.
  container.addEventListener("keydown", (event) => {
    const typed = boxOf(container)?.value.trim();
    if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("button")) return;
    if (!typed || typed !== asked.typed) return;
    const goesOn = names().some((name) => continues(folded(name), folded(typed + event.key)));
    if (goesOn && performance.now() - asked.since > MILLISECONDS_TO_NOTICE) return;
    event.preventDefault();
    askToChoose(typed, readName(typed, names()));
  });
  container.addEventListener("click", (event) => {
    const name = event.target.closest("[data-name]")?.dataset.name;
    if (name !== undefined) choose(name);
  });
  container.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const choices = [...container.querySelectorAll("[data-name]")];
    const place = choices.indexOf(event.target);
    if (!step || !choices.length || (place < 0 && !(event.target === boxOf(container) && event.key === "ArrowDown"))) return;
    event.preventDefault();
    (choices[place + step] ?? (step < 0 ? boxOf(container) : choices.at(-1))).focus();
  });
}
