// Texts of a notebook's outputs that are hard to read: their contrast with what is behind them, by WCAG 2.
(least) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

  function rgba(css) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  }

  const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3]));

  function luminance(color) {
    const linear = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }

  /** The colour behind a node's text: all backgrounds of what it lies in, the page's own below. */
  function behind(node) {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((back, layer) => over(layer, back), [255, 255, 255]);
  }

  function contrast(node) {
    const style = getComputedStyle(node);
    const back = behind(node);
    const ink = over(rgba(node.closest("svg") ? style.fill : style.color), back);
    const [light, dark] = [luminance(ink), luminance(back)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  }

  const found = new Set();
  for (const output of document.querySelectorAll(".jp-OutputArea-output")) {
    const texts = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode.textContent.trim();
      const node = texts.currentNode.parentElement;
      if (!text || node.closest("style, script, :disabled, .mod-disabled") || !node.checkVisibility()) continue;
      const ratio = contrast(node);
      if (ratio < least) found.add(`${ratio.toFixed(1)}: ${text.slice(0, 60)} (${node.tagName} ${node.getAttribute("class")})`);
    }
  }
  return [...found];
}
