// The tokens of one sequence, grouped by rounds: a listbox whose options are tokens.
// Tokens are untrusted text and only ever become text nodes and attributes.

const EMPTY = "No tokens yet: decode a prompt or open a trace, and its tokens appear here.";

/** Runs of tokens of the same round: [{round, start, end}], `end` exclusive. */
export function groupRounds(tokens) {
  const groups = [];
  tokens.forEach((token, index) => {
    const last = groups[groups.length - 1];
    if (last && last.round === token.round) last.end = index + 1;
    else groups.push({ round: token.round, start: index, end: index + 1 });
  });
  return groups;
}

/** Where a key leads from the selected token: an index, or null for a key that means nothing here. */
export function moved(tokens, selected, key) {
  const last = tokens.length - 1;
  if (last < 0) return null;
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (key === "ArrowRight") return Math.min(selected + 1, last);
  if (key === "ArrowLeft") return Math.max(selected - 1, 0);
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  if (selected < 0) return 0;
  const groups = groupRounds(tokens);
  const at = groups.findIndex((group) => selected < group.end);
  const to = groups[at + (key === "ArrowDown" ? 1 : -1)];
  if (!to) return selected;
  return Math.min(to.start + selected - groups[at].start, to.end - 1);
}

/** A round in words, for its group's label. */
export function roundLabel(tokens, group) {
  const own = tokens.slice(group.start, group.end);
  const proposed = own.filter((t) => ["accepted", "rejected", "discarded"].includes(t.outcome)).length;
  const accepted = own.filter((t) => t.outcome === "accepted").length;
  return `Round ${group.round}: ${proposed} proposed, ${accepted} accepted`;
}

/** Whether the rule kept a token that the end of the sequence cut off. */
export function isCut(token) {
  return !token.emitted && token.outcome !== "rejected" && token.outcome !== "discarded";
}

function element(tag, className, text) {
  const node = document.createElement(tag);
  node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function dressed(node, outcome, glyph, cut) {
  node.dataset.outcome = outcome;
  node.dataset.glyph = cut ? `${glyph}✂` : glyph;
  node.classList.toggle("swb-cut", cut);
  return node;
}

function option(token, index, glyphs) {
  const node = dressed(element("span", "swb-token", token.text), token.outcome, glyphs[token.outcome], isCut(token));
  node.dataset.index = index;
  node.setAttribute("role", "option");
  node.setAttribute("aria-label", token.label);
  node.setAttribute("aria-selected", "false");
  node.title = token.label;
  node.tabIndex = -1;
  return node;
}

function legend(entries, tokens) {
  const node = element("div", "swb-legend");
  for (const { outcome, glyph, meaning } of entries) {
    const count = tokens.filter((token) => token.outcome === outcome).length;
    const item = element("span", "", "");
    item.title = meaning;
    item.append(dressed(element("span", "swb-token", outcome), outcome, glyph, false), ` ${count}`);
    node.append(item);
  }
  const cut = tokens.filter(isCut).length;
  if (cut) node.append(element("span", "", `✂ kept by the rule but cut off by the end: ${cut}`));
  return node;
}

function listbox(tokens, glyphs) {
  const list = element("div", "swb-tokens");
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-orientation", "horizontal");
  for (const group of groupRounds(tokens)) {
    const round = element("span", "swb-round");
    round.setAttribute("role", "group");
    round.setAttribute("aria-label", roundLabel(tokens, group));
    const number = element("span", "swb-number", String(group.round));
    number.setAttribute("aria-hidden", "true");
    round.append(number);
    for (let i = group.start; i < group.end; i += 1) round.append(option(tokens[i], i, glyphs));
    list.append(round);
  }
  return list;
}

/** Scroll the list itself, never the page, until the option is seen. */
function reveal(list, node) {
  const top = node.offsetTop - list.clientTop;
  if (top < list.scrollTop) list.scrollTop = top - 8;
  else if (top + node.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top + node.offsetHeight - list.clientHeight + 8;
  }
}

function render({ model, el }) {
  el.classList.add("swb", "swb-strip");
  let list = null;
  let options = [];
  let marked = null;

  function mark() {
    const index = model.get("selected");
    const node = options[index] ?? null;
    if (marked) {
      marked.setAttribute("aria-selected", "false");
      marked.tabIndex = -1;
    }
    marked = node ?? options[0] ?? null;
    if (!marked) return;
    marked.tabIndex = 0;
    marked.setAttribute("aria-selected", String(node !== null));
    if (list.contains(document.activeElement)) marked.focus({ preventScroll: true });
    if (node) reveal(list, node);
  }

  function pick(index) {
    model.set("selected", index);
    model.save_changes();
  }

  function build() {
    const tokens = model.get("tokens");
    const entries = model.get("legend");
    const glyphs = Object.fromEntries(entries.map(({ outcome, glyph }) => [outcome, glyph]));
    const title = model.get("title");
    el.replaceChildren();
    marked = null;
    if (title) el.append(element("div", "swb-title", title));
    if (!tokens.length) {
      options = [];
      el.append(element("p", "swb-empty", EMPTY));
      return;
    }
    list = listbox(tokens, glyphs);
    list.setAttribute("aria-label", title || "Tokens by round");
    options = [...list.querySelectorAll("[role=option]")];
    list.addEventListener("click", (event) => {
      const node = event.target.closest("[role=option]");
      if (!node) return;
      node.focus({ preventScroll: true });
      pick(Number(node.dataset.index));
    });
    list.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const to = moved(tokens, Number(document.activeElement?.dataset.index ?? -1), event.key);
      if (to === null) return;
      event.preventDefault();
      event.stopPropagation(); // a notebook moves between cells on arrow keys
      options[to].focus({ preventScroll: true });
      pick(to);
    });
    el.append(legend(entries, tokens), list);
    mark();
  }

  model.on("change:tokens", build);
  model.on("change:title", build);
  model.on("change:selected", mark);
  build();
  return () => {
    model.off("change:tokens", build);
    model.off("change:title", build);
    model.off("change:selected", mark);
  };
}

export default { render };
