// What the strip knows of its tokens without a page: rounds, the lines they wrap into, where a key leads.

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

/** Whether these tokens are the old ones with some more behind them. */
export function continues(old, tokens) {
  const last = old.length - 1;
  return last >= 0 && [0, last].every((i) => tokens[i]?.label === old[i].label);
}

/**
 * How tokens wrap into lines: rounds side by side, a round that fits on no line over several.
 *
 * room, in pixels: `width` of a line; `token(token)`, a token's width; `head(round)`, what stands before a round's first
 * token, and `more` before its first on a further line; `gap` before each token, `between` rounds.
 *
 * Returns `lines`, each with its `parts` [{group, start, end, first}] and the tokens from `start` to `end`; `lineOf`
 * and `left` say of each token its line and where on that it begins.
 */
export function wrap(tokens, groups, room) {
  const plan = { lines: [], lineOf: new Int32Array(tokens.length), left: new Float64Array(tokens.length) };
  let edge = Infinity;
  const open = (group, start, first) => {
    if (edge === Infinity) plan.lines.push({ start, end: start, parts: [] });
    const part = { group, start, end: start, first };
    plan.lines.at(-1).parts.push(part);
    return part;
  };
  groups.forEach((group, number) => {
    const widths = tokens.slice(group.start, group.end).map((token) => room.token(token) + room.gap);
    const whole = widths.reduce((sum, width) => sum + width, room.head(group.round));
    if (edge + room.between + whole > room.width) edge = Infinity;
    let part = open(number, group.start, true);
    edge = (edge === Infinity ? 0 : edge + room.between) + room.head(group.round);
    widths.forEach((width, i) => {
      const index = group.start + i;
      if (edge + width > room.width && part.end > part.start) {
        edge = Infinity;
        part = open(number, index, false);
        edge = room.more;
      }
      plan.left[index] = edge + room.gap;
      plan.lineOf[index] = plan.lines.length - 1;
      edge += width;
      part.end = plan.lines.at(-1).end = index + 1;
    });
  });
  return plan;
}

/** The lines to keep in the page: those seen, and a screenful before and after. `last` is exclusive. */
export function linesAround(top, height, line, count) {
  const screen = Math.ceil(height / line);
  const first = Math.floor(top / line);
  return { first: Math.max(0, first - screen), last: Math.min(count, first + 2 * screen + 1) };
}

/** Where the list must be scrolled to, from `top`, for a line to be seen whole. */
export function scrolledTo(number, top, height, line) {
  if (number * line < top) return number * line;
  return Math.max(top, (number + 1) * line - height);
}

/** Where a key leads from the active token: an index, or null for a key that means nothing here. */
export function moved(tokens, active, key) {
  const last = tokens.length - 1;
  if (last < 0) return null;
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (key === "ArrowRight") return Math.min(active + 1, last);
  if (key === "ArrowLeft") return Math.max(active - 1, 0);
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  if (active < 0) return 0;
  const groups = groupRounds(tokens);
  const at = groups.findIndex((group) => active < group.end);
  const to = groups[at + (key === "ArrowDown" ? 1 : -1)];
  if (!to) return active;
  return Math.min(to.start + active - groups[at].start, to.end - 1);
}

/** Where PageDown or PageUp leads: so many lines on, to the token that stands nearest there; at the end, to the last. */
export function paged(plan, active, key, lines) {
  const down = key === "PageDown";
  const final = plan.lines.length - 1;
  if (active < 0) return 0;
  const from = plan.lineOf[active];
  const to = Math.min(final, Math.max(0, from + (down ? lines : -lines)));
  if (to === from) return down ? plan.lines[final].end - 1 : 0;
  const { start, end } = plan.lines[to];
  let nearest = start;
  const far = (index) => Math.abs(plan.left[index] - plan.left[active]);
  for (let index = start; index < end; index += 1) if (far(index) < far(nearest)) nearest = index;
  return nearest;
}
