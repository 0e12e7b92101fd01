// The round player's figures: the lanes on the clock, the positions of a round, the cache. Tokens are untrusted text
// and only ever become text nodes and attributes.

const PHASE_WORDS = { propose: "propose", verify: "verify", accept: "decide", rollback: "roll back", other: "other" };
const LETTER = 7; // px of a letter in a block
const SEEN = 0.005; // ms, below which a time is not told

function percent(value, { from, to }) {
  return (100 * (Math.min(Math.max(value, from), to) - from)) / (to - from);
}

function across(start, end, range) {
  const left = percent(start, range);
  return `left: ${left.toFixed(3)}%; width: ${(percent(end, range) - left).toFixed(3)}%`;
}

/** A lane's blocks within a window; width: px of the track, to know which words fit. */
function laneBlocks(lane, blocks, range, width) {
  const fits = (ms, text) => (ms / (range.to - range.from)) * width > LETTER * text.length + 6;
  const nodes = [];
  if (lane.prefill > range.from) {
    const name = fits(lane.prefill - range.from, "prefill") ? "prefill" : "";
    nodes.push(set(element("div", "swbp-prefill", name), { style: across(0, lane.prefill, range), title: "prefill" }));
  }
  for (const block of blocksIn(blocks, range)) {
    const { first, last, start, end, phases, texts } = block;
    const node = set(element("div", "swbp-block"), { "data-first": first, "data-last": last });
    set(node, { style: across(start, end, range), title: blockLabel(lane, block) });
    const inside = { from: Math.max(start, range.from), to: Math.min(end, range.to) };
    let at = start;
    phases.forEach((ms, k) => {
      const word = fits(ms, PHASE_WORDS[PHASES[k]]) ? PHASE_WORDS[PHASES[k]] : "";
      const part = set(element("div", "swbp-phase", word), { "data-phase": PHASES[k] });
      if (ms > 0) node.append(set(part, { style: across(at, at + ms, inside) }));
      at += ms;
    });
    const text = texts.join("");
    const alone = first === last;
    if (alone && text && fits(end - start, "xxxx")) node.append(element("div", "swbp-text", text));
    if (alone && lane.measured && fits(end - start, "999")) node.append(element("div", "swbp-number", String(first)));
    nodes.push(node);
  }
  return nodes;
}

function blockLabel(lane, { first, last, phases, texts }) {
  const what = first === last ? `round ${first}` : `rounds ${first} to ${last}`;
  const times = phases.map((ms, k) => (ms > 0 ? `${PHASE_WORDS[PHASES[k]]} ${inMs(ms)}` : "")).filter(Boolean);
  return `${lane.name}, ${what}: ${times.join(", ")}; ${texts.length} out`;
}

/** Both lanes on one clock. `draw` for another window, `mark` for another moment. */
function lanesFigure(played, onRound) {
  const root = element("div", "swbp-lanes");
  const lanes = ["this", "plain"].filter((key) => played.lanes[key]).map((key) => laneOf(played.lanes[key]));
  const stack = element("div", "swbp-stack");
  for (const lane of lanes) stack.append(lane.head, lane.track);
  const axis = set(element("div", "swbp-axis"), { "aria-hidden": "true" });
  const head = set(element("div", "swbp-playhead"), { "aria-hidden": "true" });
  const veil = set(element("div", "swbp-veil"), { "aria-hidden": "true" });
  stack.append(veil, head);
  root.append(stack, axis, element("p", "swbp-note", played.plain_note));
  lanes[0].track.addEventListener("click", (event) => {
    const block = event.target.closest?.(".swbp-block");
    if (block) onRound(Number(block.getAttribute("data-first")));
  });
  let range = { from: 0, to: 1 };
  return {
    node: root,
    ends: lanes.map((lane) => lane.blocks.at(-1)?.end ?? 0),
    draw(next) {
      range = next;
      const width = stack.clientWidth || 800;
      for (const lane of lanes) lane.track.replaceChildren(...laneBlocks(lane.lane, lane.blocks, range, width));
      axis.replaceChildren(
        ...ticks(range).map((ms) => set(element("span", "", `${ms} ms`), { style: `left: ${percent(ms, range)}%` })),
      );
    },
    /** Returns how many tokens each lane has by then. */
    mark(clock, round) {
      const left = percent(clock, range);
      set(head, { style: `left: ${left}%` });
      set(veil, { style: `left: ${left}%` });
      for (const node of lanes[0].track.children) {
        const own = Number(node.getAttribute("data-first")) <= round && round <= Number(node.getAttribute("data-last"));
        node.setAttribute("data-current", String(own && node.getAttribute("data-first") !== null));
      }
      return lanes.map((lane) => {
        const count = tokensBy(lane.blocks, clock);
        lane.count.textContent = ` ${count} of ${lane.total} tokens`;
        return count;
      });
    },
  };
}

function laneOf(lane) {
  const head = element("div", "swbp-lane-head");
  const count = element("span", "swbp-count");
  head.append(element("strong", "", lane.name), count);
  const blocks = placed(lane);
  const total = blocks.reduce((sum, block) => sum + block.texts.length, 0);
  const words = `${lane.name} on the clock: ${total} tokens in ${blocks.length} rounds, ${inMs(blocks.at(-1)?.end ?? 0)}`;
  const track = set(element("div", "swbp-track"), { "data-measured": lane.measured, role: "img", "aria-label": words });
  return { lane, head, count, track, blocks, total };
}

function meter(name, value, text) {
  const node = set(element("div", "swbp-meter"), { "data-of": name });
  const bar = element("span", "swbp-bar");
  bar.append(set(element("span", "swbp-fill"), { style: `width: ${100 * value}%` }));
  node.append(element("span", "swbp-name", name), bar, element("span", "swbp-value", text));
  return node;
}

/** The rule's decision: a bar that is green up to accept_prob, and u as a needle on it. */
function decisionBar(token) {
  const node = element("div", "swbp-decision");
  if (token.u === null) {
    node.append(element("span", "swbp-value", "compared, no u"));
    return node;
  }
  const bar = element("span", "swbp-bar swbp-judge");
  const accept = Math.min(1, token.accept_prob);
  bar.append(set(element("span", "swbp-accept"), { style: `width: ${100 * accept}%` }));
  bar.append(set(element("span", "swbp-needle"), { style: `left: ${100 * token.u}%` }));
  const sign = token.u < token.accept_prob ? "<" : "≥";
  node.append(bar, element("span", "swbp-value", `u ${token.u_text} ${sign} ${token.accept_text}`));
  return node;
}

/** A token of the round as a card; `update` shows what is known of it at a step. */
function cardOf(played, round, token, marks, onPick) {
  const mark = marks[token.outcome];
  const node = set(element("div", "swbp-card"), { "data-outcome": token.outcome });
  const chip = element("div", "swbp-chip");
  const glyph = set(element("span", "swbp-glyph"), { "aria-hidden": "true" });
  chip.append(glyph, element("span", "swbp-token", token.text));
  node.append(chip);
  if (round.tree) {
    const parent = token.parent < 0 ? round.context.at(-1) : round.tokens[token.parent].text;
    node.append(element("div", "swbp-after", `after ${parent ?? "the context"}`));
  }
  const q = token.q === null || token.node < 0 ? null : meter("q", token.q, token.q_text);
  const p = meter("p", token.p, token.p_text);
  const decision = token.decided < 0 ? null : decisionBar(token);
  const fate = element("div", "swbp-fate");
  node.append(...[q, p, decision, fate].filter(Boolean));
  node.addEventListener("click", onPick);
  return {
    token,
    node,
    update(at) {
      const known = knownOf(played, at, token);
      const judged = token.node < 0 ? known.shown : known.judged;
      set(node, { "data-shown": known.shown, "data-judged": judged, "data-cut": token.cut && known.emitted });
      set(p, { "data-shown": known.p });
      if (decision) set(decision, { "data-shown": known.judged });
      glyph.textContent = judged ? mark.glyph + (token.cut && known.emitted ? "✂" : "") : "";
      fate.textContent = judged ? fateOf(token, known) : "";
    },
  };
}

function fateOf(token, known) {
  const cut = token.cut && known.emitted ? ", cut off by the end" : "";
  return `${token.outcome}${token.origin ? `, ${token.origin}` : ""}${cut}`;
}

/** The round's positions as columns, and the cache below them; `update` for another step of the same round. */
function roundFigure(played, number, marks, onPick) {
  const round = played.rounds[number];
  const root = set(element("div", "swbp-round"), { role: "group", "aria-label": `Positions of round ${round.round}` });
  const context = element("div", "swbp-context");
  const before = element("span", "swbp-code", `…${round.context.join("")}`);
  context.append(element("span", "swbp-label", "context "), before);
  const columns = set(element("div", "swbp-columns"), { role: "list" });
  const cards = round.tokens.map((token, i) => cardOf(played, round, token, marks, () => onPick(number, i)));
  const deepest = Math.max(...round.tokens.map((token) => token.position));
  for (let position = 1; position <= deepest; position += 1) {
    const own = cards.filter(({ token }) => token.position === position);
    const column = set(element("div", "swbp-column"), { role: "listitem" });
    column.append(element("div", "swbp-label", `position ${position}`), ...own.map(({ node }) => node));
    columns.append(column);
  }
  const cache = set(element("div", "swbp-cache"), { role: "img" });
  root.append(context, columns, cache);
  return {
    number,
    node: root,
    update(at) {
      const step = played.steps[at];
      cards.forEach((card, i) => {
        card.update(at);
        set(card.node, { "data-now": i === step.token });
      });
      drawCache(cache, cacheAt(played, at), round);
    },
  };
}

function drawCache(root, { length, cells }, round) {
  const bar = element("span", "swbp-cached", `${round.cache[0]} tokens`);
  set(bar, { title: "in the cache before the round" });
  const added = cells.map(({ text, state }) => set(element("span", "swbp-cell", text), { "data-state": state }));
  root.replaceChildren(element("span", "swbp-label", "KV cache "), bar, ...added, element("strong", "", ` ${length}`));
  const told = cells.map(({ text, state }) => `${text} ${state}`).join(", ");
  const more = told ? `, and of the round's forward: ${told}` : "";
  set(root, { "aria-label": `KV cache, ${length} tokens: ${round.cache[0]} from before the round${more}` });
}

/** The kinds of step, the one that is shown marked, those that the round has not struck out. */
function stageItems(played, step) {
  const own = new Set(played.steps.filter(({ round }) => round === step.round).map(({ kind }) => kind));
  return KINDS.map((kind) => {
    const there = own.has(kind);
    const item = set(element("li", "", kind), { "data-there": there });
    if (!there) item.append(element("span", "swb-hidden", ", not in this round"));
    return kind === step.kind ? set(item, { "aria-current": "step" }) : item;
  });
}

/** The round's phases that took any time, with the colour that they have on the clock. */
function timeItems({ phases, round }) {
  const items = phases.map((ms, k) => {
    const item = element("span", "swbp-time");
    item.append(set(element("span", "swbp-key"), { "data-phase": PHASES[k] }), `${PHASE_WORDS[PHASES[k]]} ${inMs(ms)}`);
    return item;
  });
  return [element("span", "swbp-label", `round ${round}: `), ...items.filter((_, k) => phases[k] >= SEEN)];
}

