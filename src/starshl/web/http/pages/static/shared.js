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

/** Send a request; an answer that is no success becomes an error with the words of the service. */
export async function request(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. Check that it runs, and try again.");
  }
  if (!answer.ok) {
    let detail = `The service answered ${answer.status}.`;
    try { detail = (await answer.json()).detail ?? detail; } catch { /* no problem details: the status has to do */ }
    throw new Error(detail);
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
