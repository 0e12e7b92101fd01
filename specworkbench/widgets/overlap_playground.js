// The playground: p and q as bars to drag, and what comes out of a rule. The formulas are in `one_position.js`, the
// figures in `overlap_figures.js`; `overlap_playground.py` puts them together.

const KINDS = { exact: "keeps p", lossy: "lossy by design", fault: "a fault" };
const LETTERS = "abcdefgh";
const REST = 500; // ms

/** What keeps the figure from being drawn, as a sentence; empty for nothing. */
export function trouble(tokens, p, q) {
  if (!p.length) return "No distributions yet: set p and q, or load a preset.";
  if (p.length === q.length && p.length === tokens.length) return "";
  return `p has ${p.length} tokens, q has ${q.length} and there are ${tokens.length} names: give all the same number.`;
}

/** What the widget holds while it is on a page: the model, its root, and the bar that is held. */
class Playground {
  constructor(model) {
    this.model = model;
    this.name = `swb-${Math.random().toString(36).slice(2)}`; // of the patterns, which are found by name in the page
    this.root = set(element("div", "swb swb-scripted swb-play"), { role: "group", "aria-label": "Overlap playground" });
    this.body = element("div");
    this.root.addEventListener("keydown", keepKey);
    this.drawn = null;
    this.held = null; // {row, index, probs}: the distribution as it was when a bar was taken hold of
    this.sending = false;
    this.saying = 0; // a timer
    this.controls = this.makeControls();
    this.title = element("div", "swb-title");
    this.root.append(this.title, this.controls.node, this.body);
    this.changed = this.changed.bind(this);
    this.changed();
  }

  get rule() {
    const rules = this.model.get("rules");
    return rules.find((entry) => entry.name === this.model.get("rule")) ?? rules[0];
  }

  /** Set some traits at once, and show what came of it. */
  send(values) {
    this.sending = true;
    for (const [key, value] of Object.entries(values)) this.model.set(key, value);
    this.sending = false;
    this.changed();
    this.tell();
    this.model.save_changes();
  }

  hold(row, index) {
    this.held = { row, index, probs: [...this.model.get(row)] };
  }

  /** One bar to a height: the others keep the proportions they had when it was taken hold of. */
  move(row, index, value) {
    if (this.held?.row !== row || this.held.index !== index) this.hold(row, index);
    const mine = this.held;
    this.send({ [row]: withProbability(mine.probs, index, value) });
    this.held = mine;
  }

  makeControls() {
    const groups = {};
    for (const { kind, name, label } of this.model.get("rules")) (groups[KINDS[kind]] ??= []).push([name, label]);
    const rule = choice("rule", groups, (name) => this.send({ rule: name }));
    const presets = this.model.get("presets");
    const offered = presets.map(({ name, label }) => [name, label]);
    const sizes = Object.keys(presets[0].rows).map((number) => [number, number]);
    const preset = choice("preset", { "": [["", "choose…"], ...offered] }, () => load());
    const size = choice("number of tokens", { "": sizes }, () => load());
    const load = () => {
      const chosen = presets.find(({ name }) => name === preset.value) ?? presets[0];
      const { p, q } = chosen.rows[size.value];
      preset.value = chosen.name;
      this.send({ tokens: [...LETTERS].slice(0, p.length), p, q });
    };
    const settings = element("span", "swb-settings");
    const buttons = [button("Load", load), button("Reset", () => this.send(this.model.get("start")))];
    const node = element("div", "swb-controls");
    node.append(labelled("rule", rule), settings, labelled("preset", preset), labelled("tokens", size), ...buttons);
    return { node, rule, size, settings, inputs: {}, settingsOf: null };
  }

  /** The chosen rule's own numbers, each with a control; made anew for another rule only, so that focus stays. */
  offerSettings() {
    const { controls, model, rule } = this;
    if (controls.settingsOf !== rule.name) {
      controls.settingsOf = rule.name;
      controls.inputs = Object.fromEntries(rule.settings.map((key) => [key, this.settingInput(key)]));
      const entries = Object.entries(controls.inputs);
      controls.settings.replaceChildren(...entries.map(([key, input]) => labelled(key, input)));
    }
    for (const [key, input] of Object.entries(controls.inputs)) {
      if (Number(input.value) !== model.get("settings")[key]) input.value = String(model.get("settings")[key]);
    }
  }

  settingInput(key) {
    const { low, high, step } = this.model.get("limits")[key];
    const input = element("input");
    set(input, { type: "number", min: low, max: high, step });
    input.addEventListener("change", () => {
      const old = this.model.get("settings");
      const given = input.value === "" ? old[key] : Number(input.value);
      const value = Math.min(high, Math.max(low, given));
      input.value = String(value);
      this.send({ settings: { ...old, [key]: value } });
    });
    return input;
  }

  /** Another value of a trait, from here or from Python. */
  changed() {
    if (this.sending) return;
    const { model } = this;
    const tokens = model.get("tokens");
    const bad = trouble(tokens, model.get("p"), model.get("q"));
    this.held = null;
    if (this.drawn && !this.saying) this.drawn.live.textContent = "";
    this.title.textContent = model.get("title");
    this.controls.rule.value = this.rule.name;
    this.controls.size.value = String(tokens.length);
    this.offerSettings();
    if (bad) {
      this.drawn = null;
      const sentence = element("p", "swb-empty", bad);
      sentence.setAttribute("role", "alert");
      this.body.replaceChildren(sentence);
      return;
    }
    const same = this.drawn?.tokens.length === tokens.length && this.drawn.tokens.every((text, i) => text === tokens[i]);
    if (!same) this.build(tokens);
    this.update();
  }

  build(tokens) {
    const given = givenField(this.name, tokens);
    const replaced = residualField(`${this.name}-r`, tokens);
    const emitted = emittedField(`${this.name}-e`, tokens);
    const fields = element("div", "swb-fields");
    fields.append(given.node, replaced.node, emitted.node);
    const table = numbers(tokens);
    const [formula, says, live] = ["swb-formula", "swb-says", "swb-hidden"].map((look) => element("p", look));
    live.setAttribute("role", "status");
    this.body.replaceChildren(formula, fields, says, table.node, live);
    this.drawn = { tokens, given, replaced, emitted, table, formula, says, live };
    for (const row of ["p", "q"]) given.sliders[row].forEach(({ node }, i) => this.listen(node, row, i, given.svg));
  }

  /** Pointer and keys of one bar. */
  listen(node, row, index, svg) {
    const follow = (event) => this.move(row, index, valueAt(event.clientY, svg.getBoundingClientRect()));
    node.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      event.preventDefault();
      node.focus({ preventScroll: true });
      node.setPointerCapture(event.pointerId);
      this.root.classList.add("swb-dragging");
      this.hold(row, index);
      follow(event);
    });
    node.addEventListener("pointermove", (event) => {
      if (node.hasPointerCapture(event.pointerId)) follow(event);
    });
    for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) {
      node.addEventListener(kind, () => this.root.classList.remove("swb-dragging"));
    }
    node.addEventListener("focus", () => this.hold(row, index));
    node.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const to = stepped(this.model.get(row)[index], event.key);
      if (to === null) return;
      event.preventDefault();
      this.move(row, index, to);
    });
  }

  update() {
    const { model, drawn, rule } = this;
    const position = onePosition(model.get("p"), model.get("q"), rule, model.get("settings"));
    const words = verdict(position, rule, drawn.tokens);
    showGiven(drawn.given, position, drawn.tokens);
    showReplaced(drawn.replaced, position);
    showEmitted(drawn.emitted, position, words);
    drawn.formula.textContent = inWords(rule);
    const sign = element("strong", "", position.tv < EXACT ? "= p " : "≠ p ");
    drawn.says.replaceChildren(sign, ` ${words} ${rule.says}`);
    for (const [key, , text] of ROWS) drawn.table.cells[key].forEach((cell, i) => (cell.textContent = text(position, i)));
    drawn.words = words;
  }

  /** Tell those who hear the page what came of what they did: at rest, not at every step of a drag. */
  tell() {
    clearTimeout(this.saying);
    this.saying = setTimeout(() => {
      this.saying = 0;
      if (this.drawn) this.drawn.live.textContent = this.drawn.words;
    }, REST);
  }
}

const TRAITS = ["tokens", "p", "q", "rule", "settings", "title"];

function render({ model, el }) {
  const playground = new Playground(model);
  el.append(playground.root);
  for (const name of TRAITS) model.on(`change:${name}`, playground.changed);
  return () => {
    clearTimeout(playground.saying);
    for (const name of TRAITS) model.off(`change:${name}`, playground.changed);
    playground.root.remove();
  };
}

export default { render };
