// How large pictures are: set before the page is drawn, and kept by the browser. No module, because modules come too late.

(() => {
  const NAME = "starshl-size";
  const root = document.documentElement;
  const apply = (pixels) => root.style.setProperty("--tile", `${pixels}px`);
  let kept = null;
  try { kept = Number(localStorage.getItem(NAME)) || null; } catch { /* a browser that keeps nothing */ }
  if (kept) apply(kept);
  const show = () => {
    const pixels = parseInt(getComputedStyle(root).getPropertyValue("--tile"), 10);
    for (const slider of document.querySelectorAll("[data-size]")) slider.value = pixels;
  };
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("shown", show);
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-size]")) return;
    apply(event.target.value);
    try { localStorage.setItem(NAME, event.target.value); } catch { /* it holds for this page only */ }
  });
})();
