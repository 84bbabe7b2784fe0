"use strict";
const tip = document.getElementById("tip");

function nearestMark(chart, event) {
  let best = null, bestDistance = 30;
  for (const mark of chart.querySelectorAll(".series:not(.off) .mark")) {
    const box = mark.getBoundingClientRect();
    const distance = Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
    if (distance < bestDistance) [best, bestDistance] = [mark, distance];
  }
  return best;
}

for (const chart of document.querySelectorAll(".chart")) {
  const show = (event) => {
    const mark = nearestMark(chart, event);
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.max(4, event.clientY - 36) + "px";
  };
  chart.addEventListener("pointermove", show);
  chart.addEventListener("pointerdown", show);
  chart.addEventListener("pointerleave", () => { tip.hidden = true; });
}

for (const button of document.querySelectorAll("[data-toggle]")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!shown));
    for (const line of button.closest("section").querySelectorAll(".chart .series")) {
      if (line.dataset.name === button.dataset.toggle) line.classList.toggle("off", shown);
    }
  });
}
