// What the round player and the playground make their pages of. Texts are untrusted, and only ever become text nodes and
// attributes.

function element(tag, className = "", text = undefined) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** A button; label: what it does, where its text alone does not say that. */
function button(text, onClick, label = "") {
  const node = set(element("button", "swb-button", text), { type: "button" });
  if (label) set(node, { "aria-label": label, title: label });
  node.addEventListener("click", onClick);
  return node;
}

/** A select; groups: {label: [[value, text], ...]}, an empty label for entries without a group. */
function choice(name, groups, onChange) {
  const node = set(element("select"), { "aria-label": name });
  for (const [label, entries] of Object.entries(groups)) {
    const group = label ? set(element("optgroup"), { label }) : node;
    if (label) node.append(group);
    group.append(...entries.map(([value, text]) => set(element("option", "", text), { value })));
  }
  node.addEventListener("change", () => onChange(node.value));
  return node;
}
