// Parking lot: a box that ticks all messages of the page, and the number of ticked messages.
// The page also works without this script.
"use strict";

const lot = document.getElementById("lot");
const all = document.getElementById("tick-all");

if (lot && all) {
  const boxes = [...lot.querySelectorAll('input[name="pick"]')];
  const count = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    document.getElementById("ticked").textContent = ` (${ticked})`;
    all.checked = ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
  };
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const box of boxes) {
      box.checked = all.checked;
    }
    count();
  });
  lot.addEventListener("change", count);
  count();
}
