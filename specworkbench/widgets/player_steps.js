// What the round player knows without drawing: where keys lead, what is known of a token at a step, what lies in a
// window of the clock. `played` is what `player_rounds` prepares; a step is an index into its steps; times are ms.

export const KINDS = ["propose", "verify", "decide", "emit", "roll back"];
export const PHASES = ["propose", "verify", "accept", "rollback", "other"];
const NEAR = 3.5; // rounds that the close view shows
const MOST = 400; // blocks of a lane; more are drawn together
const LATER = 1e-6; // ms, by which sums of the same times may differ

/** The first step of a round. */
export function firstStep(played, round) {
  return played.steps.findIndex((step) => step.round === round);
}

/** Where a key leads from a step: another step, or null for a key that means nothing here. */
export function moved(played, at, key) {
  const last = played.steps.length - 1;
  if (last < 0) return null;
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (key === "ArrowRight") return Math.min(at + 1, last);
  if (key === "ArrowLeft") return Math.max(at - 1, 0);
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const round = played.steps[at].round + (key === "ArrowDown" ? 1 : -1);
  if (round < 0) return 0;
  return round < played.rounds.length ? firstStep(played, round) : last;
}

/** The step during which this moment of the clock lies. */
export function stepAt(played, clock) {
  const found = played.steps.findIndex((step) => clock < step.end);
  return found < 0 ? played.steps.length - 1 : found;
}

/** What is known of a token of a step's round: {shown, p, judged, emitted}, all true or false. */
export function knownOf(played, at, token) {
  const step = played.steps[at];
  const stage = KINDS.indexOf(step.kind);
  const tokens = played.rounds[step.round].tokens;
  const decided = step.kind === "decide" ? tokens[step.token].decided : -1;
  const all = Math.max(...tokens.map((other) => other.decided));
  const reached = token.decided >= 0 ? token.decided <= decided : decided === all;
  return {
    shown: token.node >= 0 || stage >= 3,
    p: stage >= 1,
    judged: stage >= 3 || (stage === 2 && reached),
    emitted: stage >= 3,
  };
}

/** The target's cache at a step: {length, cells: [{text, state}]}, the cells being what the round's forward added. */
export function cacheAt(played, at) {
  const step = played.steps[at];
  const round = played.rounds[step.round];
  const [before, verified, after] = round.cache;
  const stage = KINDS.indexOf(step.kind);
  if (stage < 1) return { length: before, cells: [] };
  const guesses = round.tokens.filter((token) => token.node >= 0);
  let room = after - before - 1; // for accepted guesses, beside the context's last token
  const kept = guesses.map((token) => token.outcome === "accepted" && room-- > 0);
  const state = (stays) => (stage < 4 ? "held" : stays ? "kept" : "dropped");
  const cells = [
    { text: round.context.at(-1) ?? "", state: state(true) },
    ...guesses.map((token, i) => ({ text: token.text, state: state(kept[i]) })),
  ];
  return { length: stage < 4 ? verified : after, cells };
}

/** A lane's blocks with their start and end on the clock, and when their tokens were known. */
export function placed(lane) {
  let clock = lane.prefill;
  return lane.blocks.map(({ phases, texts }, index) => {
    const start = clock;
    clock += phases.reduce((sum, ms) => sum + ms, 0);
    const known = start + phases[0] + phases[1] + phases[2];
    return { first: index, last: index, start, end: clock, known, phases, texts };
  });
}

/** How many tokens were out at this moment. */
export function tokensBy(blocks, clock) {
  return blocks.reduce((sum, block) => sum + (block.known + LATER < clock ? block.texts.length : 0), 0);
}

/** Blocks that reach into a window, neighbours drawn together where there are more than `most`. */
export function blocksIn(blocks, { from, to }, most = MOST) {
  const seen = blocks.filter((block) => block.end > from && block.start < to);
  const size = Math.ceil(seen.length / most);
  if (size < 2) return seen;
  const groups = [];
  for (let i = 0; i < seen.length; i += size) {
    const own = seen.slice(i, i + size);
    const phases = PHASES.map((_, k) => own.reduce((sum, block) => sum + block.phases[k], 0));
    const texts = own.flatMap((block) => block.texts);
    groups.push({ ...own[0], last: own.at(-1).last, end: own.at(-1).end, phases, texts });
  }
  return groups;
}

/** Mean ms of a round. */
export function meanRound(played) {
  const steps = played.steps;
  return steps.length ? (steps.at(-1).end - steps[0].start) / played.rounds.length : 0;
}

/** The part of the clock that is shown at a step: some rounds around it, or the whole of both runs. */
export function windowOf(played, at, whole, ends) {
  if (whole) return { from: 0, to: Math.max(...ends) };
  const span = NEAR * meanRound(played);
  const { start } = played.rounds[played.steps[at].round];
  const from = Math.max(0, start - span / 5);
  return { from, to: from + span };
}

/** Round numbers of ms within a window, about five. */
export function ticks({ from, to }) {
  const rough = (to - from) / 5;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * ten).find((size) => size >= rough);
  const found = [];
  for (let i = Math.ceil(from / step); i * step <= to; i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** ms with sensible digits. */
export function inMs(value) {
  return `${value.toFixed(value < 1 ? 2 : value < 100 ? 1 : 0)} ms`;
}

/** Both runs at one moment, in words. */
export function standing(clock, mine, plain) {
  const count = (number) => `${number} ${number === 1 ? "token" : "tokens"}`;
  const here = `${inMs(clock)} after the start: ${count(mine)}`;
  return plain === null ? `${here}.` : `${here}; plain decoding ${count(plain)}.`;
}
