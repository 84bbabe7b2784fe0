// What all pages share: messages for everybody, and requests that say what went wrong.

const status = () => document.getElementById("status");
let clearing;

/** Show a message for a few seconds; screen readers read it out. */
export function tell(message, { bad = false } = {}) {
  const place = status();
  place.textContent = message;
  place.classList.toggle("bad", bad);
  clearTimeout(clearing);
  clearing = setTimeout(() => { place.textContent = ""; }, bad ? 9000 : 4000);
}

/** What a request ends with if the token of this browser is missing, unknown or expired. */
export class LoginNeeded extends Error {}

const isLogin = (answer) => answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === "/login");

/** Say that a login is needed, in another tab, so that nothing on this page is lost. */
function askForLogin() {
  if (document.getElementById("login-needed")) return;
  const link = make("a", { href: `/login?next=${encodeURIComponent(location.pathname + location.search)}`, target: "_blank", class: "button" }, "Log in");
  const words = make("p", {}, "Your token is no longer valid here. Log in again in another tab, then come back: what you typed and selected stays on this page.");
  document.getElementById("main").prepend(make("div", { id: "login-needed", class: "panel login-needed", role: "alert" }, words, link));
}

/** Send a request; an answer that is no success becomes an error with the words of the service. */
export async function request(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. Check that it is running, and try again.");
  }
  if (isLogin(answer)) {
    askForLogin();
    throw new LoginNeeded("Log in first: your token is no longer valid.");
  }
  document.getElementById("login-needed")?.remove();
  if (!answer.ok) {
    let detail = `The service answered ${answer.status}.`;
    try { detail = (await answer.json()).detail ?? detail; } catch { /* no problem details: the status has to do */ }
    throw Object.assign(new Error(detail), { status: answer.status });
  }
  return answer;
}

/** Send JSON, and return the JSON of the answer. */
export async function send(address, body) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await request(address, options)).json();
}

/** Return an element with attributes and children; text is never read as HTML. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
