// Figures that are being measured appear without a reload.

import { request } from "./shared.js";

const figures = document.getElementById("figures");

async function poll() {
  if (!figures.querySelector("[data-poll]")) return;
  try {
    figures.innerHTML = await (await request(`${figures.dataset.address}?part=quality`)).text();
  } catch { /* the next one may succeed */ }
  setTimeout(poll, 700);
}

setTimeout(poll, 700);
