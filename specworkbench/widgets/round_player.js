// The round player: step first, play second. What it knows is in `player_steps.js`, what it draws in `player_figures.js`;
// `round_player.py` puts them together. Playback runs here, in the browser: only the step is told to Python.

const EMPTY = "No rounds yet: open a trace or decode a prompt, and its rounds are played here.";
const PACES = [4, 2, 1, 0.25]; // seconds a round
const TOLD = 400; // ms between two steps told to Python while it plays
const REST = 300; // ms until a step that stays is told
const HELP = "Arrow keys: left and right by step, up and down by round; space plays; Home and End go to the ends.";

function stillWanted() {
  return Boolean(globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches);
}

class Player {
  constructor(model) {
    this.model = model;
    this.playing = null; // {since, clock, still}: when playing began, from where, and whether without motion
    this.step = this.told = 0; // the step that is shown, and the last that the model was told
    this.pace = PACES[0];
    this.whole = false;
    this.root = set(element("div", "swb swb-scripted swb-player"), { role: "group", "aria-label": "Round player" });
    this.title = element("div", "swb-title");
    this.body = element("div");
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("keydown", keepKey);
    this.root.append(this.title, this.body);
    this.message = set(element("p", "swbp-message"), { role: "alert" });
    this.rebuilt = this.rebuilt.bind(this);
    this.stepped = this.stepped.bind(this);
    this.tick = this.tick.bind(this);
    this.rebuilt();
  }

  get played() {
    return this.model.get("played");
  }

  get at() {
    return Math.max(0, Math.min(this.step, this.played.steps.length - 1));
  }

  /** Another sequence: everything anew. */
  rebuilt() {
    this.halt();
    clearTimeout(this.saying);
    const { model } = this;
    const message = model.get("message");
    this.message.textContent = message;
    this.title.textContent = this.played.title ?? "";
    this.figure = null;
    this.step = this.told = model.get("step");
    const told = message ? [this.message] : [];
    if (!this.played.steps?.length) {
      this.stage = null;
      this.body.replaceChildren(...(message ? told : [element("p", "swb-empty", EMPTY)]));
      return;
    }
    this.lanes = lanesFigure(this.played, (round) => this.go(firstStep(this.played, round)));
    const named = { role: "group", "aria-label": "Rounds", "aria-description": HELP };
    this.stage = set(element("div", "swbp-stage"), { tabindex: "0", ...named });
    this.sentence = element("p", "swbp-sentence");
    this.live = set(element("p", "swb-hidden"), { role: "status" });
    this.stages = set(element("ol", "swbp-stages"), { "aria-label": "Steps of the round" });
    this.standing = element("p", "swbp-standing");
    this.times = element("p", "swbp-times");
    this.place = element("div");
    this.stage.append(this.stages, this.sentence, this.place, this.standing, this.lanes.node, this.times);
    this.body.replaceChildren(this.makeControls(), this.stage, this.live, ...told);
    this.window = null;
    this.show();
    this.moment(this.played.steps[this.at].end);
  }

  makeControls() {
    const node = set(element("div", "swb-controls"), { role: "group", "aria-label": "Playback" });
    this.back = button("◀ back", () => this.go(this.at - 1), "one step back");
    this.next = button("step ▶", () => this.go(this.at + 1), "one step on");
    this.toggle = button("play", () => (this.playing ? this.pause() : this.play()), "play");
    const slower = (seconds) => Math.round((1000 * seconds) / meanRound(this.played));
    const paces = PACES.map((seconds) => [String(seconds), `${seconds} s a round (${slower(seconds)}× slower)`]);
    const offered = { "": [...paces, ["step", "a step a second"]] };
    this.speed = choice("speed", offered, (value) => this.setPace(value));
    this.speed.value = String(this.pace);
    const spans = { "": [["near", "a few rounds"], ["whole", "the whole run"]] };
    this.span = choice("time shown", spans, (value) => {
      this.whole = value === "whole";
      this.show();
    });
    this.span.value = this.whole ? "whole" : "near";
    const last = this.played.rounds.length - 1;
    this.scrubber = set(element("input"), { type: "range", min: 0, max: last, step: 1, "aria-label": "round" });
    this.scrubber.addEventListener("input", () => this.go(firstStep(this.played, Number(this.scrubber.value))));
    this.where = element("span", "swbp-where");
    node.append(this.back, this.next, this.toggle, this.speed, this.scrubber, this.where, this.span);
    return node;
  }

  setPace(value) {
    const { playing } = this;
    this.pause();
    this.pace = value === "step" ? value : Number(value);
    if (playing) this.play();
  }

  /** To a step, by a person. */
  go(step) {
    this.pause();
    this.turn(Math.max(0, Math.min(step, this.played.steps.length - 1)));
    this.tell();
    this.say();
  }

  /** Show a step; while it plays, the playhead is moved apart. */
  turn(step) {
    this.step = step;
    this.show();
    if (!this.playing?.frame) this.moment(this.played.steps[step].end);
  }

  /** Tell Python which step is shown: while it plays, not more often than can be followed. */
  tell() {
    if (this.playing && performance.now() - (this.toldAt ?? -TOLD) < TOLD) return;
    this.toldAt = performance.now();
    this.told = this.step;
    this.model.set("step", this.step);
    this.model.save_changes();
  }

  /** Another step by Python, or what Python was told coming back. */
  stepped() {
    const step = this.model.get("step");
    if (!this.stage || step === this.told) return;
    this.pause();
    this.told = step;
    this.hush();
    this.turn(step);
  }

  /** Have those who hear the page told the step that a person came to, not every one that flies by. */
  say() {
    this.hush();
    this.saying = setTimeout(() => (this.live.textContent = this.played.steps[this.at].text), REST);
  }

  hush() {
    clearTimeout(this.saying);
    this.live.textContent = "";
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target ?? this.stage;
    const own = target === this.speed || target === this.span || target === this.scrubber;
    const space = event.key === " " && target === this.stage;
    const to = own ? null : moved(this.played, this.at, event.key);
    if (to === null && !space) return;
    event.preventDefault();
    if (!space) this.go(to);
    else if (this.playing) this.pause();
    else this.play();
  }

  play() {
    const { steps } = this.played;
    if (this.at === steps.length - 1) this.turn(0);
    this.playing = { since: performance.now(), clock: steps[this.at].start, still: stillWanted() };
    this.label("pause");
    this.hush();
    this.later();
  }

  halt() {
    if (!this.playing) return;
    (this.playing.frame ? cancelAnimationFrame : clearTimeout)(this.playing.timer);
    this.playing = null;
    this.label("play");
  }

  pause() {
    if (!this.playing) return;
    this.halt();
    this.turn(this.at);
    this.tell();
    this.say();
  }

  label(word) {
    this.toggle.textContent = word;
    set(this.toggle, { "aria-label": word, title: word });
  }

  /** Come again: at the next frame; by steps, and where no motion is wanted, when the next step is due. */
  later() {
    const { playing, played } = this;
    const steady = this.pace === "step";
    playing.frame = !steady && !playing.still;
    if (playing.frame) playing.timer = requestAnimationFrame(this.tick);
    else {
      const { start, end } = played.steps[this.at];
      playing.timer = setTimeout(this.tick, steady ? 1000 : Math.max(150, (end - start) * this.slowdown));
    }
  }

  /** ms of the person's time for one of the run's. */
  get slowdown() {
    return (1000 * this.pace) / meanRound(this.played);
  }

  tick() {
    const { playing, played } = this;
    const last = played.steps.length - 1;
    if (!playing.frame) {
      if (this.at < last) this.turn(this.at + 1);
      if (this.at === last) return this.pause();
      this.tell();
      return this.later();
    }
    const clock = playing.clock + (performance.now() - playing.since) / this.slowdown;
    const step = stepAt(played, clock);
    if (step !== this.at) {
      this.turn(step);
      this.tell();
    }
    if (clock >= played.steps[last].end) return this.pause();
    this.moment(clock);
    return this.later();
  }

  show() {
    const { at, played } = this;
    const step = played.steps[at];
    if (this.figure?.number !== step.round) {
      this.figure = roundFigure(played, step.round, this.model.get("marks"), (round, token) => this.pick(round, token));
      this.place.replaceChildren(this.figure.node);
      this.window = null;
    }
    this.figure.update(at);
    this.sentence.textContent = step.text;
    this.stages.replaceChildren(...stageItems(played, step));
    this.times.replaceChildren(...timeItems(played.rounds[step.round]));
    const number = played.rounds[step.round].round;
    set(this.scrubber, { "aria-valuetext": `round ${number}, ${step.kind}` });
    this.scrubber.value = String(step.round);
    this.where.textContent = `round ${number} of ${played.rounds.length - 1}`;
    set(this.back, { "aria-disabled": at === 0 }); // one that is disabled would let go of the keyboard
    set(this.next, { "aria-disabled": at === played.steps.length - 1 });
    const range = windowOf(played, at, this.whole, this.lanes.ends);
    if (JSON.stringify(range) !== JSON.stringify(this.window)) {
      this.window = range;
      this.lanes.draw(range);
      this.moment(step.end);
    }
  }

  /** The playhead at a moment of the clock. */
  moment(clock) {
    const [mine, plain] = this.lanes.mark(clock, this.played.steps[this.at].round);
    this.standing.textContent = standing(clock, mine, plain ?? null);
  }

  /** To the step that is about a token of a round. */
  pick(round, token) {
    const step = this.played.steps.findIndex((own) => own.round === round && own.token === token);
    if (step >= 0) this.go(step);
  }

  redraw() {
    if (!this.stage) return;
    this.window = null;
    this.show();
  }

  leave() {
    this.halt();
    clearTimeout(this.saying);
    this.root.remove();
  }
}

function render({ model, el }) {
  const player = new Player(model);
  el.append(player.root);
  const heard = { played: player.rebuilt, message: player.rebuilt, step: player.stepped };
  for (const [name, handler] of Object.entries(heard)) model.on(`change:${name}`, handler);
  let width = 0;
  const watch = globalThis.ResizeObserver && new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) < 1) return;
    width = entry.contentRect.width;
    player.redraw();
  });
  watch?.observe(player.root);
  return () => {
    watch?.disconnect();
    for (const [name, handler] of Object.entries(heard)) model.off(`change:${name}`, handler);
    player.leave();
  };
}

export default { render };
