// The tokens of one sequence, grouped by rounds: a listbox whose options are tokens. Only the lines that are seen, some
// around them and that of the active token are in the page.

const EMPTY = "No tokens yet: decode a prompt or open a trace, and its tokens appear here.";

/** A strip in `el`; `measure` tells the room, and tests without a page give their own. */
export class Strip {
  constructor({ model, el, measure = measured }) {
    Object.assign(this, { model, measure, tokens: [], groups: [], glyphs: {}, plan: wrap([], [], {}), sizes: null });
    Object.assign(this, { active: -1, lines: new Map(), frame: 0, laidFor: "", picking: false, telling: false });
    this.head = element("div", "swb-head");
    this.empty = element("p", "swb-empty", EMPTY);
    this.list = element("div", "swb-tokens", undefined, { role: "listbox", "aria-orientation": "horizontal" });
    this.ruler = element("div", "swb-ruler", undefined, { "aria-hidden": true });
    this.sheet = element("div", "swb-sheet", undefined, { role: "presentation" });
    this.said = element("div", "swb-said", undefined, { role: "status" });
    this.ruler.append(element("span", "swb-token", "0"));
    this.list.append(this.ruler, this.sheet);
    el.classList.add("swb");
    el.classList.add("swb-strip");
    el.append(this.head, this.empty, this.list, this.said);
    this.listen();
    this.build();
    this.watch = globalThis.ResizeObserver && new ResizeObserver(() => this.resized());
    if (this.watch) [this.ruler, this.ruler.firstChild].forEach((node) => this.watch.observe(node));
  }

  listen() {
    this.heard = {
      "change:tokens": () => this.build(),
      "change:title": () => this.entitle(),
      "change:selected": () => this.mark(),
      "change:sentence": () => this.say(this.model.get("sentence")),
    };
    Object.entries(this.heard).forEach(([name, handler]) => this.model.on(name, handler));
    this.list.addEventListener("click", (event) => {
      const node = event.target.closest("[role=option]");
      if (!node) return;
      this.pick(Number(node.dataset.index));
      this.model.save_changes();
    });
    this.list.addEventListener("focusin", (event) => {
      if (event.target.dataset.index !== undefined) this.active = Number(event.target.dataset.index);
    });
    this.list.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.pressed(event.key)) return;
      event.preventDefault();
      event.stopPropagation(); // Esc as well
    });
    this.list.addEventListener("keydown", keepKey);
    this.list.addEventListener("scroll", () => {
      this.frame ||= requestAnimationFrame(() => this.draw());
    });
  }

  /** Take it down. */
  close() {
    this.watch?.disconnect();
    Object.entries(this.heard).forEach(([name, handler]) => this.model.off(name, handler));
  }

  get selected() {
    return this.model.get("selected");
  }

  /** Which option the Tab key leads to. */
  get entry() {
    return Math.max(this.active, 0);
  }

  get holdsFocus() {
    const node = this.list.ownerDocument.activeElement;
    return node?.dataset?.index !== undefined && this.list.contains(node);
  }

  build() {
    const before = this.tokens;
    this.tokens = this.model.get("tokens");
    this.groups = groupRounds(this.tokens);
    this.glyphs = Object.fromEntries(this.model.get("legend").map(({ outcome, glyph }) => [outcome, glyph]));
    if (!continues(before, this.tokens)) {
      this.active = -1;
      this.list.scrollTop = 0;
    }
    if (this.selected >= 0) this.active = this.selected;
    this.active = Math.min(this.active, this.tokens.length - 1);
    this.list.style.display = this.tokens.length ? "" : "none";
    this.empty.style.display = this.tokens.length ? "none" : "";
    this.entitle();
    this.lay();
  }

  entitle() {
    const title = this.model.get("title");
    const parts = title ? [element("div", "swb-title", title)] : [];
    if (this.tokens.length) parts.push(legend(this.model.get("legend"), this.tokens));
    this.head.replaceChildren(...parts);
    this.list.setAttribute("aria-label", title || "Tokens by round");
  }

  /** The width of a line and the size of a letter, as text. */
  get room() {
    const sides = [this.ruler, this.ruler.firstChild].map((node) => node.getBoundingClientRect());
    return sides.map(({ width, height }) => `${width} ${height}`).join();
  }

  resized() {
    if (this.room !== this.laidFor) this.lay();
  }

  /** Wrap the tokens anew, in the room there is now; none while the page has given none. */
  lay() {
    const { holdsFocus } = this;
    for (const { node } of this.lines.values()) node.remove();
    this.lines.clear();
    this.laidFor = this.room;
    this.sizes = this.tokens.length ? this.measure(this.list, this.glyphs) : null;
    if (!this.sizes?.width) return;
    this.plan = wrap(this.tokens, this.groups, this.sizes);
    this.sheet.style.height = `${this.plan.lines.length * this.sizes.line}px`;
    this.sheet.style.setProperty("--swb-widest", `${this.sizes.widest}px`);
    this.reveal();
    if (holdsFocus) this.focus();
  }

  /** Bring the lines in the page up to where the list is scrolled to. */
  draw() {
    this.frame = 0;
    if (!this.sizes?.width) return;
    const { list, plan, lines } = this;
    const { first, last } = linesAround(list.scrollTop, list.clientHeight, this.sizes.line, plan.lines.length);
    const own = plan.lineOf[this.entry];
    for (const [number, { node }] of lines) {
      if (number === own || (number >= first && number < last)) continue;
      node.remove();
      lines.delete(number);
    }
    for (const number of [own, ...Array.from({ length: last - first }, (_, i) => first + i)]) {
      if (lines.has(number)) continue;
      const after = Math.min(...[...lines.keys()].filter((other) => other > number));
      lines.set(number, this.lineNode(number));
      this.sheet.insertBefore(lines.get(number).node, lines.get(after)?.node ?? null);
    }
  }

  lineNode(number) {
    const { start, parts } = this.plan.lines[number];
    const node = element("div", "swb-line", undefined, { role: "presentation" });
    const options = [];
    node.style.top = `${number * this.sizes.line}px`;
    for (const { group, start: from, end, first } of parts) {
      const round = roundNode(first ? String(this.groups[group].round) : "");
      dress(round, { role: "group", "aria-label": roundLabel(this.tokens, this.groups[group]) });
      for (let index = from; index < end; index += 1) options.push(this.optionNode(index));
      round.append(...options.slice(from - start));
      node.append(round);
    }
    return { node, options, start };
  }

  optionNode(index) {
    const token = this.tokens[index];
    const node = dress(tokenNode(token, this.glyphs), {
      role: "option",
      "aria-label": token.label,
      "aria-selected": index === this.selected,
      "aria-setsize": this.tokens.length,
      "aria-posinset": index + 1,
    });
    node.dataset.index = index;
    node.title = token.label;
    node.tabIndex = index === this.entry ? 0 : -1;
    return node;
  }

  focus() {
    const line = this.lines.get(this.plan.lineOf[this.active]);
    line?.options[this.active - line.start]?.focus({ preventScroll: true });
  }

  /** Scroll the list itself, never the page, until the selected token is seen. */
  reveal() {
    if (this.sizes?.width && this.selected >= 0 && this.selected < this.tokens.length) {
      const number = this.plan.lineOf[this.selected];
      const top = scrolledTo(number, this.list.scrollTop, this.list.clientHeight, this.sizes.line);
      if (top !== this.list.scrollTop) this.list.scrollTop = top;
    }
    this.draw();
  }

  /** Show which token is selected, and keep the focus with it where the strip has it. */
  mark() {
    const { holdsFocus, selected } = this;
    if (selected >= 0) this.active = Math.min(selected, this.tokens.length - 1);
    this.reveal();
    for (const { options, start } of this.lines.values()) {
      options.forEach((node, i) => {
        node.setAttribute("aria-selected", String(start + i === selected));
        node.tabIndex = start + i === this.entry ? 0 : -1;
      });
    }
    if (holdsFocus) this.focus();
    this.telling = this.picking;
    this.say("");
  }

  /** Tell those who hear the page what they selected here: the sentence, or the label where no sentence comes. What
   * another panel selects is for that one to tell. */
  say(sentence) {
    const token = this.tokens[this.selected];
    const words = sentence || (this.model.get("sentence") ? "" : token?.label);
    this.said.textContent = !this.telling ? "" : token ? words : "No token is selected.";
  }

  pick(index) {
    if (index >= 0) this.active = index;
    this.picking = true;
    if (index === this.selected) this.mark();
    else this.model.set("selected", index);
    this.picking = false;
    if (index >= 0) this.focus();
  }

  /** Do what a key means here; false where it means nothing. */
  pressed(key) {
    if (key === "Escape") {
      if (this.selected < 0) return false;
      this.pick(-1);
    } else if (key === "Enter" || key === " ") {
      this.pick(this.entry);
      if (key === "Enter") this.model.set("opened", this.model.get("opened") + 1);
    } else {
      const to = this.target(key);
      if (to === null) return false;
      this.pick(to);
    }
    this.model.save_changes();
    return true;
  }

  target(key) {
    if (key !== "PageDown" && key !== "PageUp") return moved(this.tokens, this.active, key);
    if (!this.sizes?.width) return null;
    return paged(this.plan, this.active, key, Math.max(1, Math.floor(this.list.clientHeight / this.sizes.line) - 1));
  }
}

export default {
  render: ({ model, el }) => {
    const strip = new Strip({ model, el });
    return () => strip.close();
  },
};
