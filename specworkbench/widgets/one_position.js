// One position in closed form: the formulas of `specworkbench/theory/one_position.py`, by the same names.

const EXACT = 1e-12;
const STEPS = { ArrowUp: 0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowLeft: -0.01, PageUp: 0.1, PageDown: -0.1 };

const sum = (row) => row.reduce((total, value) => total + value, 0);
const each = (f) => (p, q, s) => p.map((value, i) => f(value, q[i], s));
const ratio = (above, below) => (below > 0 ? Math.min(above, below) / below : 1);
const best = (row) => row.map((_, i) => (i === row.indexOf(Math.max(...row)) ? 1 : 0));

function cut(p, q, { k }) {
  const least = [...q].sort((a, b) => b - a)[Math.min(Math.floor(k), q.length) - 1];
  const kept = q.map((value) => (value >= least ? value : 0));
  return kept.map((value) => value / sum(kept));
}

function typical(p, q, { epsilon, delta }) {
  const positive = p.filter((value) => value > 0);
  const threshold = Math.min(epsilon, delta * Math.exp(sum(positive.map((value) => value * Math.log(value)))));
  return p.map((value) => (value > threshold ? 1 : 0));
}

export const GUESSES = {
  q: (p, q) => q,
  "the top k of q": cut,
  "argmax q": (p, q) => best(q),
};

export const ACCEPTS = {
  "min(1, p/q)": each(ratio),
  p: (p) => p,
  "min(1, p/(leniency q))": each((p, q, s) => ratio(p, s.leniency * q)),
  "min(1, v/q), v = weight p + (1 − weight) q": each((p, q, s) => ratio(s.weight * p + (1 - s.weight) * q, q)),
  "1 if p > min(epsilon, delta exp(−H(p))), else 0": typical,
  1: each(() => 1),
  "min(1, q/p)": each((p, q) => ratio(q, p)),
  "min(1, p/max(q, floor))": each((p, q, s) => ratio(p, Math.max(q, s.floor))),
};

export const REPLACEMENTS = {
  "max(p − q, 0)": each((p, q) => Math.max(p - q, 0)),
  "p (1 − q)": each((p, q) => p * (1 - q)),
  p: (p) => p,
  q: (p, q) => q,
  "|p − q|": each((p, q) => Math.abs(p - q)),
  "max(q − p, 0)": each((p, q) => Math.max(q - p, 0)),
  "exp(max(p − q, 0))": each((p, q) => Math.exp(Math.max(p - q, 0))),
  "argmax p": (p) => best(p),
};

/** All that happens at one position; rule: {guess, accept, replacement}, the names of its three choices. */
export function onePosition(p, q, rule, settings) {
  const guess = GUESSES[rule.guess](p, q, settings);
  const accept = ACCEPTS[rule.accept](p, q, settings);
  let weights = REPLACEMENTS[rule.replacement](p, q, settings);
  if (!(sum(weights) > 0)) weights = p;
  const total = sum(weights);
  const accepted = guess.map((value, i) => value * accept[i]);
  const acceptance = sum(accepted);
  const replacement = weights.map((value) => value / total);
  const replaced = replacement.map((value) => Math.max(0, 1 - acceptance) * value);
  const emitted = accepted.map((value, i) => value + replaced[i]);
  const overlap = p.map((value, i) => Math.min(value, q[i]));
  const residual = p.map((value, i) => Math.max(value - q[i], 0));
  const tv = sum(emitted.map((value, i) => Math.abs(value - p[i]))) / 2;
  return { p, q, guess, accept, accepted, acceptance, overlap, residual, replacement, replaced, emitted, tv };
}

/** The distribution with one probability set, the others scaled so that all sum to 1 (equal where they are all 0). */
export function withProbability(probs, index, value) {
  const rest = sum(probs.filter((_, i) => i !== index));
  return probs.map((old, i) => {
    if (i === index) return value;
    return (1 - value) * (rest > 0 ? old / rest : 1 / (probs.length - 1));
  });
}

/** Where a key leads from a value: a probability, or null for a key that means nothing here. */
export function stepped(value, key) {
  if (key === "Home") return 0;
  if (key === "End") return 1;
  if (!(key in STEPS)) return null;
  return Math.min(1, Math.max(0, Math.round((value + STEPS[key]) * 1000) / 1000));
}

/** What comes out, in words. */
export function verdict(position, rule, tokens) {
  const accepted = `Accepted with probability ${position.acceptance.toFixed(3)}.`;
  if (position.tv < EXACT) {
    const luck = rule.kind === "exact" ? "" : " That is so with these numbers; in general the rule does not keep p.";
    return `${accepted} What comes out is p.${luck}`;
  }
  const off = position.emitted.map((value, i) => Math.abs(value - position.p[i]));
  const worst = off.indexOf(Math.max(...off));
  const instead = `${position.emitted[worst].toFixed(3)} in place of ${position.p[worst].toFixed(3)}`;
  return `${accepted} What comes out is not p: TV ${position.tv.toFixed(3)}; ${tokens[worst]} comes out with ${instead}.`;
}

/** What the rule does, in words. */
export function inWords({ guess, accept, replacement }) {
  const instead = replacement.startsWith("argmax") ? `take ${replacement}` : `draw in proportion to ${replacement}`;
  return `Guess from ${guess}; accept with ${accept}; when refused, ${instead}.`;
}

const plain = (key) => (position, i) => position[key][i].toFixed(3);

/** Key, label and text of the rows of numbers. */
export const ROWS = [
  ["p", "p (target)", plain("p")],
  ["q", "q (draft)", plain("q")],
  ["overlap", "min(p, q)", plain("overlap")],
  ["residual", "max(p − q, 0)", plain("residual")],
  ["accepted", "accepted", plain("accepted")],
  ["replaced", "drawn when refused", plain("replaced")],
  ["emitted", "comes out", plain("emitted")],
  ["off", "comes out − p", (position, i) => signed(position.emitted[i] - position.p[i])],
];

/** A difference with its sign; 0 below what three digits show. */
export function signed(value) {
  if (Math.abs(value) < 5e-4) return "0";
  return `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(3)}`;
}
