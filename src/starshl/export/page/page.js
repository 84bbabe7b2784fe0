// The page: reads what is embedded in it, encodes queries with the model, and shows the nearest items.

const manifest = JSON.parse(document.getElementById("manifest").textContent);
const knownWords = new Set(manifest.known_words ?? []); // of a model of texts
const view = (id) => document.getElementById(id);
const N_RESULTS = 24;
const N_SHOWN = 8; // items that the search field lists
const N_WARM_UP = 20; // queries before the first one: browsers compile what is used often

const decoder = new TextDecoder();

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64); // five times as fast, where browsers have it
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) bytes[place] = text.charCodeAt(place);
  return bytes;
}

/** Return an embedded part as bytes, and forget its text: megabytes that the browser would keep and look through. */
async function part(id) {
  const bytes = bytesOf(view(id).textContent);
  view(id).remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const jsonPart = async (id) => JSON.parse(decoder.decode(await part(id)));

function tell(text, isProblem = false) {
  view("status").textContent = text;
  view("status").classList.toggle("problem", isProblem);
}

async function warmUp(query) {
  for (let round = 0; round < N_WARM_UP; round++) {
    await query(round);
    await new Promise((resume) => setTimeout(resume)); // time to put compiled code in place
  }
}

const element = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

/** Write a share with the digits that it deserves: nothing but 1 is 100%. */
const percent = (share) => {
  const text = (100 * share).toFixed(share > 0.99 && share < 1 ? 1 : 0);
  return text === "100.0" ? ">99.9%" : `${text}%`;
};

// What is stored: codes, ids, labels, titles and previews by position.

const words = new Uint32Array((await part("codes")).buffer);
const nWords = Math.ceil(manifest.n_bits / 32);
const items = await jsonPart("items");
const previews = manifest.n_previews ? await part("previews") : null;
const codeOf = (position) => words.subarray(position * nWords, (position + 1) * nWords);
const classWords = await readClassWords();

/** Return what the words at the beginning of codes stand for, null if codes are compared bit by bit. */
async function readClassWords() {
  const { rule } = manifest;
  if (rule === null) return null;
  const entries = rule.codewords ? null : new Float32Array((await part("entries")).buffer);
  return new ClassWords(words, nWords, { ...rule, entries, labels: items.label_classes });
}
const lowered = items.titles?.map((title) => title.toLowerCase()); // 100,000 are too many to do so at every key
const titleOf = (position) => (items.titles ? items.titles[position] : `Item ${items.ids[position]}`);
const labelOf = (position) => (items.labels ? items.label_names[items.labels[position]] ?? null : null);

/** Return a preview as an address: one with all its bytes, because one of a blob waits for another process. */
function previewOf(position) {
  if (previews === null) return null;
  const [start, end] = [position ? items.preview_ends[position - 1] : 0, items.preview_ends[position]];
  if (start === end) return null;
  let text = "";
  for (let place = start; place < end; place += 4096)
    text += String.fromCharCode(...previews.subarray(place, Math.min(end, place + 4096)));
  return `data:${manifest.preview_types[items.preview_types[position]]};base64,${btoa(text)}`;
}

function pictureOf(position) {
  const address = previewOf(position);
  if (address === null) return null;
  const image = element("img");
  image.src = address;
  image.alt = titleOf(position);
  image.onload = () => image.classList.toggle("large", image.naturalWidth > 64);
  return image;
}

// Results.

function showResults(positions, distances, probabilities) {
  const list = view("results");
  const entries = document.createDocumentFragment();
  list.classList.toggle("texts", previews === null);
  positions.forEach((position, place) => {
    const button = element("button");
    button.type = "button";
    button.onclick = () => askItem(position);
    const image = pictureOf(position);
    if (image) button.append(image);
    if (items.titles || !image) button.append(element("span", "title", titleOf(position)));
    const under = element("span", "under");
    under.append(element("span", "label", labelOf(position) ?? ""));
    if (probabilities) under.append(element("span", "", percent(probabilities[place])));
    else if (distances && classWords) under.append(element("span", "", distances[place].toPrecision(3)));
    else if (distances) under.append(element("span", "", distances[place] === 1 ? "1 bit" : `${distances[place]} bits`));
    button.append(under);
    const entry = element("li");
    entry.dataset.id = items.ids[position];
    if (distances) entry.dataset.distance = distances[place];
    if (probabilities) entry.dataset.probability = probabilities[place];
    entry.append(button);
    entries.append(entry);
  });
  list.replaceChildren(entries);
}

let nQueries = 0;
let lastQuery = null;

/** Show what is nearest to a query: {code, posterior}. */
function search(query, encodeTime) {
  lastQuery = query;
  const start = performance.now();
  const hits = nearest(words, query, N_RESULTS, classWords, Number(view("least").value));
  const took = performance.now() - start;
  showResults(hits.positions, hits.distances, hits.probabilities);
  const encoded = encodeTime === undefined ? "" : `encoded in ${encodeTime.toFixed(1)} ms, `;
  const text = `${encoded}${manifest.n_items.toLocaleString("en")} codes searched in ${took.toFixed(1)} ms`;
  const none = hits.positions.length ? "" : ". Nothing is that likely: ask for less.";
  tell(text[0].toUpperCase() + text.slice(1) + none);
  // For those who measure; the last one to change is the one to watch.
  Object.assign(view("results").dataset, { encoding: encodeTime ?? 0, searching: took, query: ++nQueries });
}

function showQuery(heading, shown, text, shares) {
  const card = view("query");
  card.replaceChildren(element("h2", "", heading));
  const row = element("div", "shown");
  if (shown) row.append(shown);
  if (text) row.append(element("span", "", text));
  card.append(row);
  for (const [label, share] of shares ?? []) {
    const line = element("div", "share");
    const bar = element("span", "bar");
    bar.style.width = `${100 * share}%`;
    const hold = element("span");
    hold.append(bar);
    line.append(element("span", "", label), hold, element("span", "number", percent(share)));
    card.append(line);
  }
}

// Encoding.

let session = null;
let runtime = null;

async function openSession() {
  const code = await part("runtime");
  runtime = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  runtime.env.wasm.numThreads = 1; // more would need a server that isolates the page
  runtime.env.wasm.wasmBinary = (await part("wasm")).buffer;
  const opened = await runtime.InferenceSession.create(await part("model"), { executionProviders: ["wasm"] });
  await warmUp(() => encoded(opened, manifest.takes === "texts" ? [""] : new Float32Array(manifest.n_features)));
  session = opened;
}

/** Return what the model says of a row of numbers, or of the words of a text. */
function encoded(model, row) {
  const [name, type] = manifest.takes === "texts" ? ["words", "string"] : ["X", "float32"];
  return model.run({ [name]: new runtime.Tensor(type, row, [1, row.length]) });
}

let waiting = Promise.resolve();

/** Encode one row after the other and search; a newer query does not overtake an older one. */
function ask(row, heading, shown) {
  waiting = waiting.then(async () => {
    if (session === null) return tell("The model is still loading ...");
    const start = performance.now();
    const answer = await encoded(session, row);
    const took = performance.now() - start;
    const label = answer.label ? String(answer.label.data[0]) : null;
    showQuery(heading, shown, label === null ? "" : `Looks like ${label}`, likelyClasses(answer));
    search({ code: answer.codes ? wordsOf(answer.codes.data) : null, posterior: answer.probabilities?.data }, took);
  }).catch((error) => tell(`The query could not be encoded: ${error.message}`, true));
  return waiting;
}

function likelyClasses(answer) {
  if (!answer.probabilities) return [];
  const shares = Array.from(answer.probabilities.data, (share, place) => [manifest.classes[place], Number(share)]);
  return shares.sort((a, b) => b[1] - a[1]).slice(0, 3);
}

// Ways to ask.

function askItem(position) {
  const label = labelOf(position);
  showQuery(titleOf(position), pictureOf(position), label === null ? "" : `Label ${label}`);
  search(itemQuery(position));
  window.scrollTo({ top: 0, behavior: "smooth" });
}

/** Return an item as a query: what its word says of its class. */
function itemQuery(position) {
  return { code: codeOf(position), posterior: classWords?.posteriorOf(position) };
}

function setUpLikely() {
  view("likely").hidden = !manifest.rule?.shows_probabilities;
  view("cautions").textContent = (manifest.rule?.cautions ?? []).join(" ");
  view("least").oninput = () => {
    view("least-shown").textContent = `${Math.round(100 * view("least").value)}%`;
    if (lastQuery) search(lastQuery);
  };
}

function listFound() {
  const asked = view("find").value.trim().toLowerCase();
  const list = view("found");
  list.replaceChildren();
  if (!asked) return;
  for (let position = 0, shown = 0; position < manifest.n_items && shown < N_SHOWN; position++) {
    const hit = (lowered ? lowered[position] : `item ${items.ids[position]}`).includes(asked) || String(items.ids[position]) === asked ||
      (labelOf(position) ?? "").toLowerCase() === asked;
    if (!hit) continue;
    const button = element("button", "", labelOf(position) ? `${titleOf(position)} (${labelOf(position)})` : titleOf(position));
    button.type = "button";
    button.onclick = () => askItem(position);
    const entry = element("li");
    entry.append(button);
    list.append(entry);
    shown++;
  }
  if (!list.children.length) list.append(element("li", "hint", "Nothing found."));
}

function askVector() {
  const texts = view("vector").value.split(/[\s,;[\]]+/).filter((text) => text !== "");
  const row = Float32Array.from(texts, Number);
  const bad = texts.find((text) => !Number.isFinite(Number(text)));
  if (bad !== undefined) return tell(`“${bad.slice(0, 40)}” is not a number. Give ${manifest.n_features} numbers.`, true);
  if (row.length !== manifest.n_features)
    return tell(`These are ${row.length} numbers; this model takes ${manifest.n_features}.`, true);
  return ask(row, `A vector of ${row.length} numbers`, null);
}

function askText() {
  const words = view("text").value.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu); // as in Python, for every letter
  if (words === null) return;
  if (!words.some((word) => knownWords.has(word)))
    return tell("No word of this text is known to the model, so nothing can be found. Use other words.", true);
  ask(words, words.length === 1 ? "A text of one word" : `A text of ${words.length} words`, null);
}

/** Return part of a picture, which may reach beyond it, as the row that the model takes and a canvas that shows it. */
function rowOf(source, box, ground = "#fff") {
  const { height, width, channels, white } = manifest.picture;
  const canvas = element("canvas");
  canvas.width = width;
  canvas.height = height;
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  brush.imageSmoothingQuality = "high";
  brush.fillStyle = ground;
  brush.fillRect(0, 0, width, height);
  brush.drawImage(source, ...box, 0, 0, width, height);
  const pixels = brush.getImageData(0, 0, width, height).data;
  const row = new Float32Array(height * width * channels);
  for (let pixel = 0; pixel < height * width; pixel++) {
    const at = 4 * pixel; // red, green, blue and alpha
    if (channels === 1) row[pixel] = ((0.299 * pixels[at] + 0.587 * pixels[at + 1] + 0.114 * pixels[at + 2]) / 255) * white;
    else for (let color = 0; color < 3; color++) row[3 * pixel + color] = (pixels[at + color] / 255) * white;
  }
  return { row, canvas };
}

async function askPicture(file) {
  try {
    const bitmap = await createImageBitmap(file);
    let box = [0, 0, bitmap.width, bitmap.height];
    if (manifest.picture.crop === "center") {
      const side = Math.min(bitmap.width, bitmap.height);
      box = [(bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side];
    }
    const { row, canvas } = rowOf(bitmap, box);
    return ask(row, file.name || "A picture", canvas);
  } catch {
    return tell("This file is not a picture that the browser can read.", true);
  }
}

/** Return the square around the ink of a drawing: its center of mass is the center, as in pictures of digits. */
function inkBox(sheet, isDark) {
  const side = sheet.width;
  const pixels = sheet.getContext("2d").getImageData(0, 0, side, side).data;
  let [mass, x, y] = [0, 0, 0];
  let [left, top, right, bottom] = [side, side, 0, 0];
  for (let line = 0, place = 0; line < side; line++) {
    for (let column = 0; column < side; column++, place += 4) {
      const ink = isDark ? 255 - pixels[place] : pixels[place];
      if (ink < 32) continue;
      mass += ink;
      x += ink * column;
      y += ink * line;
      left = Math.min(left, column);
      right = Math.max(right, column);
      top = Math.min(top, line);
      bottom = line;
    }
  }
  if (!mass) return null;
  const margin = Math.min(manifest.picture.height, manifest.picture.width) >= 20 ? 1.4 : 1.1;
  const edge = margin * Math.max(right - left, bottom - top, side / 8);
  return [x / mass - edge / 2, y / mass - edge / 2, edge, edge];
}

function setUpDrawing() {
  const sheet = view("drawing");
  const brush = sheet.getContext("2d", { willReadFrequently: true });
  const isDark = () => view("invert").checked;
  const ground = () => (isDark() ? "#fff" : "#000");
  let before = null;
  let lastAsked = 0;

  function clear() {
    brush.fillStyle = ground();
    brush.fillRect(0, 0, sheet.width, sheet.height);
  }

  function askDrawing() {
    const box = inkBox(sheet, isDark());
    if (box === null) return;
    lastAsked = performance.now();
    const { row, canvas } = rowOf(sheet, box, ground());
    ask(row, "Your drawing", canvas);
  }

  function draw(event) {
    if (before === null) return;
    const bounds = sheet.getBoundingClientRect();
    const scale = sheet.width / bounds.width;
    const now = [(event.clientX - bounds.left) * scale, (event.clientY - bounds.top) * scale];
    brush.strokeStyle = isDark() ? "#000" : "#fff";
    brush.lineWidth = sheet.width / 12;
    brush.lineCap = brush.lineJoin = "round";
    brush.beginPath();
    brush.moveTo(...(before.length ? before : now));
    brush.lineTo(...now);
    brush.stroke();
    before = now;
    if (performance.now() - lastAsked > 120) askDrawing();
  }

  sheet.onpointerdown = (event) => {
    sheet.setPointerCapture(event.pointerId);
    before = [];
    draw(event);
  };
  sheet.onpointermove = draw;
  sheet.onpointerup = sheet.onpointercancel = () => {
    before = null;
    askDrawing();
  };
  view("clear").onclick = clear;
  view("invert").onchange = clear;
  clear();
}

function setUpPictures() {
  const drop = view("drop");
  view("file").onchange = (event) => event.target.files[0] && askPicture(event.target.files[0]);
  drop.ondragover = (event) => {
    event.preventDefault();
    drop.classList.add("over");
  };
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) askPicture(event.dataTransfer.files[0]);
  };
  document.onpaste = (event) => {
    const file = [...event.clipboardData.files].find((each) => each.type.startsWith("image/"));
    if (file) askPicture(file);
  };
}

function setUpModes() {
  const modes = { item: "Item" };
  if (manifest.encodes && manifest.picture) {
    if (manifest.picture.channels === 1) modes.draw = "Draw";
    modes.picture = "Picture";
  }
  if (manifest.takes === "texts") modes.text = "Text";
  if (manifest.takes === "vectors") modes.vector = "Vector";
  const choose = (chosen) => {
    for (const button of view("modes").children) button.setAttribute("aria-pressed", String(button.dataset.mode === chosen));
    for (const mode of ["item", "draw", "picture", "text", "vector"]) view(`ask-${mode}`).hidden = mode !== chosen;
  };
  for (const [mode, text] of Object.entries(modes)) {
    const button = element("button", "", text);
    button.type = "button";
    button.dataset.mode = mode;
    button.onclick = () => choose(mode);
    view("modes").append(button);
  }
  choose(["draw", "text", "item"].find((mode) => modes[mode]));
  view("modes").hidden = Object.keys(modes).length === 1;
}

function showSome() {
  const step = Math.max(1, Math.floor(manifest.n_items / N_RESULTS));
  const positions = Array.from({ length: Math.min(N_RESULTS, manifest.n_items) }, (_, place) => place * step);
  showResults(positions, null, null);
}

view("vector-label").textContent = `${manifest.n_features} numbers, separated by commas or spaces`;
view("find").oninput = listFound;
view("random").onclick = () => askItem(Math.floor(Math.random() * manifest.n_items));
view("encode").onclick = askVector;
view("text").oninput = askText;
setUpModes();
setUpDrawing();
setUpPictures();
setUpLikely();
showSome();
await warmUp((round) => nearest(words, itemQuery(round % manifest.n_items), N_RESULTS, classWords));
tell(manifest.encodes ? "Loading the model ..." : "Choose an item to see those nearest to it.");
if (manifest.encodes) {
  try {
    await openSession();
    tell("Ready: nothing that you draw, choose or paste leaves this page.");
  } catch (error) {
    tell(`The model could not be loaded: ${error.message} Items can still be searched for.`, true);
  }
}
document.documentElement.dataset.ready = "true";
