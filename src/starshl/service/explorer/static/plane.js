// A plane of items on a canvas: dots from afar, pictures from near. It can be moved, zoomed and selected from by a lasso.

const MOST_PICTURES = 150;
const REACH = 16; // pixels from a dot that still mean it
const STILL = 5; // pixels that a hand may move while it clicks
const SMALL = 2.2; // a radius below which nobody tells a square from a circle
const ZOOMS = [0.5, 400];
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);

/** Whether a point lies inside a closed path: a ray from it crosses the path an odd number of times. */
function isInside([x, y], path) {
  let inside = false;
  path.forEach(([toX, toY], place) => {
    const [fromX, fromY] = path.at(place - 1);
    if (fromY > y !== toY > y && x < fromX + ((y - fromY) * (toX - fromX)) / (toY - fromY)) inside = !inside;
  });
  return inside;
}

/**
 * ``items`` holds x and y from 0 to 1, and says how each item looks: ``color(i)``, ``isGiven(i)``, ``isSelected(i)``,
 * ``isFaint(i)``, ``picture(i)`` (an address). Items are numbered from 0. ``actions`` are told what people do:
 * ``click(i)``, ``lasso(numbers)`` and ``hover(i, point)``, where i is -1 for no item; and ``escape()``.
 */
export class Plane {
  constructor(canvas, actions) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.actions = actions;
    this.items = null;
    this.isLasso = false; // what dragging does
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.pointers = new Map(); // where fingers are
    this.drag = null;
    this.pictures = new Map();
    this.isScheduled = false;
    this.listen();
  }

  show(items) {
    this.items = items;
    this.redraw();
  }

  redraw() {
    if (this.isScheduled || !this.items) return;
    this.isScheduled = true;
    requestAnimationFrame(() => { this.isScheduled = false; this.draw(); });
  }

  get side() { return Math.min(this.canvas.clientWidth, this.canvas.clientHeight) * 0.92 * this.view.zoom; }

  /** Call a function with the number and the place of each item that can be seen; it runs for each move of a pointer. */
  eachVisible(action) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const { items, side, view } = this;
    const [left, bottom] = [width / 2 - view.x * side, height / 2 + (1 - view.y) * side];
    for (let number = 0; number < items.x.length; number += 1) {
      const [x, y] = [left + items.x[number] * side, bottom - items.y[number] * side];
      if (x > -40 && y > -40 && x < width + 40 && y < height + 40) action(number, x, y);
    }
  }

  /** The numbers and places of the items that can be seen. */
  visible() {
    const found = [];
    this.eachVisible((number, x, y) => found.push([number, x, y]));
    return found;
  }

  draw() {
    const { canvas, context } = this;
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const shown = this.visible();
    // What is not meant lies below.
    const faint = shown.filter(([number]) => this.items.isFaint(number));
    const bright = faint.length ? shown.filter(([number]) => !this.items.isFaint(number)) : shown;
    const isNear = shown.length <= MOST_PICTURES && shown.length < this.items.x.length;
    canvas.dataset.shows = isNear ? "pictures" : "dots";
    for (const [part, opacity] of [[faint, 0.15], [bright, 1]]) {
      if (isNear) this.drawPictures(part, opacity, shown.length);
      else this.drawDots(part, opacity, shown.length);
    }
    context.globalAlpha = 1;
    if (this.drag?.path) this.drawLasso(this.drag.path);
  }

  drawDots(part, opacity, n) {
    const { context, items } = this;
    const [rim, chosen] = isDark() ? ["#0f1218", "#fff"] : ["#fff", "#0f1218"];
    const radius = Math.max(1.4, Math.min(5, 90 / Math.sqrt(n || 1)) * Math.min(1.6, Math.sqrt(this.view.zoom)));
    // Guesses are one shape per color: sixty thousand shapes would take a third of a second.
    const shapes = new Map();
    const rimmed = [];
    for (const each of part) {
      const [number, x, y] = each;
      if (items.isGiven(number) || items.isSelected(number)) { rimmed.push(each); continue; }
      const color = items.color(number);
      if (!shapes.has(color)) shapes.set(color, new Path2D());
      if (radius < SMALL) shapes.get(color).rect(x - radius, y - radius, 2 * radius, 2 * radius);
      else { shapes.get(color).moveTo(x, y); shapes.get(color).arc(x, y, radius, 0, 7); }
    }
    context.globalAlpha = 0.75 * opacity;
    for (const [color, shape] of shapes) { context.fillStyle = color; context.fill(shape); }
    context.globalAlpha = opacity;
    for (const [number, x, y] of rimmed) {
      const isSelected = items.isSelected(number);
      context.fillStyle = items.color(number);
      context.beginPath();
      context.arc(x, y, items.isGiven(number) ? radius + 1 : radius, 0, 7);
      context.fill();
      context.strokeStyle = isSelected ? chosen : rim;
      context.lineWidth = isSelected ? 2 : 1;
      context.stroke();
    }
  }

  drawPictures(part, opacity, n) {
    const { canvas, context, items } = this;
    const size = Math.max(36, Math.min(120, 0.5 * Math.sqrt((canvas.clientWidth * canvas.clientHeight) / (n || 1))));
    for (const [number, x, y] of part) {
      const picture = this.pictureOf(number);
      const [wide, high] = [picture.naturalWidth || 1, picture.naturalHeight || 1];
      const [width, height] = [size * Math.min(1, wide / high), size * Math.min(1, high / wide)];
      const frame = [x - width / 2 - 3, y - height / 2 - 3, width + 6, height + 6];
      context.globalAlpha = opacity;
      context.fillStyle = items.color(number);
      context.fillRect(...frame);
      if (picture.complete && picture.naturalWidth) context.drawImage(picture, x - width / 2, y - height / 2, width, height);
      if (!items.isSelected(number)) continue;
      context.strokeStyle = isDark() ? "#fff" : "#000";
      context.lineWidth = 3;
      context.strokeRect(...frame);
    }
  }

  pictureOf(number) {
    const address = this.items.picture(number);
    if (!this.pictures.has(address)) {
      const picture = new Image();
      picture.addEventListener("load", () => this.redraw());
      picture.src = address;
      this.pictures.set(address, picture);
    }
    return this.pictures.get(address);
  }

  drawLasso(path) {
    const { context } = this;
    context.beginPath();
    path.forEach(([x, y]) => context.lineTo(x, y));
    context.closePath();
    context.fillStyle = isDark() ? "rgb(165 166 255 / 18%)" : "rgb(67 56 202 / 12%)";
    context.fill();
    context.strokeStyle = isDark() ? "#a5a6ff" : "#4338ca";
    context.lineWidth = 2;
    context.setLineDash([6, 4]);
    context.stroke();
    context.setLineDash([]);
  }

  /** Zoom around a point; a factor of 0 shows everything again. */
  zoomBy(factor, at = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2]) {
    if (factor === 0) this.view = { x: 0.5, y: 0.5, zoom: 1 };
    else {
      const before = this.side;
      this.view.zoom = Math.max(ZOOMS[0], Math.min(ZOOMS[1], this.view.zoom * factor));
      const change = 1 / before - 1 / this.side;
      this.view.x += (at[0] - this.canvas.clientWidth / 2) * change;
      this.view.y += (at[1] - this.canvas.clientHeight / 2) * change;
    }
    this.redraw();
  }

  moveBy(right, down) {
    this.view.x -= right / this.side;
    this.view.y -= down / this.side;
    this.redraw();
  }

  /** The number of the item at a point, -1 for none: of pictures the uppermost, of dots the nearest. */
  at(point) {
    const reach = this.canvas.dataset.shows === "pictures" ? 40 : REACH;
    let [best, least] = [-1, reach];
    this.eachVisible((number, x, y) => {
      const away = Math.hypot(x - point[0], y - point[1]);
      if (away < least && !this.items.isFaint(number)) { best = number; least = away; }
    });
    return best;
  }

  pointOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoomBy(Math.exp(-event.deltaY / 400), this.pointOf(event)); }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => { this.pointers.delete(event.pointerId); this.drag = null; this.redraw(); });
    canvas.addEventListener("pointerleave", () => this.actions.hover(-1));
    canvas.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (step) this.moveBy(-0.08 * canvas.clientWidth * step[0], -0.08 * canvas.clientHeight * step[1]);
      else if (event.key === "+" || event.key === "=") this.zoomBy(1.3);
      else if (event.key === "-") this.zoomBy(1 / 1.3);
      else if (event.key === "Escape") this.actions.escape();
      else return;
      event.preventDefault();
    });
    new ResizeObserver(() => this.redraw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  press(event) {
    const point = this.pointOf(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, point);
    // A second finger zooms, and its hand has meant nothing else.
    this.drag = this.pointers.size > 1 ? null : { start: point, last: point, isMoved: false, path: this.isLasso || event.shiftKey ? [point] : null };
    this.actions.hover(-1);
  }

  move(event) {
    const point = this.pointOf(event);
    if (this.pointers.size === 2) { this.pinch(event, point); return; }
    const { drag } = this;
    if (!drag) {
      if (event.pointerType !== "touch" && this.items && !this.pointers.size) this.actions.hover(this.at(point), point);
      return;
    }
    drag.isMoved ||= distance(point, drag.start) > STILL;
    if (drag.path) { drag.path.push(point); this.redraw(); }
    else this.moveBy(point[0] - drag.last[0], point[1] - drag.last[1]);
    drag.last = point;
  }

  pinch(event, point) {
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    const before = this.pointers.get(event.pointerId);
    if (!other || !before) return;
    this.pointers.set(event.pointerId, point);
    const middle = [(other[0] + point[0]) / 2, (other[1] + point[1]) / 2];
    this.zoomBy(distance(point, other) / Math.max(1, distance(before, other)), middle);
  }

  release(event) {
    const { drag } = this;
    this.pointers.delete(event.pointerId);
    this.drag = null;
    if (!drag || !this.items) return;
    if (!drag.isMoved) this.actions.click(this.at(drag.start));
    else if (drag.path) this.actions.lasso(this.visible().filter(([number, x, y]) => isInside([x, y], drag.path) && !this.items.isFaint(number)).map(([number]) => number));
    this.redraw();
  }
}
