// Does on the page what two libraries leave undone. ipywidgets gives the handles of its sliders no name, lets icons be part
// of a button's, makes texts anew that should be told as they change, and has no groups; plotly's figures say nothing to
// who does not see them, and one that is drawn before it lies in the page is never as wide as its place. The style sheet
// does the rest.

/** Set what is not so yet. */
function dress(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
}

/** Every slider's handle below `root` is named as the slider is, and so is the number beside it, which can be typed. */
export function nameSliders(root) {
  for (const slider of root.querySelectorAll(".widget-slider")) {
    const name = slider.querySelector(".widget-label")?.textContent.trim();
    if (!name) continue;
    for (const handle of slider.querySelectorAll("[role=slider]")) dress(handle, { "aria-label": name });
    for (const number of slider.querySelectorAll(".widget-readout")) {
      dress(number, { role: "textbox", "aria-label": `${name}, as a number` });
    }
  }
}

/** An icon, which is a letter of a font of its own, is no part of its button's name. */
export function hideIcons(root) {
  for (const icon of root.querySelectorAll(".jupyter-button > i")) dress(icon, { "aria-hidden": "true" });
}

/** A text is told when it changes: what holds it is there before, and stays. */
export function tellChanges(root) {
  for (const text of root.querySelectorAll(".swb-live")) dress(text, { role: "status" });
}

/** Controls that belong together are a group, named by the heading above them. */
export function nameGroups(root) {
  for (const group of root.querySelectorAll(".swb-group")) {
    const name = group.querySelector(".widget-html")?.textContent.trim();
    if (name) dress(group, { role: "group", "aria-label": name });
  }
}

/** A figure of plotly in words: its title, what is drawn over what, its series, and what stands written in it. */
export function figureWords({ layout = {}, data = [] }) {
  const plain = (text) => (text ?? "").replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim();
  const axes = (letter) => Object.keys(layout).filter((key) => RegExp(`^${letter}axis\\d*$`).test(key));
  const titles = (letter) => axes(letter).map((key) => plain(layout[key].title?.text ?? layout[key].title));
  const listed = (texts) => [...new Set(texts)].filter(Boolean).join(", ");
  const [across, up] = [listed(titles("x")), listed(titles("y"))];
  const series = listed(data.filter(({ showlegend }) => showlegend !== false).map(({ name }) => plain(name)));
  const notes = listed((layout.annotations ?? []).map(({ text }) => plain(text)));
  const drawn = across && up ? `${up} over ${across}` : across || up;
  const title = ["Figure", plain(layout.title?.text ?? layout.title)].filter(Boolean).join(": ");
  return [title, drawn, series, notes].filter(Boolean).join("; ");
}

/** Every figure is a picture with a description, in place of the letters that lie about in it. */
export function describeFigures(root) {
  for (const figure of root.querySelectorAll(".js-plotly-plot")) {
    const [first, ...others] = figure.querySelectorAll(".svg-container > svg");
    if (first) dress(first, { role: "img", "aria-label": figureWords(figure) });
    for (const svg of others) dress(svg, { "aria-hidden": "true" });
  }
}

/** Keeps the keyboard in its row of buttons when the one that it is at can no longer be pressed. */
export function focusKeeper() {
  let held = null; // a browser takes the focus from what is disabled without a word, or as it leaves
  return {
    came: ({ target }) => (held = target),
    left: ({ target }) => (held = target.disabled ? target : null),
    disabled: (button) => {
      if (button.disabled && button === held) button.parentElement.querySelector("button:not(:disabled)")?.focus();
    },
  };
}

/** Whether there are figures below `root` that were not there when it was asked last; `seen` is a WeakSet. */
export function newFigures(root, seen) {
  const found = [...root.querySelectorAll(".js-plotly-plot")].filter((figure) => !seen.has(figure));
  found.forEach((figure) => seen.add(figure));
  return found.length > 0;
}

const REPAIRS = [nameSliders, hideIcons, tellChanges, nameGroups, describeFigures];
const WATCHED = { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] };

function render({ model, el }) {
  const seen = new WeakSet();
  const fit = () => window.dispatchEvent(new Event("resize")); // which responsive figures listen to
  const keeper = focusKeeper();
  const heard = { focusin: keeper.came, focusout: keeper.left, keydown: keepKey };
  const changes = new MutationObserver((records) => {
    for (const { type, target } of records) if (type === "attributes") keeper.disabled(target);
    repair();
  });
  let panel = null;

  function repair() {
    for (const mend of REPAIRS) mend(panel);
    if (newFigures(panel, seen)) requestAnimationFrame(fit);
  }

  const place = new ResizeObserver(() => {
    if (!panel && el.parentElement) {
      panel = el.parentElement;
      panel.classList.add("swb-mended");
      dress(panel, { role: "group", "aria-label": model.get("name") });
      for (const [kind, listener] of Object.entries(heard)) panel.addEventListener(kind, listener);
      changes.observe(panel, WATCHED);
      repair();
    }
    fit();
  });
  place.observe(el);
  return () => {
    place.disconnect();
    changes.disconnect();
    for (const [kind, listener] of Object.entries(heard)) panel?.removeEventListener(kind, listener);
  };
}

export default { render };
