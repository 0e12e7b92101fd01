// A notebook takes single keys for orders to its cells, such as an arrow, or x, which cuts one. In a panel they are for
// the control that has the keyboard; what is pressed with Ctrl, Alt or Cmd, Shift+Enter and Esc stay the notebook's.

function isOrder({ key, ctrlKey, metaKey, altKey, shiftKey }) {
  return Boolean(ctrlKey || metaKey || altKey || key === "Escape" || (key === "Enter" && shiftKey));
}

export function keepKey(event) {
  if (!isOrder(event)) event.stopPropagation();
}
