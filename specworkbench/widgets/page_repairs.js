// Does on the page what two libraries leave undone. The handles of ipywidgets' sliders have no name for a screen reader;
// plotly draws a figure before it lies in the page, and so never as wide as its place. The style sheet does the rest.

/** Every slider's handle below `root` is named as the slider is. */
export function nameSliders(root) {
  for (const slider of root.querySelectorAll(".widget-slider")) {
    const name = slider.querySelector(".widget-label")?.textContent.trim();
    if (!name) continue;
    for (const handle of slider.querySelectorAll("[role=slider]")) handle.setAttribute("aria-label", name);
  }
}

/** Whether there are figures below `root` that were not there when it was asked last; `seen` is a WeakSet. */
export function newFigures(root, seen) {
  const found = [...root.querySelectorAll(".js-plotly-plot")].filter((figure) => !seen.has(figure));
  found.forEach((figure) => seen.add(figure));
  return found.length > 0;
}

function render({ el }) {
  const seen = new WeakSet();
  const fit = () => window.dispatchEvent(new Event("resize")); // which responsive figures listen to
  const changes = new MutationObserver(() => repair());
  let panel = null;

  function repair() {
    nameSliders(panel);
    if (newFigures(panel, seen)) requestAnimationFrame(fit);
  }

  const place = new ResizeObserver(() => {
    if (!panel && el.parentElement) {
      panel = el.parentElement;
      panel.classList.add("swb-mended");
      changes.observe(panel, { childList: true, subtree: true });
      repair();
    }
    fit();
  });
  place.observe(el);
  return () => {
    place.disconnect();
    changes.disconnect();
  };
}

export default { render };
