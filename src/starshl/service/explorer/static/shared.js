// What all pages share: messages for people, and requests that say what went wrong.

const MILLISECONDS_OF_A_DOUBLE_CLICK = 400;
let clearing;

/** Show a message for a few seconds, with a button if it can be undone; screen readers read it out. */
export function notify(message, { isError = false, undo = null } = {}) {
  const status = document.getElementById("status");
  status.textContent = message;
  status.classList.toggle("bad", isError);
  if (undo) {
    const button = make("button", { type: "button" }, "Undo");
    button.addEventListener("click", () => { status.textContent = ""; undo(); });
    status.append(button);
  }
  clearTimeout(clearing);
  clearing = setTimeout(() => { status.textContent = ""; }, isError || undo ? 9000 : 4000);
}

/** What a request ends with if the token of this browser is missing, unknown or expired. */
export class LoginNeeded extends Error {}

const isLogin = (response) => response.status === 401 || (response.redirected && new URL(response.url).pathname === "/login");

/** Say that a login is needed, in another tab, so that nothing on this page is lost. */
function askForLogin() {
  if (document.getElementById("login-needed")) return;
  const link = make("a", { href: `/login?next=${encodeURIComponent(location.pathname + location.search)}`, target: "_blank", class: "button" }, "Log in");
  const words = make("p", {}, "Your token is no longer valid here. Log in again in another tab, then come back: what you typed and selected stays on this page.");
  document.getElementById("main").prepend(make("div", { id: "login-needed", class: "panel login-needed", role: "alert" }, words, link));
}

/** Send a request; a response that is no success becomes an error with the words of the service. */
export async function request(address, options = {}) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. Check that it is running, and try again.");
  }
  if (isLogin(response)) {
    askForLogin();
    throw new LoginNeeded("Log in first: your token is no longer valid.");
  }
  document.getElementById("login-needed")?.remove();
  if (!response.ok) {
    let detail = `The service answered ${response.status}.`;
    try { detail = (await response.json()).detail ?? detail; } catch { /* no problem details: the status has to do */ }
    throw Object.assign(new Error(detail), { status: response.status });
  }
  return response;
}

/** The options of a request that sends JSON. */
export const jsonOptions = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** Send JSON, and return the JSON of the response. */
export async function send(address, body) {
  return (await request(address, jsonOptions(body))).json();
}

/** A key by which the service recognizes a change that comes again; crypto.randomUUID is not there on pages without HTTPS. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Return an element with attributes and children; text is never read as HTML. */
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Ignore what is a second click of a double click, or of a shaky hand; it would be about the next item. */
export function ignoreSecondClicks(container, selector) {
  let last = -Infinity;
  container.addEventListener("click", (event) => {
    if (!event.detail || !event.target.closest(selector)) return; // a key has no detail
    if (event.timeStamp - last < MILLISECONDS_OF_A_DOUBLE_CLICK) { event.preventDefault(); event.stopImmediatePropagation(); }
    last = event.timeStamp;
  }, true);
}
