// The parts that the strip is made of, and how much room they take. Tokens are untrusted text and only ever become text
// nodes and attributes.

const DIGITS = 7;

function dress(node, attributes) {
  Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, String(value)));
  return node;
}

function element(tag, className, text, attributes = {}) {
  const node = document.createElement(tag);
  node.className = className;
  if (text !== undefined) node.textContent = text;
  return dress(node, attributes);
}

function marked(node, outcome, glyph, cut) {
  node.dataset.outcome = outcome;
  node.dataset.glyph = cut ? `${glyph}✂` : glyph;
  if (cut) node.classList.add("swb-cut");
  return node;
}

function tokenNode(token, glyphs) {
  return marked(element("span", "swb-token", token.text), token.outcome, glyphs[token.outcome], isCut(token));
}

/** A round without its tokens; on a further line it has no number. */
function roundNode(number) {
  const round = element("span", "swb-round");
  round.append(element("span", "swb-number", number, { "aria-hidden": true }));
  return round;
}

function legend(entries, tokens) {
  const node = element("div", "swb-legend");
  for (const { outcome, glyph, meaning } of entries) {
    const count = tokens.filter((token) => token.outcome === outcome).length;
    const item = element("span", "", "");
    item.title = meaning;
    item.append(marked(element("span", "swb-token", outcome), outcome, glyph, false), ` ${count}`);
    node.append(item);
  }
  const cut = tokens.filter(isCut).length;
  if (cut) node.append(element("span", "", `✂ kept by the rule but cut off by the end: ${cut}`));
  return node;
}

/** The width of a text in this style, measured once a text. */
function pen(style) {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const widths = new Map();
  return (text) => {
    if (!widths.has(text)) widths.set(text, canvas.measureText(text).width);
    return widths.get(text);
  };
}

/** What takes how much room in this list (see `wrap`), and the height of a `line`; sizes stand in its style alone. */
function measured(list, glyphs) {
  const kinds = Object.keys(glyphs).flatMap((outcome) => [true, false].map((emitted) => ({ outcome, emitted })));
  const frames = kinds.map((kind) => tokenNode({ ...kind, text: "" }, glyphs));
  const heads = Array.from({ length: DIGITS }, (_, digits) => roundNode("0".repeat(digits)));
  const probe = element("div", "swb-line");
  probe.style.visibility = "hidden";
  probe.append(...frames, ...heads);
  list.append(probe);
  const widthOf = (node) => node.getBoundingClientRect().width;
  const frame = Object.fromEntries(kinds.map((kind, i) => [`${kind.outcome} ${kind.emitted}`, widthOf(frames[i])]));
  const head = heads.map(widthOf);
  const text = pen(getComputedStyle(frames[0]));
  const gap = parseFloat(getComputedStyle(heads[0]).columnGap) || 0;
  const width = widthOf(list.firstChild);
  const widest = Math.max(0, width - head.at(-1) - gap);
  const room = {
    width,
    widest,
    gap,
    between: parseFloat(getComputedStyle(probe).columnGap) || 0,
    line: probe.getBoundingClientRect().height,
    more: head[0],
    head: (round) => head[Math.min(String(round).length, DIGITS - 1)],
    token: (token) => Math.min(frame[`${token.outcome} ${token.emitted}`] + text(token.text), widest),
  };
  probe.remove();
  return room;
}
