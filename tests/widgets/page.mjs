// A page small enough for tests: elements with attributes, children and listeners, and a widget's model.

class Node {
  constructor(tag, document) {
    Object.assign(this, { tag, ownerDocument: document, attributes: {}, children: [], listeners: {}, parent: null });
    Object.assign(this, { className: "", text: "", value: "", captured: null, dataset: {} });
    Object.assign(this, { scrollTop: 0, clientHeight: 264, style: { setProperty(name, value) { this[name] = value; } } });
    const names = new Set();
    this.classList = { add: (name) => names.add(name), remove: (name) => names.delete(name), names };
  }

  setAttribute(name, value) {
    if (value === undefined || String(value) === "NaN") throw new Error(`${this.tag} ${name} is ${value}`);
    this.attributes[name] = String(value);
  }

  getAttribute(name) {
    return this.attributes[name] ?? null;
  }

  append(...nodes) {
    for (const node of nodes) {
      if (node === undefined || node === null) throw new Error(`${this.tag} was given ${node}`);
      if (node instanceof Node) node.parent = this;
      this.children.push(node);
    }
  }

  replaceChildren(...nodes) {
    this.children = [];
    this.text = "";
    this.append(...nodes);
  }

  insertBefore(node, before) {
    node.parent = this;
    this.children.splice(before ? this.children.indexOf(before) : this.children.length, 0, node);
  }

  contains(node) {
    return this.all().includes(node);
  }

  /** The nearest node, this one or around it, with an attribute: the selector is [name=value]. */
  closest(selector) {
    const [name, value] = selector.slice(1, -1).split("=");
    return this.attributes[name] === value ? this : (this.parent?.closest(selector) ?? null);
  }

  remove() {
    this.parent.children = this.parent.children.filter((child) => child !== this);
  }

  get firstChild() {
    return this.children[0];
  }

  get lastChild() {
    return this.children.at(-1);
  }

  get textContent() {
    return this.text + this.children.map((child) => (child instanceof Node ? child.textContent : child)).join("");
  }

  set textContent(text) {
    this.children = [];
    this.text = String(text);
  }

  addEventListener(kind, listener) {
    (this.listeners[kind] ??= []).push(listener);
  }

  /** Tell the listeners; returns whether the page's own action was prevented. */
  fire(kind, event = {}) {
    let prevented = false;
    const full = { button: 0, pointerId: 1, preventDefault: () => (prevented = true), stopPropagation() {}, ...event };
    for (const listener of this.listeners[kind] ?? []) listener(full);
    return prevented;
  }

  focus() {
    if (this.ownerDocument.activeElement === this) return;
    this.ownerDocument.activeElement = this;
    this.fire("focus");
  }

  setPointerCapture(id) {
    this.captured = id;
  }

  hasPointerCapture(id) {
    return this.captured === id;
  }

  getBoundingClientRect() {
    return { top: 100, height: 264 };
  }

  /** All nodes below, this one first. */
  all() {
    return [this, ...this.children.filter((child) => child instanceof Node).flatMap((child) => child.all())];
  }

  find(test) {
    return this.all().filter(test);
  }
}

export function page() {
  const document = { activeElement: null };
  document.createElement = (tag) => new Node(tag, document);
  document.createElementNS = (_, tag) => new Node(tag, document);
  globalThis.document = document;
  return document;
}

/** What a widget's script sees of its traits; `saves` counts how often they were sent to Python. */
export class Model {
  constructor(state) {
    this.state = structuredClone(state);
    this.handlers = {};
    this.saves = 0;
  }

  get(name) {
    return this.state[name];
  }

  set(name, value) {
    const same = JSON.stringify(this.state[name]) === JSON.stringify(value);
    this.state[name] = value;
    if (!same) for (const handler of this.handlers[`change:${name}`] ?? []) handler();
  }

  save_changes() {
    this.saves += 1;
  }

  on(name, handler) {
    (this.handlers[name] ??= []).push(handler);
  }

  off(name, handler) {
    this.handlers[name] = this.handlers[name].filter((other) => other !== handler);
  }
}
