// Figures of the playground. Tokens are untrusted text and only ever become text nodes and attributes.

const SVG = "http://www.w3.org/2000/svg";
const FIELD = { width: 360, height: 264, left: 34, right: 354, top: 16, bottom: 196 };

function shape(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  set(node, attributes);
  node.append(...children);
  return node;
}

function word(x, y, text, attributes = {}) {
  const node = shape("text", { x, y, "text-anchor": "middle", ...attributes });
  node.textContent = text;
  return node;
}

function labelled(text, control) {
  const node = element("label", "swb-control", `${text} `);
  node.append(control);
  return node;
}

function heading(scope, text, look) {
  const node = element("th", look, text);
  node.setAttribute("scope", scope);
  return node;
}

const y = (value) => FIELD.bottom - value * (FIELD.bottom - FIELD.top);

function place(bar, floor, value) {
  set(bar, { y: y(floor + value).toFixed(2), height: Math.max(0, y(floor) - y(floor + value)).toFixed(2) });
}

function shorten(text, most) {
  return [...text].length <= most ? text : `${[...text].slice(0, most - 1).join("")}…`;
}

/** Hatching and dots, so that no bar is known by its colour alone. */
function patterns(name) {
  const attributes = { width: 6, height: 6, patternUnits: "userSpaceOnUse" };
  const ground = (kind) => shape("rect", { width: 6, height: 6, class: `swb-ground-${kind}` });
  return shape(
    "defs",
    {},
    shape(
      "pattern",
      { ...attributes, id: `${name}-overlap`, patternTransform: "rotate(45)" },
      ground("overlap"),
      shape("rect", { width: 2, height: 6, class: "swb-ink-overlap" }),
    ),
    shape(
      "pattern",
      { ...attributes, id: `${name}-residual` },
      ground("residual"),
      shape("circle", { cx: 3, cy: 3, r: 1.3, class: "swb-ink-residual" }),
    ),
    shape(
      "pattern",
      { ...attributes, id: `${name}-draft` },
      ground("draft"),
      shape("rect", { width: 6, height: 1.6, class: "swb-ink-draft" }),
    ),
  );
}

/** An empty field with its axis and the tokens below; slots: [{left, width, middle}], one a token. */
function field(name, caption, tokens) {
  const svg = shape("svg", { viewBox: `0 0 ${FIELD.width} ${FIELD.height}`, class: "swb-field" }, patterns(name));
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    const line = { x1: FIELD.left, x2: FIELD.right, y1: y(value), y2: y(value), class: "swb-grid" };
    svg.append(shape("line", line), word(FIELD.left - 4, y(value) + 3.5, String(value), { "text-anchor": "end" }));
  }
  const width = (FIELD.right - FIELD.left) / tokens.length;
  const slots = tokens.map((token, i) => {
    const left = FIELD.left + i * width;
    const middle = left + width / 2;
    const slanted = [...token].length > 4;
    const turn = slanted ? { "text-anchor": "end", transform: `rotate(-38 ${middle} ${FIELD.bottom + 14})` } : {};
    const label = word(middle, FIELD.bottom + 15, shorten(token, 10), { class: "swb-code", ...turn });
    label.append(shape("title"));
    label.lastChild.textContent = token;
    svg.append(label);
    return { left, width, middle };
  });
  const node = element("figure", "swb-figure");
  const title = element("figcaption", "", caption);
  node.append(title, svg);
  return { node, svg, caption: title, slots };
}

const bar = (slot, from, to, attributes) => {
  const [x, width] = [slot.left + from * slot.width, (to - from) * slot.width];
  return shape("rect", { x: x.toFixed(2), width: width.toFixed(2), ...attributes });
};

/** A bar that is a slider: `fill` is the bar, `grip` its upper edge, and the whole height can be taken hold of. */
function slider(row, slot, from, to, fillWith) {
  const lane = bar(slot, from, to, { y: FIELD.top, height: FIELD.bottom - FIELD.top, class: "swb-lane" });
  const fill = bar(slot, from, to, { class: `swb-bar swb-${row}`, ...fillWith });
  const grip = bar(slot, from, to, { height: 4, rx: 2, class: "swb-grip" });
  const attributes = { role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": 1 };
  return { node: shape("g", { ...attributes, class: "swb-slider" }, lane, fill, grip), fill, grip };
}

function givenField(name, tokens) {
  const area = field(name, "p and q: drag the bars, or focus one and press arrow keys", tokens);
  const sliders = { p: [], q: [] };
  const overlaps = area.slots.map((slot, i) => {
    sliders.p.push(slider("p", slot, 0.08, 0.49, {}));
    sliders.q.push(slider("q", slot, 0.51, 0.92, { fill: `url(#${name}-draft)` }));
    const overlap = bar(slot, 0.08, 0.92, { class: "swb-overlap", fill: `url(#${name}-overlap)` });
    area.svg.append(sliders.p[i].node, sliders.q[i].node, overlap);
    return overlap;
  });
  set(area.svg, { role: "group", "aria-label": "Probabilities of p and q" });
  return { ...area, sliders, overlaps };
}

function showGiven({ sliders, overlaps }, position, tokens) {
  for (const row of ["p", "q"]) {
    sliders[row].forEach(({ node, fill, grip }, i) => {
      const text = position[row][i].toFixed(3);
      place(fill, 0, position[row][i]);
      set(grip, { y: (y(position[row][i]) - 2).toFixed(2) });
      set(node, { "aria-label": `${row} of ${tokens[i]}`, "aria-valuenow": text, "aria-valuetext": text });
    });
  }
  overlaps.forEach((overlap, i) => place(overlap, 0, position.overlap[i]));
}

function residualField(name, tokens) {
  const area = field(name, "", tokens);
  const bars = area.slots.map((slot) => {
    const residual = bar(slot, 0.08, 0.49, { class: "swb-bar", fill: `url(#${name}-residual)` });
    const replacement = bar(slot, 0.51, 0.92, { class: "swb-bar swb-replacement" });
    area.svg.append(residual, replacement);
    return { residual, replacement };
  });
  return { ...area, bars };
}

function showReplaced({ svg, caption, bars }, position) {
  const refused = (1 - position.acceptance).toFixed(3);
  caption.textContent = `residual max(p − q, 0); framed, what is drawn when refused (probability ${refused})`;
  set(svg, { role: "img", "aria-label": `Residual of mass ${sum(position.residual).toFixed(3)}` });
  bars.forEach(({ residual, replacement }, i) => {
    place(residual, 0, position.residual[i]);
    place(replacement, 0, position.replacement[i]);
  });
}

function emittedField(name, tokens) {
  const area = field(name, "accepted + drawn when refused = what comes out; the frame is p", tokens);
  const bars = area.slots.map((slot) => {
    const accepted = bar(slot, 0.15, 0.85, { class: "swb-bar", fill: `url(#${name}-overlap)` });
    const replaced = bar(slot, 0.15, 0.85, { class: "swb-bar", fill: `url(#${name}-residual)` });
    const outline = bar(slot, 0.06, 0.94, { class: "swb-outline" });
    const mark = word(slot.middle, 0, "", { class: "swb-mark" });
    area.svg.append(accepted, replaced, outline, mark);
    return { accepted, replaced, outline, mark };
  });
  return { ...area, bars };
}

function showEmitted({ svg, bars }, position, words) {
  set(svg, { role: "img", "aria-label": words });
  bars.forEach(({ accepted, replaced, outline, mark }, i) => {
    const off = position.emitted[i] - position.p[i];
    place(accepted, 0, position.accepted[i]);
    place(replaced, position.accepted[i], position.replaced[i]);
    place(outline, 0, position.p[i]);
    mark.textContent = Math.abs(off) < 5e-4 ? "" : off > 0 ? "▲" : "▼";
    set(mark, { y: (y(Math.max(position.emitted[i], position.p[i])) - 4).toFixed(2) });
  });
}

/** The numbers of the figures: {node, cells: {key: [a cell a token]}}. */
function numbers(tokens) {
  const node = element("table", "swb-numbers");
  const head = element("tr");
  head.append(element("td"), ...tokens.map((token) => heading("col", shorten(token, 10), "swb-code")));
  node.append(element("caption", "swb-hidden", "The numbers of the figures, by token"), head);
  const cells = {};
  for (const [key, label] of ROWS) {
    const row = element("tr");
    cells[key] = tokens.map(() => element("td"));
    row.append(heading("row", label), ...cells[key]);
    node.append(row);
  }
  return { node, cells };
}

/** The probability at a height of the page; box: the figure's top and height there. */
export function valueAt(clientY, box) {
  const y = ((clientY - box.top) / box.height) * FIELD.height;
  return Math.min(1, Math.max(0, (FIELD.bottom - y) / (FIELD.bottom - FIELD.top)));
}
